import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { duckdbTypeOf } from '../../../src/processes/connector-factories.ts'
import type { ConnectorWriter, StoredColumn, TableChange } from '../../../src/connectors/spi/table-writer.ts'
import type { TaskStatus, TaskUpdate } from '../../../src/execution/api/task.ts'
import { EngineLost, type EnginePool, type EngineRun } from '../../../src/execution/engine/engine.ts'
import { openDuckDb, type Rows } from '../../support/duckdb.ts'
import { column, filesBelow } from '../../support/table-writes.ts'
import { openTestWorker, updateFor, type TestScan, type TestWorker } from '../../support/worker.ts'
import { scanText } from '../../../src/execution/engine/scan-text.ts'
import { parseQueryId } from '../../../src/shared/ids.ts'

const GB = 1024 ** 3
const duckdb = await openDuckDb()

describe('A task that writes', () => {
  let worker: TestWorker
  let writer: ConnectorWriter
  let freeBytes = 100 * GB
  /** Replacements for the next runs of the engines, in order. */
  const instead: ((pool: EnginePool) => EnginePool['run'])[] = []
  beforeAll(async () => {
    worker = await openTestWorker({
      diskSpace: () => Promise.resolve({ freeBytes, totalBytes: 200 * GB }),
      wrapEngines: (pool) => ({
        run: (statement) => (instead.shift()?.(pool) ?? pool.run)(statement),
      }),
    })
    writer = worker.lakeConnector.writer!
    await commit({ kind: 'createSchema', schema: 's' })
  })
  afterAll(() => worker[Symbol.asyncDispose]())

  let queries = 0
  const nextQuery = () => parseQueryId(`20260102_000000_${String(queries++).padStart(5, '0')}_00001`)

  async function commit(change: TableChange, files: Parameters<ConnectorWriter['prepare']>[1] = []): Promise<void> {
    await writer.commit(await writer.prepare(await writer.begin(nextQuery(), change), files))
  }

  function createTable(table: string, columns: readonly StoredColumn[]): TableChange {
    return { kind: 'createTable', schema: 's', table, columns: [...columns], replace: false }
  }

  /** Makes the update of a task that writes the rows of a SELECT to a new table, as the planner does. */
  async function writeUpdate(
    change: TableChange & { readonly table: string },
    sql: string,
    scans: readonly TestScan[] = [],
  ): Promise<TaskUpdate> {
    const target = await writer.begin(nextQuery(), change)
    const duckdbTypes = target.columns.map(({ type }) => duckdbTypeOf(type))
    return updateFor(scans, sql, 0, { write: { target, duckdbTypes }, streams: true, estimate: { small: false } })
  }

  async function finish(update: TaskUpdate, status: TaskStatus): Promise<void> {
    await writer.commit(await writer.prepare(update.fragment.write!.target, status.written!.files))
  }

  async function read(table: string): Promise<Rows> {
    const found = (await worker.lakeConnector.getTable('s', table))!
    const splits = await worker.lakeConnector.listSplits(found.handle)
    const names = found.columns.map(({ name }) => name)
    return duckdb.query(`FROM (${scanText(await worker.lakeConnector.tableSource(splits, names))}) ORDER BY ALL`)
  }

  const dataOf = (table: string): string[] => {
    const folder = join(worker.lake, 's', table, '_data')
    return existsSync(folder) ? filesBelow(folder) : []
  }

  it('writes the rows of its splits as files of its attempt, and lists no pages', async () => {
    // The column name `constructor` is also a property of every JavaScript object.
    const columns = [column('id', 'bigint'), column('constructor', 'varchar(25)')]
    const scans: TestScan[] = [
      { connector: worker.tpch, schema: 'tiny', table: 'nation', columns: ['nationkey', 'name'] },
    ]
    const change = createTable('nations', columns) as TableChange & { readonly table: string }
    const update = await writeUpdate(change, 'SELECT nationkey AS c0, name AS c1 FROM "$s0"', scans)
    const status = await worker.run(worker.nextTaskId(), update)
    expect(status).toMatchObject({ state: 'FINISHED', pages: [], batchesTotal: 1, written: { rows: 25 } })
    const [file] = status.written!.files
    expect(status.written!.files).toHaveLength(1)
    expect(file).toMatchObject({
      rows: 25,
      columnBytes: { id: expect.any(Number), constructor: expect.any(Number) } as object,
    })
    expect(dataOf('nations').map((path) => `_data/${path}`)).toEqual([file!.path])
    expect(status.stats).toMatchObject({ outputPositions: 25, outputBytes: file!.bytes })
    // The file is not part of a table yet.
    expect(await worker.lakeConnector.getTable('s', 'nations')).toBeUndefined()
    await finish(update, status)
    expect(await read('nations')).toEqual(
      await duckdb.query(
        `SELECT n_nationkey AS id, n_name AS constructor FROM '${new URL('../../../etc/tpch/tiny/nation.parquet', import.meta.url).pathname}' ORDER BY 1`,
      ),
    )
    const { handle } = (await worker.lakeConnector.getTable('s', 'nations'))!
    const bytes = Object.values(file!.columnBytes!).reduce((sum, each) => sum + each, 0)
    expect(await worker.lakeConnector.getStatistics(handle)).toEqual({ rows: 25, bytes })
  })

  it('writes values in the types of the table', async () => {
    const columns = [column('a', 'decimal(10, 2)'), column('b', 'array(row(x smallint))'), column('c "q"', 'varchar')]
    const change = createTable('typed', columns) as TableChange & { readonly table: string }
    const update = await writeUpdate(change, `SELECT 1 AS c0, [{'f0': 7}] AS c1, NULL AS c2`)
    await finish(update, await worker.run(worker.nextTaskId(), update))
    const [split] = await worker.lakeConnector.listSplits((await worker.lakeConnector.getTable('s', 'typed'))!.handle)
    const expression = scanText(await worker.lakeConnector.tableSource([split!], ['a', 'b', 'c "q"']))
    expect((await duckdb.query(`FROM (DESCRIBE ${expression})`)).map((one) => one.column_type)).toEqual([
      'DECIMAL(10,2)',
      'STRUCT(f0 SMALLINT)[]',
      'VARCHAR',
    ])
    expect(await read('typed')).toEqual([{ a: 1, b: [{ f0: 7 }], 'c "q"': null }])
  })

  it('writes no file if there are no rows', async () => {
    const change = createTable('none', [column('a', 'bigint')]) as TableChange & { readonly table: string }
    const update = await writeUpdate(change, 'SELECT 1 AS c0 WHERE false')
    const status = await worker.run(worker.nextTaskId(), update)
    expect(status).toMatchObject({ state: 'FINISHED', written: { rows: 0, files: [] } })
    expect(dataOf('none')).toEqual([])
    await finish(update, status)
    expect(await read('none')).toEqual([])
  })

  it('retries in another folder after its engine is lost, and removes the files of the lost attempt', async () => {
    const change = createTable('lost', [column('a', 'bigint')]) as TableChange & { readonly table: string }
    const update = await writeUpdate(change, 'SELECT i AS c0 FROM range(1000) t(i)')
    instead.push((pool) => (statement) => {
      // The engine writes all rows, and is lost before it can report that.
      const run: EngineRun = pool.run(statement)
      return { ...run, done: run.done.then(() => Promise.reject(new EngineLost('crash', 'gone'))) }
    })
    const taskId = worker.nextTaskId()
    const status = await worker.run(taskId, update)
    expect(status).toMatchObject({ state: 'FINISHED', written: { rows: 1000 } })
    expect(status.written!.files.map(({ path }) => path.split('/').slice(0, 3).join('/'))).toEqual([
      `_data/${update.fragment.write!.target.queryId}/${taskId}.2`,
    ])
    expect(dataOf('lost')).toHaveLength(1)
    await finish(update, status)
    expect(await read('lost')).toHaveLength(1000)
  })

  it.each([
    ['a statement fails', `SELECT CAST(error('no ' || i) AS BIGINT) AS c0 FROM range(10) t(i)`],
    ['a value does not fit the type', `SELECT 'x' || i AS c0 FROM range(10) t(i)`],
  ])('leaves no file behind if %s', async (_, sql) => {
    const change = createTable('failing', [column('a', 'bigint')]) as TableChange & { readonly table: string }
    const status = await worker.run(worker.nextTaskId(), await writeUpdate(change, sql))
    expect(status.state).toBe('FAILED')
    expect(status.written).toBeUndefined()
    expect(dataOf('failing')).toEqual([])
  })

  it('leaves no file behind if it is canceled', async () => {
    const change = createTable('canceled', [column('a', 'bigint')]) as TableChange & { readonly table: string }
    const update = await writeUpdate(change, 'SELECT a.i + b.i AS c0 FROM range(100000) a(i), range(100000) b(i)')
    const task = worker.tasks.update(worker.nextTaskId(), update)
    await expect.poll(() => dataOf('canceled').length, { interval: 5 }).toBeGreaterThan(0)
    task.cancel('CANCELED')
    expect(await task.ended).toBe('CANCELED')
    await expect.poll(() => dataOf('canceled'), { interval: 20 }).toEqual([])
  })

  it('fails without files if the disk is nearly full, at its start or while it runs', async () => {
    const change = createTable('full', [column('a', 'bigint')]) as TableChange & { readonly table: string }
    const endless = 'SELECT a.i + b.i AS c0 FROM range(100000) a(i), range(100000) b(i)'
    freeBytes = GB
    try {
      const status = await worker.run(worker.nextTaskId(), await writeUpdate(change, 'SELECT 1 AS c0'))
      expect(status).toMatchObject({ state: 'FAILED', failure: { errorName: 'OUT_OF_SPILL_SPACE' } })
      freeBytes = 100 * GB
      const task = worker.tasks.update(worker.nextTaskId(), await writeUpdate(change, endless))
      await expect.poll(() => dataOf('full').length, { interval: 5 }).toBeGreaterThan(0)
      freeBytes = GB
      expect(await task.ended).toBe('FAILED')
      expect(task.status().failure).toMatchObject({ errorName: 'OUT_OF_SPILL_SPACE' })
      expect(dataOf('full')).toEqual([])
    } finally {
      freeBytes = 100 * GB
    }
  })

  it('fails with SCHEMA_NOT_FOUND if the schema is gone', async () => {
    await commit({ kind: 'createSchema', schema: 'gone' })
    const change = { ...createTable('t', [column('a', 'bigint')]), schema: 'gone' } as TableChange & { table: string }
    const update = await writeUpdate(change, 'SELECT 1 AS c0')
    rmSync(join(worker.lake, 'gone'), { recursive: true })
    const status = await worker.run(worker.nextTaskId(), update)
    expect(status).toMatchObject({ state: 'FAILED', failure: { errorName: 'SCHEMA_NOT_FOUND' } })
    expect(existsSync(join(worker.lake, 'gone'))).toBe(false)
  })
})
