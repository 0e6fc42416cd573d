/** The engine's worker thread: owns the DuckDB instance and the frames on descriptor 3. */
import { Socket } from 'node:net'
import { workerData } from 'node:worker_threads'
import { DuckDBInstance } from '../../shared/duckdb.ts'
import { connectToParent } from './engine-channel.ts'
import { createConnections } from './engine-connections.ts'
import { createMacros } from './engine-macros.ts'
import { createStatements } from './engine-statements.ts'
import { createFrameDecoder, encodeFrame } from './frames.ts'
import type { EngineModule, EngineReply, EngineRequest, ThreadArguments } from './messages.ts'
import { sandboxSettings, type SandboxLimits } from './sandbox.ts'
import { NO_VOCABULARY, type EngineVocabulary } from './statement-wall.ts'

/** Well below the beat, so that every beat sees a thread that still runs its event loop. */
const PASS_MS = 50

const { functionsModule, channelFolder, loopPasses } = workerData as ThreadArguments
setInterval(() => Atomics.add(loopPasses, 0, 1), PASS_MS)
const socket = channelFolder === undefined ? new Socket({ fd: 3 }) : connectToParent(channelFolder, 'requests')
const send = (reply: EngineReply, body?: Buffer): void => {
  socket.write(encodeFrame(reply, body))
}

const fail = (error: unknown): void =>
  send({ type: 'failed', message: error instanceof Error ? error.message : String(error) })

try {
  const instance = await DuckDBInstance.create(':memory:')
  const setup = await instance.connect()
  let vocabulary: EngineVocabulary = NO_VOCABULARY
  if (functionsModule !== undefined) {
    const functions = (await import(functionsModule)) as EngineModule
    await functions.register(setup)
    ;({ vocabulary } = functions)
  }
  const connections = createConnections(instance)
  const definer = await instance.connect()
  const macros = createMacros(vocabulary.macros, (sql) => definer.run(sql))
  const statements = createStatements({ connections, vocabulary, macros, send })

  const configure = async (limits: SandboxLimits): Promise<void> => {
    try {
      for (const setting of sandboxSettings(limits)) await setup.run(setting)
      statements.allow(limits.allowedDirectories)
      send({ type: 'configured' })
    } catch (error) {
      fail(error)
    }
  }

  /** Uses a connection of its own, so that it waits for no statement, and no statement waits for it. */
  const memory = async (): Promise<void> => {
    const read = setup.runAndReadAll('SELECT tag, memory_usage_bytes::DOUBLE AS bytes FROM duckdb_memory()')
    const rows = await read.then(
      (reader) => reader.getRowsJson(),
      () => [],
    )
    send({ type: 'memory', tags: Object.fromEntries(rows.map(([tag, bytes]) => [String(tag), Number(bytes)])) })
  }

  const take = (request: EngineRequest): void => {
    switch (request.type) {
      case 'configure':
        return void configure(request.limits)
      case 'run':
        return void statements.run(request)
      case 'inspect':
        return void statements.inspect(request)
      case 'interrupt':
        return statements.interrupt(request.id)
      case 'memory':
        return void memory()
    }
  }
  socket.on(
    'data',
    createFrameDecoder<EngineRequest>(({ header }) => take(header)),
  )
  send({ type: 'ready' })
} catch (error) {
  fail(error)
}
