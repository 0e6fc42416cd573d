import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ExitError } from '../../../src/shared/engine-error.ts'
import type { EngineStatement } from '../../../src/execution/engine/engine.ts'
import { openTestPool } from '../../support/engines.ts'
import { FULL_TESTS } from '../../support/full-tests.ts'

const patient = { timeout: 120_000 }
const long = `SELECT count(*)::VARCHAR FROM range(100000) a(i), range(100000) b(j) WHERE i + j = 7`
const functionsModule = new URL('../../support/engine-functions.mjs', import.meta.url).href

describe('The functions of the functions module', () => {
  it('exist in every engine, on every connection', async () => {
    await using engines = await openTestPool({ functionsModule })
    const sql = `SELECT json_array(plus_one(twice(i)))::VARCHAR FROM range(3) r(i)`
    for (const placement of ['shared', 'dedicated'] as const) {
      const answers = await Promise.all([1, 2, 3].map(() => engines.rows(sql, { placement })))
      expect(answers).toEqual([1, 2, 3].map(() => [[1], [3], [5]]))
    }
  })

  it('end on a cancel if they never return, and do not stop the heartbeat', async () => {
    await using engines = await openTestPool({ functionsModule, deadAfterMs: 1500 })
    const run = engines.run('SELECT json_array(for_ever(i))::VARCHAR FROM range(3) r(i)', { placement: 'dedicated' })
    await expect.poll(() => engines.pool.children().some(({ running }) => running > 0), patient).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    expect(engines.events.filter(({ type }) => type === 'ended')).toEqual([])
    run.cancel()
    await expect(run.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
    expect(await engines.rows(`SELECT '[1]'`, { placement: 'dedicated' })).toEqual([[1]])
  })

  it('do not fail other small statements if they block the thread of small statements', async () => {
    await using engines = await openTestPool({ functionsModule, prepareDeadlineMs: 1000 })
    const holding = engines.run('SELECT json_array(for_ever(i))::VARCHAR FROM range(3) r(i)')
    await new Promise((resolve) => setTimeout(resolve, 200))
    // The blocked thread cannot read this statement, so its planning deadline passes before planning begins.
    expect(await engines.rows(`SELECT '[1]'`)).toEqual([[1]])
    holding.cancel()
    await expect(holding.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
  })

  it('make the start of the pool fail if their module cannot be loaded', async () => {
    await expect(openTestPool({ functionsModule: 'file:///nowhere.mjs' })).rejects.toBeInstanceOf(ExitError)
  })
})

describe('The planning deadline of the pool', () => {
  it('does not stop a statement that is already planned, with or without JavaScript functions', async () => {
    await using engines = await openTestPool({ functionsModule, prepareDeadlineMs: 500 })
    const from = 'FROM range(1000000) a(i), range(1000000) b(j)'
    const output = { kind: 'stream', onRows: () => undefined } as const
    const never: readonly (readonly [string, Partial<EngineStatement>])[] = [
      [`${from} WHERE twice(a.i + b.j) < 0`, {}],
      [`${from} WHERE plus_one(a.i + b.j) < 0`, {}],
      // DuckDB plans and runs this one in one call, and reports no progress for its source.
      ['FROM range(100000000000) t(i) WHERE i * i % 8 = 3', { output }],
    ]
    for (const [rest, statement] of FULL_TESTS ? never : never.slice(1)) {
      const sql = `SELECT json_array(1)::VARCHAR ${rest}`
      const run = engines.run(sql, { placement: 'dedicated', ...statement })
      await expect.poll(() => engines.pool.children().some(({ running }) => running > 0), patient).toBe(true)
      // After ten times the deadline even planning without CPU would be stopped.
      await new Promise((resolve) => setTimeout(resolve, 6000))
      // On a busy machine the cancel of the previous statement may have killed its engine.
      expect(engines.events.filter((event) => event.type === 'ended' && event.reason !== 'cancel')).toEqual([])
      run.cancel()
      await expect(run.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
    }
  })
})

describe('The engines of the pool', () => {
  it('are started on demand, one per core, and the other statements wait', async () => {
    await using engines = await openTestPool({ cores: 1 })
    expect(engines.pool.children()).toHaveLength(1)
    const first = engines.run(long, { placement: 'dedicated' })
    const second = engines.rows(`SELECT '[2]'`, { placement: 'dedicated' })
    await expect.poll(() => engines.pool.children().filter(({ state }) => state === 'busy'), patient).toHaveLength(1)
    expect(engines.pool.children()).toHaveLength(2)
    first.cancel()
    expect(await second).toEqual([[2]])
    await expect(first.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
  })

  it('run a risky statement in an engine of its own, even if it is small', async () => {
    await using engines = await openTestPool()
    const shared = engines.pool.children()[0]!.pid
    expect((await engines.run(`SELECT '[1]'`).done).enginePid).toBe(shared)
    expect((await engines.run(`SELECT '[1]'`, { risky: true }).done).enginePid).not.toBe(shared)
  })

  it('include a spare that replaces a killed engine at once; then a new spare starts', async () => {
    await using engines = await openTestPool({ spareAfterMs: 0 })
    const spare = (): number | undefined => engines.pool.children().find(({ state }) => state === 'spare')?.pid
    await expect.poll(spare, patient).toBeDefined()
    const first = spare()!
    const shared = engines.pool.children().find(({ state }) => state === 'idle')!.pid
    process.kill(shared, 'SIGKILL')
    const sqlAfter = async (): Promise<number> => (await engines.run(`SELECT '[1]'`).done).enginePid
    await expect.poll(sqlAfter, patient).toBe(first)
    await expect.poll(spare, patient).not.toBe(first)
    await expect.poll(spare, patient).toBeDefined()
  })
})

describe('The start of the pool', () => {
  it('removes the folders that a killed process left behind', async () => {
    const root = mkdtempSync(join(tmpdir(), 'quipu-leftovers-'))
    for (let time = 0; time < 2; time++) {
      await using engines = await openTestPool({ folder: join(root, 'engines'), spillFolder: join(root, 'spill') })
      expect((await engines.stream(`SELECT '[1]'`)).text).toBe('[1],\n')
      // The folders stay, as after a crash.
      if (time === 0) for (const { pid } of engines.pool.children()) process.kill(pid, 'SIGKILL')
    }
    rmSync(root, { recursive: true, force: true })
  })
})

describe('The figures of a statement', () => {
  it('contain wall time, CPU time, memory, and whether the CPU time is exact', async () => {
    await using engines = await openTestPool()
    const before = Date.now()
    const sql = `SELECT json_array(count(DISTINCT i))::VARCHAR FROM range(3000000) r(i)`
    const alone = await engines.run(sql, { placement: 'dedicated' }).done
    expect(alone.startedAt).toBeGreaterThanOrEqual(before)
    expect(alone.cpuExact).toBe(true)
    expect(alone.cpuNanos).toBeGreaterThan(10e6)
    expect(alone.wallNanos).toBeGreaterThan(10e6)
    expect(alone.peakMemoryBytes).toBeGreaterThan(10e6)
    expect(alone.profile).toBeUndefined()
    const small = `SELECT json_array(sum(i % 7))::VARCHAR FROM range(20000000) r(i)`
    const together = await Promise.all([engines.run(small).done, engines.run(small).done])
    expect(together.map(({ cpuExact }) => cpuExact)).toEqual([false, false])
  })

  it('contain the spilled bytes', async () => {
    await using engines = await openTestPool({ memoryLimitBytes: 100 * 2 ** 20, maxSpillBytes: 4 * 2 ** 30 })
    const sql = `SELECT json_array(max(s))::VARCHAR FROM
      (SELECT s FROM (SELECT sha256(i::VARCHAR) || i AS s FROM range(1500000) r(i)) ORDER BY hash(s) OFFSET 3)`
    const result = await engines.run(sql, { placement: 'dedicated' }).done
    expect(result.spilledBytes).toBeGreaterThan(10e6)
  })

  it('are replaced by EXCEEDED_SPILL_LIMIT if spilling reaches its limit', async () => {
    await using engines = await openTestPool({ memoryLimitBytes: 100 * 2 ** 20, maxSpillBytes: 20 * 2 ** 20 })
    const sql = `SELECT json_array(max(s))::VARCHAR FROM
      (SELECT s FROM (SELECT sha256(i::VARCHAR) || i AS s FROM range(1500000) r(i)) ORDER BY hash(s) OFFSET 3)`
    await expect(engines.run(sql, { placement: 'dedicated' }).done).rejects.toMatchObject({
      errorName: 'EXCEEDED_SPILL_LIMIT',
    })
  })

  it('include DuckDB’s operators if the caller requests a profile', async () => {
    await using engines = await openTestPool()
    const sql = `SELECT json_array(i)::VARCHAR FROM range(1000) r(i) WHERE i % 2 = 0`
    for (let time = 0; time < 2; time++) {
      const { profile } = await engines.run(sql, { profile: true, cachePrepared: true }).done
      const filter = profile!.children[0]!.children[0]!
      expect(filter).toMatchObject({ type: 'FILTER', rowsOut: 500 })
      expect(filter.children[0]).toMatchObject({ name: 'RANGE', rowsOut: 1000, estimatedRows: 1000 })
      expect((await engines.run(sql, { cachePrepared: true }).done).profile).toBeUndefined()
    }
  })
})
