/**
 * Program of an engine. The main thread only beats on descriptor 4 and ends the process when the parent is gone. DuckDB
 * and its JavaScript functions, which block their thread, run in a worker thread that uses descriptor 3.
 */
import { reportedErrorText } from '../../telemetry/reported-error.ts'
import { Socket } from 'node:net'
import { constants, getPriority, setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import { connectToParent } from './engine-channel.ts'
import type { EngineArguments, ThreadArguments } from './messages.ts'

const engineArguments = JSON.parse(process.argv[2] ?? '{}') as EngineArguments
const { channelFolder } = engineArguments

// Files of DuckDB (spill, profiles, tables) are readable by this user alone, or, if the engine has a user of its own,
// by its parent's group too. When a table's files are sealed, they get the mode of their folder.
process.umask(channelFolder === undefined ? 0o077 : 0o007)

// Low priority leaves the coordinator the processor time that it needs to answer. Threads started below inherit it.
setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL))

/** Ends the process. Not `process.exit`: that would wait for DuckDB's threads, which may be busy for hours. */
function end(): void {
  process.kill(process.pid, 'SIGKILL')
}

const parent = channelFolder === undefined ? new Socket({ fd: 4 }) : connectToParent(channelFolder, 'beats')
parent.on('close', end)
parent.on('error', end)
parent.resume()

const loopPasses = new Int32Array(new SharedArrayBuffer(4))
let lastPasses = 0
// The beat carries the resident size, for systems on which the parent cannot read it; whether the worker thread's event
// loop ran since the last beat (a function in JavaScript may block it); and the CPU time so far.
setInterval(() => {
  const now = Atomics.load(loopPasses, 0)
  const { user, system } = process.cpuUsage()
  const cpuMs = Math.round((user + system) / 1000)
  parent.write(`${process.memoryUsage.rss()} ${now === lastPasses ? 'held' : 'free'} ${cpuMs}\n`)
  lastPasses = now
}, engineArguments.beatMs)

const thread = new Worker(new URL('./engine-thread.js', import.meta.url), {
  workerData: { ...engineArguments, loopPasses } satisfies ThreadArguments & EngineArguments,
  resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 },
})
thread.on('error', (error) => {
  process.stderr.write(`${reportedErrorText(error)}\n`)
  end()
})
thread.on('exit', end)
