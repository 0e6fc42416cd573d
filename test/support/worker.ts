import { createRowDigester } from '../../src/shared/row-digest.ts'
import { DuckDBInstance } from '@duckdb/node-api'
import { createServer } from 'node:http'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { duckdbTypeOf } from '../../src/processes/connector-factories.ts'
import { lakeConnector } from '../../src/connectors/lake/lake-connector.ts'
import { allowedDirectories, createCatalogs } from '../../src/connectors/spi/catalog-files.ts'
import type { Connector, ConnectorContext } from '../../src/connectors/spi/connector.ts'
import { tpchConnector } from '../../src/connectors/tpch/tpch-connector.ts'
import type { Fragment, Split } from '../../src/execution/api/fragment.ts'
import { internalHeaders, taskStatusJson, type TaskStatus, type TaskUpdate } from '../../src/execution/api/task.ts'
import type { EnginePool } from '../../src/execution/engine/engine.ts'
import {
  createTaskManager,
  type TaskManager,
  type TaskManagerOptions,
} from '../../src/execution/worker/task-manager.ts'
import type { WorkerEvent } from '../../src/execution/worker/worker-events.ts'
import { createTaskRoutes } from '../../src/protocol/task/task-routes.ts'
import { taskId as makeTaskId, type QueryId, type TaskId, parseQueryId } from '../../src/shared/ids.ts'
import { openTestPool, type TestPool } from './engines.ts'

export const bearer = 'the-key-of-the-test-cluster'
const etc = new URL('../../etc', import.meta.url).pathname

export interface TestWorker extends AsyncDisposable {
  readonly engines: TestPool
  readonly tasks: TaskManager
  readonly events: WorkerEvent[]
  readonly url: string
  /** The folder of the worker. */
  readonly folder: string
  /** Location of the catalog `lake`. */
  readonly lake: string
  readonly tpch: Connector
  readonly lakeConnector: Connector
  /** Writes a table of the lake, one Parquet file for each SELECT, and returns a scan of it. */
  lakeTable(table: string, selects: readonly string[], columns: readonly string[]): Promise<TestScan>
  /** A new task id. */
  nextTaskId(): TaskId
  /** Sends a request as a coordinator of epoch 1 does. */
  call(method: string, path: string, options?: CallOptions): Promise<Response>
  /** Creates a task and waits until it has ended. */
  run(taskId: TaskId, update: TaskUpdate): Promise<TaskStatus>
  /** The rows of all pages of a task, in order. */
  rows(taskId: TaskId): Promise<unknown[][]>
  /** Acts as a restart of the worker: another process over the same disk. */
  restart(): Promise<TaskManager>
}

export interface CallOptions {
  readonly body?: unknown
  readonly headers?: Record<string, string>
  /** @default 1 */
  readonly epoch?: number
  readonly anonymous?: boolean
}

const MB = 1024 * 1024

export type TestWorkerOptions = Partial<Omit<TaskManagerOptions, 'folder' | 'engines' | 'catalogs' | 'limits'>> & {
  readonly limits?: Partial<TaskManagerOptions['limits']>
  readonly openReads?: boolean
  readonly postWaitMs?: number
  /** Wraps the engines, for example to lose them at chosen moments. */
  readonly wrapEngines?: (pool: EnginePool) => Pick<EnginePool, 'run'>
}

/** A worker over real engines, the tpch catalog and an empty lake, behind a real HTTP server. */
export async function openTestWorker(options: TestWorkerOptions = {}): Promise<TestWorker> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-worker-')))
  const folder = join(root, 'worker-1')
  const lake = realpathSync(mkdtempSync(join(root, 'lake-')))
  let inspect: EnginePool['inspect'] = () => Promise.reject(new Error('not started'))
  const context: ConnectorContext = {
    dataDir: root,
    tablesDir: join(root, 'tables'),
    shippedDir: etc,
    catalogDir: root,
    inspect: (question) => inspect(question),
    duckdbType: duckdbTypeOf,
  }
  const tpch = tpchConnector.create('tpch', { connector: 'tpch' }, context)
  const lakeCatalog = lakeConnector.create('lake', { connector: 'lake', location: lake }, context)
  const catalogs = createCatalogs(
    new Map([
      ['tpch', tpch],
      ['lake', lakeCatalog],
    ]),
  )
  const engines = await openTestPool({ allowedDirectories: allowedDirectories(catalogs) })
  inspect = engines.pool.inspect
  const events: WorkerEvent[] = []
  const managerOptions: TaskManagerOptions = {
    onEvent: (event) => events.push(event),
    forgetAfterMs: 600_000,
    ...options,
    limits: { pageBytes: MB, pageMaxBytes: 64 * MB, queryBytes: 1024 * MB, totalBytes: 10_240 * MB, ...options.limits },
    folder,
    digester: createRowDigester(Buffer.alloc(32, 7)),
    engines: options.wrapEngines?.(engines.pool) ?? engines.pool,
    catalogs,
  }
  const tasks = createTaskManager(managerOptions)
  await tasks.start()
  let current = tasks

  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const route = (): ReturnType<typeof createTaskRoutes> =>
    createTaskRoutes({
      tasks: current,
      bearer,
      openReads: options.openReads ?? true,
      url,
      ...(options.postWaitMs !== undefined && { postWaitMs: options.postWaitMs }),
      onError: (error) => events.push({ type: 'failedOutside', what: 'request', error }),
    })
  let routes = route()
  server.on('request', (request, response) => {
    if (!routes(request, response)) response.writeHead(404).end()
  })

  let counter = 0
  const worker: TestWorker = {
    engines,
    tasks,
    events,
    url,
    folder,
    lake,
    tpch,
    lakeConnector: lakeCatalog,
    async lakeTable(table, selects, columns) {
      mkdirSync(join(lake, 's', table), { recursive: true })
      const instance = await DuckDBInstance.create(':memory:')
      const connection = await instance.connect()
      for (const [part, select] of selects.entries()) {
        await connection.run(`COPY (${select}) TO '${lake}/s/${table}/part-${part}.parquet' (FORMAT parquet)`)
      }
      connection.closeSync()
      instance.closeSync()
      return { connector: lakeCatalog, schema: 's', table, columns }
    },
    nextTaskId: () => makeTaskId(`20260101_000000_${String(counter++).padStart(5, '0')}_00001` as QueryId, 1, 0),
    call: (method, path, { body, headers, epoch = 1, anonymous } = {}) =>
      fetch(`${url}${path}`, {
        method,
        headers: {
          ...(anonymous ? {} : { authorization: `Bearer ${bearer}` }),
          [internalHeaders.epoch]: String(epoch),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    async run(taskId, update) {
      await current.update(taskId, update).ended
      return current.get(taskId)!.status()
    },
    async rows(taskId) {
      const task = current.get(taskId)!
      const rows: unknown[][] = []
      for (const { token } of task.status().pages) {
        rows.push(...(JSON.parse((await task.page(token))!.bytes.toString()) as unknown[][]))
      }
      return rows
    },
    async restart() {
      await current.stop()
      current = createTaskManager(managerOptions)
      await current.start()
      routes = route()
      return current
    },
    async [Symbol.asyncDispose]() {
      await current.stop()
      server.closeAllConnections()
      server.close()
      await engines[Symbol.asyncDispose]()
      rmSync(root, { recursive: true, force: true })
    },
  }
  return worker
}

export interface TestScan {
  readonly connector: Connector
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[]
}

/** A task update over whole tables, as the planner makes it. The outputs are plain columns c0, c1 …. */
export async function updateFor(
  scans: readonly TestScan[],
  sql: string,
  outputs: number,
  fragment: Partial<Fragment> = {},
  update: Partial<TaskUpdate> = {},
): Promise<TaskUpdate> {
  const splits: Split[] = []
  const described: Fragment['scans'] = []
  for (const [scan, { connector, schema, table, columns }] of scans.entries()) {
    const { handle } = (await connector.getTable(schema, table))!
    described.push({ catalog: connector.catalog, schema, table, handle: { ...handle }, columns: [...columns] })
    for (const { catalog, data, rows, bytes, columnBytes } of await connector.listSplits(handle)) {
      splits.push({
        scan,
        catalog,
        data: { ...data },
        ...(rows !== undefined && { rows }),
        ...(bytes !== undefined && { bytes }),
        ...(columnBytes && { columnBytes: { ...columnBytes } }),
      })
    }
  }
  return {
    session: { queryId: parseQueryId('20260101_000000_00000_00001'), user: 'test', startTimeMillis: 0 },
    fragment: {
      sql,
      scans: described,
      output: Array.from({ length: outputs }, (_, i) => ({
        name: `c${i}`,
        type: 'unknown',
        typeSignature: null,
        wire: `c${i}`,
      })),
      streams: false,
      ordered: false,
      estimate: { small: true },
      risky: false,
      ...fragment,
    },
    splits,
    noMoreSplits: true,
    outputBuffers: { buffers: ['0'] },
    attempt: 0,
    profile: false,
    ...update,
  }
}

export const statusHeaders = { accept: taskStatusJson }
