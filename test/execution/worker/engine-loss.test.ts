import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TaskStatus, TaskUpdate } from '../../../src/execution/api/task.ts'
import { EngineLost, type EnginePool } from '../../../src/execution/engine/engine.ts'
import { sumOf } from '../../../src/shared/row-digest.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { openTestWorker, updateFor, type TestScan, type TestWorker } from '../../support/worker.ts'

const tiny = new URL('../../../etc/tpch/tiny', import.meta.url).pathname
const duckdb = await openDuckDb()
/** Small enough that a few thousand rows make many pages, but larger than a pipe. */
const PAGE_BYTES = 32 * 1024

/** Fragments with many pages; `truth` returns the same rows in plain DuckDB. */
const cases = {
  'an ORDER BY with ties': {
    scans: [['lineitem', ['quantity', 'comment']]],
    sql: 'SELECT quantity AS c0, comment AS c1 FROM "$s0" WHERE quantity < 13 ORDER BY quantity',
    truth: `SELECT l_quantity::DOUBLE AS c0, l_comment AS c1 FROM '${tiny}/lineitem.parquet' WHERE l_quantity < 13`,
  },
  'a join': {
    scans: [
      ['orders', ['orderkey', 'custkey']],
      ['customer', ['custkey', 'name']],
    ],
    sql: 'SELECT o.orderkey AS c0, c.name AS c1 FROM "$s0" o JOIN "$s1" c ON o.custkey = c.custkey',
    truth: `SELECT o_orderkey AS c0, c_name AS c1 FROM '${tiny}/orders.parquet', '${tiny}/customer.parquet' WHERE o_custkey = c_custkey`,
  },
  'a GROUP BY': {
    scans: [['lineitem', ['orderkey', 'quantity']]],
    sql: `SELECT orderkey AS c0, 'lines of the order ' || count(*) AS c1 FROM "$s0" GROUP BY orderkey`,
    truth: `SELECT l_orderkey AS c0, 'lines of the order ' || count(*) AS c1 FROM '${tiny}/lineitem.parquet' GROUP BY 1`,
  },
} as const

const digestOf = ({ pages }: TaskStatus): string => sumOf(pages.map(({ digest }) => digest!.sum))
const keyed = (rows: readonly unknown[][]): string[] => rows.map((row) => JSON.stringify(row)).sort()

describe.each(Object.entries(cases))('A task with %s whose engine is killed', (_, { scans, sql, truth }) => {
  let worker: TestWorker
  let update: TaskUpdate
  let expected: string[]
  let digest: string
  let pages: number
  let killAt = Infinity
  let listed = 0

  const killEngine = (): void => {
    for (const { pid, state } of worker.engines.pool.children()) if (state === 'busy') process.kill(pid, 'SIGKILL')
  }
  const run = async (at: number) => {
    killAt = at
    listed = 0
    const taskId = worker.nextTaskId()
    const task = worker.tasks.update(taskId, update)
    if (at === 0) {
      await expect
        .poll(() => worker.engines.pool.children().some(({ state }) => state === 'busy'), { interval: 1 })
        .toBe(true)
      killEngine()
    }
    await task.ended
    return { status: task.status(), rows: keyed(await worker.rows(taskId)) }
  }

  beforeAll(async () => {
    worker = await openTestWorker({
      limits: { pageBytes: PAGE_BYTES },
      onEvent: (event) => {
        if (event.type === 'pageListed' && ++listed === killAt) killEngine()
      },
    })
    const all = scans.map(([table, columns]): TestScan => ({ connector: worker.tpch, schema: 'tiny', table, columns }))
    update = { ...(await updateFor(all, sql, 2, { estimate: { small: false } })), digests: true }
    expected = keyed((await duckdb.query(truth)).map(({ c0, c1 }) => [c0, c1]))
    const { status, rows } = await run(Infinity)
    expect(status.state).toBe('FINISHED')
    expect(rows).toEqual(expected)
    digest = digestOf(status)
    pages = status.pages.length
    expect(pages).toBeGreaterThan(4)
  })
  afterAll(() => worker[Symbol.asyncDispose]())

  it('returns the right rows or a clean error, for a kill at every page boundary', async () => {
    let failures = 0
    for (let at = 0; at <= pages; at++) {
      const { status, rows } = await run(at)
      if (status.state === 'FINISHED') {
        expect(rows).toEqual(expected)
        expect(digestOf(status)).toBe(digest)
        continue
      }
      failures++
      expect(status).toMatchObject({
        state: 'FAILED',
        failedBatch: 0,
        batchesDone: [],
        failure: { errorName: 'REMOTE_TASK_ERROR' },
      })
      // Listed pages stay readable and are part of the result: no row occurs more often than in the whole result.
      expect(status.pages.some(({ lastOfBatch }) => lastOfBatch)).toBe(false)
      const left = new Map<string, number>()
      for (const row of expected) left.set(row, (left.get(row) ?? 0) + 1)
      for (const row of rows) left.set(row, (left.get(row) ?? 0) - 1)
      expect([...left.values()].filter((count) => count < 0)).toEqual([])
    }
    expect(failures).toBeGreaterThan(0)
  })
})

describe('A batch whose engine is lost before a page is listed', () => {
  /** Makes engines whose first `times` runs are lost, and whose later runs succeed. */
  function losing(times: number): { wrap(pool: EnginePool): Pick<EnginePool, 'run'>; runs(): number } {
    let runs = 0
    return {
      runs: () => runs,
      wrap: (pool) => ({
        run: (statement) =>
          ++runs <= times
            ? { done: Promise.reject(new EngineLost('crash', 'The engine ended')), cancel: () => {} }
            : pool.run(statement),
      }),
    }
  }
  const count = async (worker: TestWorker) =>
    updateFor(
      [{ connector: worker.tpch, schema: 'tiny', table: 'nation', columns: [] }],
      'SELECT count(*) AS c0 FROM "$s0"',
      1,
    )

  it('is attempted up to four times', async () => {
    const engines = losing(3)
    await using worker = await openTestWorker({ wrapEngines: engines.wrap })
    const taskId = worker.nextTaskId()
    expect((await worker.run(taskId, await count(worker))).state).toBe('FINISHED')
    expect(await worker.rows(taskId)).toEqual([[25]])
    expect(engines.runs()).toBe(4)
  })

  it('fails its task with REMOTE_TASK_ERROR after four lost engines', async () => {
    const engines = losing(4)
    await using worker = await openTestWorker({ wrapEngines: engines.wrap })
    const status = await worker.run(worker.nextTaskId(), await count(worker))
    expect(status).toMatchObject({ state: 'FAILED', pages: [], failure: { errorName: 'REMOTE_TASK_ERROR' } })
    expect(engines.runs()).toBe(4)
  })
})
