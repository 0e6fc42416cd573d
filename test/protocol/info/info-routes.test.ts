import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createInfoRoutes } from '../../../src/protocol/info/info-routes.ts'
import { openApiDocument } from '../../../src/protocol/info/open-api.ts'
import { serverInfo, serverStatus, type ServerStatus } from '../../../src/protocol/info/schemas/server.ts'
import { serve, type HttpApp } from '../../support/http-app.ts'
import { parseNodeId } from '../../../src/shared/ids.ts'

let app: HttpApp
let ready = true

const dependencies: { log: 'up' | 'down'; database: 'up' | 'down' } = { log: 'up', database: 'up' }
let projection: ServerStatus['projection'] = { state: 'following' }
beforeAll(async () => {
  app = await serve(
    createInfoRoutes({
      clock: { now: () => 0, monotonicMs: () => 91_000 },
      startedAtMs: 1000,
      nodeId: parseNodeId('c1'),
      version: '0.1.0',
      environment: 'test',
      ready: () => ready,
      writerState: () => ({ writer: true, epoch: 3 }),
      status: async () => ({
        ...dependencies,
        lag: { events: 2, oldestMillis: 40 },
        ...(projection && { projection }),
        deadLetters: 1,
        restarts: 4,
        workers: { active: 2, suspect: 1, failed: 0 },
        openQueries: 5,
      }),
      openApi: () => openApiDocument('0.1.0'),
    }),
  )
})
afterAll(() => app.close())

async function get(path: string) {
  const response = await fetch(app.base + path)
  return { response, body: (await response.json()) as Record<string, unknown> }
}

describe('GET /v1/info', () => {
  it.each([
    ['nodeVersion', { version: '0.1.0' }],
    ['environment', 'test'],
    ['coordinator', true],
    ['starting', false],
    ['writer', true],
    ['epoch', 3],
    ['uptime', '1.50m'],
    ['nodeId', 'c1'],
  ])('returns %s', async (field, value) => {
    expect((await get('/v1/info')).body[field]).toEqual(value)
  })

  it('reports starting, and GET /v1/status reports not ready while it starts or the log is down', async () => {
    ready = false
    expect((await get('/v1/info')).body['starting']).toBe(true)
    expect((await get('/v1/status')).body['ready']).toBe(false)
    ready = true
    dependencies.log = 'down'
    expect((await get('/v1/status')).body).toMatchObject({ live: true, ready: false, log: 'down' })
    dependencies.log = 'up'
    // Statements can run without the database.
    dependencies.database = 'down'
    expect((await get('/v1/status')).body).toMatchObject({ ready: true, database: 'down' })
    dependencies.database = 'up'
  })

  it('answers with a body that fits its schema', async () => {
    const { response, body } = await get('/v1/info')
    expect(serverInfo.parse(body)).toEqual(body)
    expect(response.headers.get('content-type')).toBe('application/json')
  })
})

describe('GET /v1/status', () => {
  it('returns liveness, readiness, the state of log and database, lag and restarts', async () => {
    const { body } = await get('/v1/status')
    expect(body).toEqual({
      live: true,
      ready: true,
      log: 'up',
      database: 'up',
      writer: true,
      epoch: 3,
      lag: { events: 2, oldestMillis: 40 },
      projection: { state: 'following' },
      deadLetters: 1,
      restarts: 4,
      workers: { active: 2, suspect: 1, failed: 0 },
      openQueries: 5,
    })
    expect(serverStatus.parse(body)).toEqual(body)
  })
})

describe('GET /v1/status about the projection', () => {
  afterEach(() => (projection = { state: 'following' }))

  it('reports ready while the projection retries', async () => {
    projection = { state: 'retrying', since: '2026-01-01T00:00:00.000Z', reason: 'SQLSTATE 53100' }
    const { body } = await get('/v1/status')
    expect(body).toMatchObject({ ready: true, projection })
    expect(serverStatus.parse(body)).toEqual(body)
  })

  it('reports not ready when the projection has stopped, because the history may differ from the log', async () => {
    projection = { state: 'stopped', since: '2026-01-01T00:00:00.000Z', reason: 'The log ends before offset 7' }
    const { body } = await get('/v1/status')
    expect(body).toMatchObject({ ready: false, projection })
    expect(serverStatus.parse(body)).toEqual(body)
  })
})

describe('GET /openapi.json', () => {
  it('lists the endpoints of the interface with their methods', async () => {
    const { body } = await get('/openapi.json')
    const paths = body['paths'] as Record<string, Record<string, unknown>>
    const endpoints = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(endpoints).toEqual(
      expect.arrayContaining([
        'POST /v1/statement',
        'GET /v1/statement/{queryId}/{token}',
        'DELETE /v1/statement/{queryId}/{token}',
        'GET /v1/task',
        'POST /v1/task/{taskId}',
        'DELETE /v1/task/{taskId}',
        'GET /v1/task/{taskId}',
        'GET /v1/task/{taskId}/results/{outputId}/{token}',
        'DELETE /v1/task/{taskId}/results/{outputId}',
        'GET /v1/node',
        'GET /v1/node/failed',
        'GET /v1/query',
        'GET /v1/query/{queryId}',
      ]),
    )
  })

  it('defines every schema that it refers to', async () => {
    const { body } = await get('/openapi.json')
    const refs = [...JSON.stringify(body).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(
      (match) => match[1],
    )
    const schemas = (body['components'] as { schemas: Record<string, unknown> }).schemas
    expect(refs.length).toBeGreaterThan(20)
    expect([...new Set(refs)].filter((name) => !Object.hasOwn(schemas, name!))).toEqual([])
  })

  it('declares the parameters of each path', async () => {
    const { body } = await get('/openapi.json')
    const paths = body['paths'] as Record<string, Record<string, { parameters?: { name: string; in: string }[] }>>
    for (const [path, item] of Object.entries(paths))
      for (const operation of Object.values(item)) {
        const wanted = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
        const declared = (operation.parameters ?? []).filter((one) => one.in === 'path').map((one) => one.name)
        expect([path, declared]).toEqual([path, wanted])
      }
  })

  it('describes the fields of query, node and task', async () => {
    const { body } = await get('/openapi.json')
    const schemas = (body['components'] as { schemas: Record<string, { properties: Record<string, unknown> }> }).schemas
    expect(Object.keys(schemas['QueryInfo']!.properties)).toEqual(
      expect.arrayContaining([
        'queryId',
        'session',
        'state',
        'self',
        'fieldNames',
        'query',
        'queryStats',
        'outputStage',
      ]),
    )
    expect(Object.keys(schemas['NodeInfo']!.properties)).toEqual(
      expect.arrayContaining([
        'uri',
        'age',
        'recentRequests',
        'recentFailures',
        'recentSuccesses',
        'recentFailureRatio',
        'lastRequestTime',
        'lastResponseTime',
      ]),
    )
    expect(Object.keys(schemas['TaskInfo']!.properties)).toEqual(
      expect.arrayContaining([
        'taskId',
        'version',
        'state',
        'self',
        'lastHeartbeat',
        'outputBuffers',
        'noMoreSplits',
        'stats',
        'failures',
        'outputs',
      ]),
    )
  })
})
