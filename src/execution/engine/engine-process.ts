/**
 * Program of an engine. The main thread only beats on descriptor 4 and ends the process when the parent is gone; DuckDB
 * and its JavaScript functions, which hold their thread, live in a worker thread that speaks on descriptor 3.
 */
import { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import type { EngineArguments } from './messages.ts'

const engineArguments = JSON.parse(process.argv[2] ?? '{}') as EngineArguments

/** Not `process.exit`: that would wait for DuckDB's threads, which may be in the middle of hours of work. */
function end(): void {
  process.kill(process.pid, 'SIGKILL')
}

const parent = new Socket({ fd: 4 })
parent.on('close', end)
parent.on('error', end)
parent.resume()

// The beat carries the resident size, for systems on which the parent cannot read it.
setInterval(() => parent.write(`${process.memoryUsage.rss()}\n`), engineArguments.beatMs)

const thread = new Worker(new URL('./engine-thread.js', import.meta.url), {
  workerData: engineArguments,
  resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 },
})
thread.on('error', (error) => {
  process.stderr.write(`${error.stack ?? error.message}\n`)
  end()
})
thread.on('exit', end)
