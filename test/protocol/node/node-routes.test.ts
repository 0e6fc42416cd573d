import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMembership, type Membership } from '../../../src/coordinator/nodes/membership.ts'
import type { LiveQueryView } from '../../../src/protocol/query/live-queries.ts'
import { createNodeRoutes, type ForgottenReport } from '../../../src/protocol/node/node-routes.ts'
import { nodeInfoSchema } from '../../../src/protocol/info/schemas/server.ts'
import { allowAll } from '../../../src/security/authorization.ts'
import { serve, type HttpApp } from '../../support/http-app.ts'
import { parseNodeId } from '../../../src/shared/ids.ts'

const START = Date.parse('2026-03-01T10:00:00.000Z')
const announcement = { url: 'http://127.0.0.1:9001', version: '0.1.0', cores: 4, memoryBytes: 1024, epochSeen: 7 }

let now = 0
let membership: Membership
let app: HttpApp
const forgotten: ForgottenReport[] = []
const open: LiveQueryView[] = []

beforeAll(async () => {
  membership = createMembership({
    log: { append: async () => ({ partition: 0, offset: 0n, events: [] }) },
    clock: { now: () => START + now, monotonicMs: () => now },
    limits: { beatMs: 1000, failedMs: 5000 },
    writes: () => true,
  })
  app = await serve(
    createNodeRoutes({
      membership,
      isInternal: (request) => request.get('authorization') === 'Bearer key',
      identify: () => ({ user: 'alice', groups: [] }),
      authorize: allowAll,
      epoch: () => 7,
      live: { list: () => open },
      async recordForgotten(reported) {
        forgotten.push(reported)
        if (forgotten.length === 1) throw new Error('the log is away')
      },
    }),
  )
  // 1000 requests within five seconds, then a minute without requests.
  membership.announce({
    ...announcement,
    nodeId: parseNodeId('good'),
    url: 'http://127.0.0.1:9002',
    uptimeMillis: 30_000,
  })
  for (let request = 0; request < 999; request++) membership.outcome('http://127.0.0.1:9002', undefined)
  membership.announce({ ...announcement, nodeId: parseNodeId('bad') })
  for (let request = 0; request < 40; request++)
    membership.outcome(announcement.url, Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
  now = 60_000
  membership.announce({ ...announcement, nodeId: parseNodeId('fresh'), url: 'http://127.0.0.1:9003' })
})
afterAll(async () => {
  await app.close()
  await membership.stop()
})

type Node = Record<string, unknown> & { nodeId: string }

async function list(path: string, accept?: string): Promise<{ response: Response; nodes: Node[] }> {
  const response = await fetch(app.base + path, accept ? { headers: { accept } } : {})
  return { response, nodes: (await response.json()) as Node[] }
}

async function node(nodeId: string): Promise<Node> {
  const found = (await list('/v1/node')).nodes.find((one) => one.nodeId === nodeId)
  if (!found) throw new Error(`no node ${nodeId}`)
  return found
}

describe('GET /v1/node', () => {
  it.each([
    ['uri', 'http://127.0.0.1:9002'],
    ['age', '1.50m'],
    ['recentFailures', 0],
    ['recentFailureRatio', 0],
    ['recentFailuresByType', {}],
    ['lastRequestTime', '2026-03-01T10:00:00.000Z'],
    ['lastResponseTime', '2026-03-01T10:00:00.000Z'],
    ['nodeVersion', { version: '0.1.0' }],
    ['cores', 4],
    ['memoryBytes', 1024],
  ])('reports %s of a node', async (field, value) => {
    expect((await node('good'))[field]).toEqual(value)
  })

  it('counts the tasks of open queries on each worker', async () => {
    const tasks = ['RUNNING', 'FINISHED', 'PLANNED'].map((state, index) => [
      `q.1.${index}`,
      { state, nodeUrl: 'http://127.0.0.1:9002' },
    ])
    open.push({ query: { tasks: new Map(tasks as []) } } as unknown as LiveQueryView)
    expect((await node('good'))['runningTasks']).toBe(2)
    expect((await node('fresh'))['runningTasks']).toBe(0)
  })

  it('decays the counts: 1000 requests of a minute ago count as 367', async () => {
    const { recentRequests, recentSuccesses } = await node('good')
    expect(Math.abs((recentRequests as number) - 367)).toBeLessThanOrEqual(1)
    expect(recentSuccesses).toBe(recentRequests)
  })

  it('answers with nodes that fit the schema in /openapi.json', async () => {
    for (const one of (await list('/v1/node')).nodes) expect(nodeInfoSchema.parse(one)).toEqual(one)
  })

  it('leaves out the last failure of a node that never failed', async () => {
    expect(await node('good')).not.toHaveProperty('lastFailureInfo')
  })

  it('reports the last failure of a node, and the failures by type', async () => {
    const bad = await node('bad')
    expect(bad['lastFailureInfo']).toEqual({
      type: 'Error.ECONNREFUSED',
      message: 'connect ECONNREFUSED',
      stack: expect.arrayContaining([expect.stringMatching(/^at /)]),
      suppressed: [],
    })
    const byType = bad['recentFailuresByType'] as Record<string, number>
    expect(byType['Error.ECONNREFUSED']).toBeCloseTo(40 / Math.E)
    expect(bad['recentFailures']).toBeCloseTo(40 / Math.E)
    expect(bad['recentFailureRatio']).toBeCloseTo(40 / 41)
  })

  it('answers with the type JavaScript, or JSON if the client names it in Accept, and with Vary: Accept', async () => {
    for (const accept of [undefined, '*/*', 'application/javascript']) {
      const { response } = await list('/v1/node', accept)
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('application/javascript')
      expect(response.headers.get('vary')).toBe('Accept')
    }
    const { response } = await list('/v1/node', 'application/json')
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('vary')).toBe('Accept')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  })
})

describe('GET /v1/node/failed', () => {
  it('lists the nodes that failed the last check, in the shape of GET /v1/node', async () => {
    const { response, nodes } = await list('/v1/node/failed')
    expect(response.headers.get('vary')).toBe('Accept')
    expect(response.headers.get('content-type')).toBe('application/javascript')
    expect(nodes.map((one) => one.nodeId)).toEqual(['bad'])
    expect(nodes[0]).toEqual(await node('bad'))
  })
})

describe('PUT /v1/announcement', () => {
  const put = (body: unknown, headers: Record<string, string> = { authorization: 'Bearer key' }) =>
    fetch(`${app.base}/v1/announcement`, { method: 'PUT', headers, body: JSON.stringify(body) })

  it('registers a worker and answers with the epoch', async () => {
    const response = await put({ ...announcement, nodeId: parseNodeId('w9'), url: 'http://127.0.0.1:9009' })
    expect(response.status).toBe(204)
    expect(response.headers.get('x-engine-epoch')).toBe('7')
    expect(membership.byUrl('http://127.0.0.1:9009')).toEqual({
      nodeId: parseNodeId('w9'),
      url: 'http://127.0.0.1:9009',
    })
    const left = await fetch(`${app.base}/v1/announcement/w9`, {
      method: 'DELETE',
      headers: { authorization: 'Bearer key' },
    })
    expect(left.status).toBe(204)
    expect(membership.byUrl('http://127.0.0.1:9009')).toBeUndefined()
  })

  it('answers 401 without the cluster secret', async () => {
    const response = await put({ ...announcement, nodeId: parseNodeId('evil'), url: 'http://127.0.0.1:9666' }, {})
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
    expect(membership.byUrl('http://127.0.0.1:9666')).toBeUndefined()
  })

  it('records a reset of epochs once, and confirms it in a header', async () => {
    const nodeId = parseNodeId('reset')
    const note = (id: string) => ({ id, at: '2026-03-01T09:00:00.000Z', host: 'h', by: 'root', epochs: [] })
    const report = async (id: string) => {
      const answer = await put({ ...announcement, nodeId, url: 'http://127.0.0.1:9010', forgottenEpochs: note(id) })
      return [answer.status, answer.headers.get('x-engine-recorded')]
    }
    const [first, second] = [randomUUID(), randomUUID()]
    expect((await report(first))[0]).toBe(500)
    expect(await report(first)).toEqual([204, first])
    expect(await report(first)).toEqual([204, first])
    expect(forgotten).toMatchObject([{ id: first }, { id: first, nodeId, by: 'root', remoteAddress: '127.0.0.1' }])
    expect(await report(second)).toEqual([204, second])
    // A worker that reports ever new resets does not fill the log.
    for (let other = 0; other < 20; other++) await report(randomUUID())
    expect(forgotten.length).toBeLessThan(15)
    expect((await report(randomUUID()))[1]).toBeNull()
    membership.leave(nodeId)
  })

  it('answers 400 to a body that is not an announcement', async () => {
    expect((await put({ nodeId: parseNodeId('w') })).status).toBe(400)
    expect(
      (
        await fetch(`${app.base}/v1/announcement`, {
          method: 'PUT',
          headers: { authorization: 'Bearer key' },
          body: '{',
        })
      ).status,
    ).toBe(400)
  })
})

it('the node resources answer HEAD and OPTIONS, and 405 to other methods', async () => {
  const head = await fetch(`${app.base}/v1/node`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
  const options = await fetch(`${app.base}/v1/node`, { method: 'OPTIONS' })
  expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
  const wrong = await fetch(`${app.base}/v1/node/failed`, { method: 'DELETE', headers: { accept: 'text/plain' } })
  expect([wrong.status, wrong.headers.get('allow'), wrong.headers.get('content-type')]).toEqual([
    405,
    'GET, HEAD, OPTIONS',
    'text/plain; charset=utf-8',
  ])
})
