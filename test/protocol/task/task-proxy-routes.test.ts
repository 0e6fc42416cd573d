import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import { createWorkerClient, type WorkerClient } from '../../../src/coordinator/scheduler/worker-client.ts'
import type { KnownQuery } from '../../../src/coordinator/query/stream/state.ts'
import type { LiveQueryView } from '../../../src/protocol/query/live-queries.ts'
import type { TaskInfo } from '../../../src/protocol/info/schemas/task.ts'
import { createTaskProxyRoutes } from '../../../src/protocol/task/task-proxy-routes.ts'
import { parseQueryId, type TaskId } from '../../../src/shared/ids.ts'
import { createServerTrust } from '../../../src/shared/server-trust.ts'
import { queryLife } from '../../support/query-life.ts'
import { bearer, openTestWorker, updateFor, type TestWorker } from '../../support/worker.ts'

const queryId = parseQueryId('20260101_000000_00077_00001')
const workerTask = `${queryId}.1.0` as TaskId
const rootTask = `${queryId}.0.0`

/** A query whose stage 1 ran on the given worker, folded from its events. */
function viewOf(nodeUrl: string, events = 7): LiveQueryView {
  const known = foldQuery(queryId, queryLife(queryId).slice(0, events)) as KnownQuery
  const tasks = new Map(
    [...known.tasks].map(([id, task]) => [id, { ...task, ...(task.stage === 0 ? {} : { nodeUrl }) }]),
  )
  return { query: { ...known, tasks }, sequence: events, liveStats: new Map() }
}

describe('The task resource of the coordinator', () => {
  let worker: TestWorker
  let client: WorkerClient
  let server: Server
  let base: string
  let view: LiveQueryView

  beforeAll(async () => {
    worker = await openTestWorker({ openReads: false })
    client = createWorkerClient({
      trust: createServerTrust({}),
      epoch: () => 1,
      logId: 'a-log',
      bearer,
      requestTimeoutMs: 5_000,
      pageMaxBytes: 1 << 20,
      taskBodyBytes: 1024,
      onStaleEpoch: async () => true,
    })
    view = viewOf(worker.url)
    const routes = createTaskProxyRoutes({
      recent: async function* () {
        yield view
      },
      find: (id) => Promise.resolve(id === queryId ? view : undefined),
      findAsOf: (id, { sequence }) => Promise.resolve(id === queryId ? viewOf(worker.url, sequence ?? 4) : undefined),
      forward: client.forward,
      bearer,
      openReads: true,
      baseUri: () => base,
      maxBodyBytes: 1024 * 1024,
    })
    server = createServer((request, response) => {
      if (!routes(request, response)) response.writeHead(404).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    server.closeAllConnections()
    server.close()
    client.close()
    await worker[Symbol.asyncDispose]()
  })

  const call = (method: string, path: string, options: { body?: unknown; anonymous?: boolean } = {}) =>
    fetch(`${base}${path}`, {
      method,
      headers: options.anonymous ? {} : { authorization: `Bearer ${bearer}` },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    })

  it('lists all tasks, each with the address of the process that runs it', async () => {
    const list = (await (await call('GET', '/v1/task', { anonymous: true })).json()) as TaskInfo[]
    expect(list.map(({ taskId, self }) => [taskId, self]).sort()).toEqual([
      [rootTask, `${base}/v1/task/${rootTask}`],
      [workerTask, `${worker.url}/v1/task/${workerTask}`],
    ])
    for (const { stats } of list) expect(stats.totalCpuTime).toMatch(/^\d+\.\d\d/)
  })

  it('answers from the log when the worker no longer has the task', async () => {
    const info = (await (await call('GET', `/v1/task/${workerTask}`, { anonymous: true })).json()) as TaskInfo
    expect(info).toMatchObject({ taskId: workerTask, state: 'FINISHED' })
  })

  it('shows a task at an earlier moment (?asOf=) from the log', async () => {
    const asOf = (id: string, when: string) => call('GET', `/v1/task/${id}?asOf=${when}`, { anonymous: true })
    const states = await Promise.all(
      ['3', '2026-03-01T10:00:01Z', '7'].map(async (when) => {
        const answer = await asOf(workerTask, when)
        return [((await answer.json()) as TaskInfo).state, answer.headers.get('x-engine-sequence')]
      }),
    )
    expect(states).toEqual([
      ['PLANNED', '3'],
      ['FINISHED', '4'],
      ['FINISHED', '7'],
    ])
    expect((await asOf(workerTask, '2')).status).toBe(404)
    expect((await asOf(`${queryId}.1.9`, '7')).status).toBe(404)
    expect((await asOf(workerTask, 'never')).status).toBe(400)
    expect((await call('GET', '/v1/task?asOf=7', { anonymous: true })).status).toBe(400)
    expect(
      (await fetch(`${worker.url}/v1/task/${workerTask}?asOf=7`, { headers: { authorization: `Bearer ${bearer}` } }))
        .status,
    ).toBe(400)
  })

  it('forwards requests for the task of a worker, with the epoch and the cluster secret', async () => {
    const scan = { connector: worker.tpch, schema: 'tiny', table: 'nation', columns: ['nationkey'] }
    const body = await updateFor([scan], 'SELECT count(*) AS c0 FROM "$s0"', 1)
    const posted = await call('POST', `/v1/task/${workerTask}`, { body })
    expect(posted.status).toBe(200)
    await worker.tasks.get(workerTask)!.ended
    // The worker holds the page until it is acknowledged. The coordinator shows nothing as buffered once the query has ended.
    const { query } = view
    view = { ...view, query: { ...query, pages: query.pages.map((each) => ({ ...each, taskId: workerTask })) } }
    const buffers = [{ bufferId: '0', finished: true, bufferedPages: 0, pagesSent: 1 }]
    expect(await (await call('GET', `/v1/task/${workerTask}`)).json()).toMatchObject({ outputBuffers: { buffers } })
    view = viewOf(worker.url, 4)
    expect(await (await call('GET', `/v1/task/${workerTask}`)).json()).toMatchObject({
      self: `${worker.url}/v1/task/${workerTask}`,
      outputBuffers: { buffers: [{ finished: false, bufferedPages: 1 }] },
      stats: { rawInputPositions: 25 },
    })
    view = viewOf(worker.url)
    const page = await call('GET', `/v1/task/${workerTask}/results/0/0`)
    expect([page.status, page.headers.get('x-engine-page-next-token'), await page.text()]).toEqual([200, '1', '[[25]]'])
    expect((await call('DELETE', `/v1/task/${workerTask}/results/0?before=1`)).status).toBe(204)
    expect((await call('GET', `/v1/task/${workerTask}/results/0/0`)).status).toBe(410)
    expect((await call('DELETE', `/v1/task/${workerTask}`)).status).toBe(200)
    expect(worker.tasks.get(workerTask)).toBeUndefined()
  })

  it.each([
    ['GET', `/v1/task/20260101_000000_00001_00001.1.0`, 404],
    ['GET', `/v1/task/${queryId}.1.9`, 404],
    ['GET', '/v1/task/nonsense', 404],
    ['DELETE', `/v1/task/${rootTask}`, 409],
    ['GET', `/v1/task/${rootTask}`, 200],
    ['GET', `/v1/task/${rootTask}/results/0/0`, 409],
    ['PUT', `/v1/task/${workerTask}`, 405],
  ])('answers %s %s with %i', async (method, path, status) => {
    expect((await call(method, path)).status).toBe(status)
  })

  it('answers 401 without the cluster secret to all requests but reads of task info', async () => {
    for (const [method, path] of [
      ['POST', `/v1/task/${workerTask}`],
      ['DELETE', `/v1/task/${workerTask}`],
      ['GET', `/v1/task/${workerTask}/results/0/0`],
    ] as const) {
      expect((await call(method, path, { anonymous: true })).status).toBe(401)
    }
  })

  it('answers 503 for a page when the worker does not answer, and still shows the task info', async () => {
    view = viewOf('http://127.0.0.1:1')
    expect((await call('GET', `/v1/task/${workerTask}/results/0/0`)).status).toBe(503)
    expect((await call('GET', `/v1/task/${workerTask}`)).status).toBe(200)
  })
})
