import { mkdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEngineChild, type EngineChild } from '../../../src/execution/engine/engine-child.ts'
import type { EngineWork } from '../../../src/execution/engine/engine-work.ts'
import { createRunningEngine, type RunningEngine } from '../../../src/execution/engine/running-engine.ts'
import { openTestPool, type TestPool } from '../../support/engines.ts'

const MB = 2 ** 20
const patient = { timeout: 120_000 }
let engines: TestPool
beforeAll(async () => {
  engines = await openTestPool()
})
afterAll(async () => {
  await engines[Symbol.asyncDispose]()
})

describe('Back-pressure on an engine', () => {
  it('stops the engine while the consumer is slow: memory stays bounded and no row is lost', async () => {
    const rows = 3_000_000
    let lines = 0
    let enginePeak = 0
    let release: (() => void) | undefined
    const sampler = setInterval(() => {
      for (const { running, residentBytes } of engines.pool.children()) {
        if (running > 0) enginePeak = Math.max(enginePeak, residentBytes)
      }
    }, 20)
    const output = {
      kind: 'stream',
      onRows: (bytes: Buffer): void | Promise<void> => {
        for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
        if (lines > 1000 && release === undefined) {
          return new Promise((resolve) => {
            release = resolve
          })
        }
      },
    } as const
    const sql = `SELECT json_array(i, i::VARCHAR, i * 2)::VARCHAR FROM range(${rows}) r(i)`
    const run = engines.run(sql, { placement: 'dedicated', output })
    await expect.poll(() => release, patient).toBeDefined()
    const held = lines
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(lines).toBe(held)
    release!()
    const result = await run.done
    clearInterval(sampler)
    expect(result.rows).toBe(rows)
    expect(lines).toBe(rows)
    // The statement makes 130 MB of text; an idle engine uses about 90 MB.
    expect(enginePeak).toBeLessThan(400 * MB)
  })
})

describe('An engine above its memory limit', () => {
  const work = (sql: string): EngineWork => ({
    id: 'work',
    asks: {
      kind: 'rows',
      query: { sql, scans: [], row: { kind: 'text' } },
      output: { kind: 'inline', maxBytes: MB },
      cachePrepared: false,
      profile: false,
    },
    prepareDeadlineMs: 60_000,
  })

  /** Starts an engine with a very high data memory limit of the system, so that the watch sees the excess first. */
  async function open(killBytes: number): Promise<{ child: EngineChild; engine: RunningEngine }> {
    const { folder, spillFolder, beatMs, functionsModule } = engines.settings
    mkdirSync(`${folder}-apart`, { recursive: true })
    let engine: RunningEngine | undefined
    const child = startEngineChild({
      slot: 0,
      folder: `${folder}-apart`,
      spillFolder: `${spillFolder}-apart`,
      connections: 2,
      dataLimitBytes: 64 * 1024 * MB,
      arguments: { beatMs, functionsModule: functionsModule! },
      onReply: (frame) => engine?.onReply(frame),
      onExit: () => engine?.onExit(),
    })
    await child.ready
    await child.configure({
      spillFolder: child.spillFolder,
      allowedDirectories: [child.folder],
      memoryLimitBytes: 8 * 1024 * MB,
      maxSpillBytes: MB,
      threads: 1,
    })
    engine = createRunningEngine({
      child,
      capacity: 2,
      killBytes,
      recycleBytes: killBytes,
      announceStarts: false,
      interruptToKillMs: 150,
      deadAfterMs: 10_000,
      onEvent: () => undefined,
      onIdle: () => undefined,
      onDead: () => undefined,
    })
    return { child, engine }
  }

  // Planning of this statement takes gigabytes within a second, and DuckDB does not apply its own limit there.
  const bomb = `SELECT len(range(300000000 + (random() * 0)::INTEGER))::VARCHAR`
  const long = `SELECT count(*)::VARCHAR FROM range(100000) a(i), range(100000) b(j) WHERE i + j = 7`

  it.each([
    [
      'one statement, which is then at fault',
      [bomb],
      { kind: 'lost', reason: 'memory', alone: true, delivered: false },
    ],
    [
      'several statements, none of which is surely at fault',
      [bomb, long],
      { kind: 'lost', reason: 'memory', alone: false },
    ],
  ])('is killed while it runs %s', async (_case, statements, outcome) => {
    const { child, engine } = await open(400 * MB)
    const attempts = statements.map((sql) => engine.execute(work(sql)))
    const watch = setInterval(() => engine.watch(performance.now()), 20)
    for (const attempt of attempts) expect(await attempt.outcome).toMatchObject(outcome)
    clearInterval(watch)
    await child.gone
  })
})
