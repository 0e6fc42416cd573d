/** The engine's worker thread: owns the DuckDB instance and the frames on descriptor 3. */
import { Socket } from 'node:net'
import { workerData } from 'node:worker_threads'
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { createConnections } from './engine-connections.ts'
import { createStatements } from './engine-statements.ts'
import { createFrameDecoder, encodeFrame } from './frames.ts'
import type { EngineReply, EngineRequest, ThreadArguments } from './messages.ts'

/** Well below the beat, so that a thread that turns at all is seen to. */
const TURN_MS = 50

const { functionsModule, turns } = workerData as ThreadArguments
setInterval(() => Atomics.add(turns, 0, 1), TURN_MS)
const socket = new Socket({ fd: 3 })
const send = (reply: EngineReply, body?: Buffer): void => {
  socket.write(encodeFrame(reply, body))
}

const fail = (error: unknown): void =>
  send({ type: 'failed', message: error instanceof Error ? error.message : String(error) })

try {
  const instance = await DuckDBInstance.create(':memory:')
  const setup = await instance.connect()
  if (functionsModule !== undefined) {
    const functions = (await import(functionsModule)) as { default(connection: DuckDBConnection): Promise<void> }
    await functions.default(setup)
  }
  const statements = createStatements(createConnections(instance), send)

  const configure = async (settings: readonly string[]): Promise<void> => {
    try {
      for (const setting of settings) await setup.run(setting)
      send({ type: 'configured' })
    } catch (error) {
      fail(error)
    }
  }

  /** On a connection of its own: it waits for no statement, and no statement for it. */
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
        return void configure(request.settings)
      case 'run':
        return void statements.run(request)
      case 'query':
        return void statements.query(request)
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
