import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Fragment } from '../../../src/execution/api/fragment.ts'
import { openTestWorker, updateFor, type TestScan, type TestWorker } from '../../support/worker.ts'

const numbers = (from: number, to: number): string => `SELECT i AS id, i % 3 AS kind FROM range(${from}, ${to}) t(i)`
const ascending = (rows: readonly unknown[][]): number[] => rows.map(([id]) => id as number).sort((a, b) => a - b)
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe('A task', () => {
  let worker: TestWorker
  beforeAll(async () => {
    // Every split makes a batch of its own, because every split is larger than 1 byte.
    worker = await openTestWorker({ limits: { batchBytes: 1 } })
  })
  afterAll(() => worker[Symbol.asyncDispose]())

  const tpch = (table: string, ...columns: string[]): TestScan => ({
    connector: worker.tpch,
    schema: 'tiny',
    table,
    columns,
  })
  const streaming: Partial<Fragment> = { streams: true, estimate: { small: false } }

  it('returns the rows of an aggregation, in order', async () => {
    const taskId = worker.nextTaskId()
    const sql = 'SELECT orderstatus AS c0, count(*) AS c1 FROM "$s0" GROUP BY 1 ORDER BY 1'
    const status = await worker.run(taskId, await updateFor([tpch('orders', 'orderstatus')], sql, 2))
    expect(status).toMatchObject({ state: 'FINISHED', batchesDone: [0], batchesTotal: 1, noMoreSplits: ['0'] })
    expect(status.pages).toMatchObject([{ token: 0, batch: 0, rows: 3, lastOfBatch: true }])
    expect(await worker.rows(taskId)).toEqual([
      ['F', 7304],
      ['O', 7333],
      ['P', 363],
    ])
  })

  it('joins tables, also a table with itself', async () => {
    const taskId = worker.nextTaskId()
    const sql = `SELECT n.name AS c0, r.name AS c1, m.nationkey AS c2 FROM "$s0" n
      JOIN "$s1" r ON n.regionkey = r.regionkey JOIN "$s2" m ON m.nationkey = n.nationkey + 1
      WHERE n.name LIKE 'C%' ORDER BY 1`
    await worker.run(
      taskId,
      await updateFor(
        [
          tpch('nation', 'name', 'regionkey', 'nationkey'),
          tpch('region', 'name', 'regionkey'),
          tpch('nation', 'nationkey'),
        ],
        sql,
        3,
      ),
    )
    expect(await worker.rows(taskId)).toEqual([
      ['CANADA', 'AMERICA', 4],
      ['CHINA', 'ASIA', 19],
    ])
  })

  it('counts rows without reading a column', async () => {
    const taskId = worker.nextTaskId()
    const status = await worker.run(taskId, await updateFor([tpch('lineitem')], 'SELECT count(*) AS c0 FROM "$s0"', 1))
    expect(await worker.rows(taskId)).toEqual([[60175]])
    expect(status.stats).toMatchObject({ rawInputPositions: 60175, rawInputBytes: 0 })
  })

  it.each([true, false])('finishes without pages if there are no rows (small: %s)', async (small) => {
    const taskId = worker.nextTaskId()
    const sql = 'SELECT name AS c0 FROM "$s0" WHERE nationkey > 1000'
    const update = await updateFor([tpch('nation', 'name', 'nationkey')], sql, 1, {
      streams: true,
      estimate: { small },
    })
    expect(await worker.run(taskId, update)).toMatchObject({
      state: 'FINISHED',
      pages: [],
      batchesDone: [0],
      bufferState: 'FINISHED',
    })
  })

  it('runs a streaming fragment in batches over disjoint splits, with pages in the order of the batches', async () => {
    const scan = await worker.lakeTable(
      'many',
      [0, 1, 2, 3].map((part) => numbers(part * 1000, part * 1000 + 1000)),
      ['id'],
    )
    const taskId = worker.nextTaskId()
    const status = await worker.run(taskId, await updateFor([scan], 'SELECT id AS c0 FROM "$s0"', 1, streaming))
    expect(status).toMatchObject({ state: 'FINISHED', batchesTotal: 4, batchesDone: [0, 1, 2, 3] })
    expect(status.pages.map(({ token, batch, lastOfBatch }) => [token, batch, lastOfBatch])).toEqual(
      [0, 1, 2, 3].map((batch) => [batch, batch, true]),
    )
    expect(ascending(await worker.rows(taskId))).toEqual(upTo(4000))
    expect(status.stats).toMatchObject({ totalSplits: 4, completedSplits: 4, totalDrivers: 4, completedDrivers: 4 })
  })

  it('gives every batch all splits of the other scans', async () => {
    const left = await worker.lakeTable('left', [numbers(0, 10), numbers(10, 20)], ['id'])
    const right = await worker.lakeTable('right', [numbers(5, 15), numbers(15, 30)], ['id'])
    const taskId = worker.nextTaskId()
    const sql = 'SELECT l.id AS c0 FROM "$s0" l JOIN "$s1" r ON l.id = r.id'
    const status = await worker.run(taskId, await updateFor([left, right], sql, 1, streaming))
    expect(status.batchesTotal).toBe(2)
    expect(ascending(await worker.rows(taskId))).toEqual(upTo(20).slice(5))
  })

  it('does not run batches that are already done elsewhere', async () => {
    const scan = await worker.lakeTable('rest', [numbers(0, 10), numbers(10, 20), numbers(20, 30)], ['id'])
    const taskId = worker.nextTaskId()
    const update = await updateFor([scan], 'SELECT id AS c0 FROM "$s0"', 1, streaming, { doneBatches: [0, 2] })
    const status = await worker.run(taskId, update)
    expect([...status.batchesDone].sort()).toEqual([0, 1, 2])
    expect(ascending(await worker.rows(taskId))).toEqual(upTo(20).slice(10))
  })

  it('accepts splits in several updates, and the same update several times', async () => {
    const scan = await worker.lakeTable('growing', [numbers(0, 10), numbers(10, 20)], ['id'])
    const taskId = worker.nextTaskId()
    const whole = await updateFor([scan], 'SELECT id AS c0 FROM "$s0"', 1, streaming)
    const first = { ...whole, splits: whole.splits.slice(0, 1), noMoreSplits: false }
    worker.tasks.update(taskId, first)
    const task = worker.tasks.update(taskId, first)
    await expect.poll(() => task.status().batchesDone).toEqual([0])
    expect(task.status()).toMatchObject({ state: 'RUNNING', noMoreSplits: [] })
    worker.tasks.update(taskId, whole)
    worker.tasks.update(taskId, first)
    await task.ended
    worker.tasks.update(taskId, whole)
    expect(task.status()).toMatchObject({ state: 'FINISHED', batchesDone: [0, 1], noMoreSplits: ['0'] })
    expect(ascending(await worker.rows(taskId))).toEqual(upTo(20))
  })

  it('drops batches that have not started on request, and finishes the others', async () => {
    const scan = await worker.lakeTable('partial', [numbers(0, 10), numbers(10, 20), numbers(20, 30)], ['id'])
    const taskId = worker.nextTaskId()
    const update = await updateFor([scan], 'SELECT id AS c0 FROM "$s0"', 1, streaming)
    const task = worker.tasks.update(taskId, update)
    worker.tasks.update(taskId, { ...update, dropPendingBatches: true })
    expect(await task.ended).toBe('FINISHED')
    expect(task.status()).toMatchObject({ batchesDone: [0], batchesTotal: 1 })
    expect(ascending(await worker.rows(taskId))).toEqual(upTo(10))
  })

  it('cuts pages at 1 MB between rows, and lists the SHA-256 of their bytes', async () => {
    const scan = await worker.lakeTable(
      'wide',
      [`SELECT i AS id, repeat('x', 1000) AS pad FROM range(3000) t(i)`],
      ['id', 'pad'],
    )
    const taskId = worker.nextTaskId()
    const sql = 'SELECT id AS c0, pad AS c1 FROM "$s0"'
    const { pages } = await worker.run(taskId, await updateFor([scan], sql, 2, streaming))
    expect(pages.length).toBe(3)
    for (const page of pages.slice(0, -1)) expect(page.bytes).toBeGreaterThan(1024 * 1024)
    for (const page of pages) {
      const { bytes } = (await worker.tasks.get(taskId)!.page(page.token))!
      expect(bytes.length).toBe(page.bytes)
      expect(Buffer.from(await crypto.subtle.digest('SHA-256', new Uint8Array(bytes))).toString('hex')).toBe(
        page.sha256,
      )
      expect(JSON.parse(bytes.toString())).toHaveLength(page.rows)
    }
    expect(ascending(await worker.rows(taskId))).toEqual(upTo(3000))
  })

  it('streams a result that is too large for inline rows although its input is small', async () => {
    const scan = await worker.lakeTable('swelling', [`SELECT i AS id FROM range(2000) t(i)`], ['id'])
    const taskId = worker.nextTaskId()
    const sql = `SELECT id AS c0, repeat('y', 100) AS c1 FROM "$s0" ORDER BY 1`
    const status = await worker.run(taskId, await updateFor([scan], sql, 2, { estimate: { small: true } }))
    expect(status.state).toBe('FINISHED')
    expect((await worker.rows(taskId)).map(([id]) => id)).toEqual(upTo(2000))
  })

  it('reads an empty table', async () => {
    const scan = await worker.lakeTable('empty', [`SELECT 1 AS id WHERE false`], ['id'])
    const taskId = worker.nextTaskId()
    await worker.run(taskId, await updateFor([scan], 'SELECT count(id) AS c0, sum(id) AS c1 FROM "$s0"', 2))
    expect(await worker.rows(taskId)).toEqual([[0, null]])
  })

  it('fails with the error name of the cause', async () => {
    const update = await updateFor([tpch('nation', 'name')], 'SELECT name AS c0 FROM "$s0"', 1)
    const elsewhere = { ...update.fragment, scans: [{ ...update.fragment.scans[0]!, catalog: 'nowhere' }] }
    const status = await worker.run(worker.nextTaskId(), { ...update, fragment: elsewhere })
    expect(status).toMatchObject({
      state: 'FAILED',
      bufferState: 'FAILED',
      failedBatch: 0,
      failure: { errorName: 'CATALOG_NOT_AVAILABLE', errorType: 'INTERNAL_ERROR' },
    })
    const endless = await updateFor([], 'SELECT count(*) AS c0 FROM range(10000000) a, range(10000000) b', 1)
    const late = await worker.run(worker.nextTaskId(), { ...endless, remainingMillis: 0 })
    expect(late).toMatchObject({ state: 'FAILED', failure: { errorName: 'EXCEEDED_TIME_LIMIT' } })
  })

  it('reports the CPU time of a running batch, and keeps it after a cancel', async () => {
    const taskId = worker.nextTaskId()
    const sql = `SELECT count(*) AS c0 FROM "$s0" a, "$s0" b, "$s0" c WHERE a.orderkey + b.orderkey = c.orderkey * 1.5`
    const update = await updateFor([tpch('orders', 'orderkey')], sql, 1, { estimate: { small: false } })
    const ended = worker.run(taskId, update)
    const now = () => worker.tasks.get(taskId)!.status()
    await expect.poll(() => now().stats.cpuNanos, { timeout: 120_000 }).toBeGreaterThan(0)
    const { version, stats } = now()
    expect(stats).toMatchObject({ completedSplits: 0, cpuExact: false })
    expect(stats.memoryBytes).toBe(stats.peakMemoryBytes)
    // The change of the figures makes a new version of the status.
    await expect.poll(() => now().version, { timeout: 120_000 }).toBeGreaterThan(version)
    worker.tasks.get(taskId)!.cancel('CANCELED')
    await ended
    expect(now().state).toBe('CANCELED')
    expect(now().stats).toMatchObject({ cpuExact: false, memoryBytes: 0 })
    expect(now().stats.cpuNanos).toBeGreaterThanOrEqual(stats.cpuNanos)
  })

  it('fails with TRANSACTION_CONFLICT if a file changed since its split was listed', async () => {
    const scan = await worker.lakeTable('changing', [numbers(0, 10)], ['id'])
    const update = await updateFor([scan], 'SELECT id AS c0 FROM "$s0"', 1)
    await worker.lakeTable('changing', [numbers(0, 11)], ['id'])
    const status = await worker.run(worker.nextTaskId(), update)
    expect(status).toMatchObject({ state: 'FAILED', pages: [], failure: { errorName: 'TRANSACTION_CONFLICT' } })
  })
})
