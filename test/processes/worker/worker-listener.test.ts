import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createWorkerListener } from '../../../src/processes/worker/worker-listener.ts'
import { createWorkerState } from '../../../src/protocol/task/worker-state.ts'
import { createPendingMeters, type Meters } from '../../../src/telemetry/meters.ts'
import { noSpans } from '../../../src/telemetry/span.ts'

const closing: (() => void)[] = []
afterEach(() => closing.splice(0).forEach((close) => close()))

/** The listener of a worker. Its task routes answer `/v1/task`, and throw at `/v1/task/broken`. */
async function bed(mayWatch = () => true) {
  const reported: { bugs: unknown[]; counted: unknown[] } = { bugs: [], counted: [] }
  const left: string[] = []
  const meters: Meters = {
    ...createPendingMeters(),
    count: (name, labels) => void reported.counted.push([name, labels]),
    text: async () => ({ contentType: 'text/plain', body: 'the figures' }),
  }
  const server = createServer(
    createWorkerListener({
      policy: { authenticated: false, publicHosts: [] },
      tasks(request, response) {
        if (request.url === '/v1/task/broken') throw new TypeError('a bug')
        if (request.url !== '/v1/task') return false
        response.end('the tasks')
        return true
      },
      state: createWorkerState({
        bearer: 'key',
        openReads: true,
        nodeId: 'worker-a',
        tasks: {
          epochs: { accept: (epoch) => (epoch < 7 ? 'stale' : 'accepted'), seen: () => 7 },
          noteContact: () => {},
        },
        isLeaving: () => left.length > 0,
        leave: async () => void left.push('asked'),
      }),
      info: () => ({ coordinator: false }),
      meters: () => meters,
      mayWatch,
      spans: () => noSpans,
      onError: (error) => reported.bugs.push(error),
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(
    () => void server.closeAllConnections(),
    () => void server.close(),
  )
  const { port } = server.address() as AddressInfo
  const ask = async (path: string, { method = 'GET', headers = {}, body: sent = '' } = {}) => {
    const request = httpRequest({ port, host: '127.0.0.1', path, method, headers, agent: false })
    request.end(sent)
    const [response] = (await once(request, 'response')) as [NodeJS.ReadableStream & { statusCode: number }]
    let body = ''
    for await (const part of response) body += String(part)
    return { status: response.statusCode, body }
  }
  return { ask, reported }
}

describe('The listener of a worker', () => {
  it('serves tasks, information and metrics', async () => {
    const { ask } = await bed()
    expect(await ask('/v1/task')).toEqual({ status: 200, body: 'the tasks' })
    expect(await ask('/v1/info')).toEqual({ status: 200, body: '{"coordinator":false}' })
    expect(await ask('/metrics')).toEqual({ status: 200, body: 'the figures' })
  })

  it('serves the state of the worker, and lets only the writer change it', async () => {
    const { ask } = await bed()
    const put = async (body: string, headers: Readonly<Record<string, string>>) =>
      (await ask('/v1/info/state', { method: 'PUT', body, headers })).status
    const key = { authorization: 'Bearer key', 'x-engine-epoch': '7' }
    const asked = '"SHUTTING_DOWN"'
    expect(await put(asked, {})).toBe(401)
    expect(await put(asked, { authorization: 'Bearer other', 'x-trino-user': 'admin' })).toBe(401)
    expect(await put(asked, { ...key, 'x-engine-epoch': '6' })).toBe(409)
    expect(await put(asked, { authorization: 'Bearer key' })).toBe(400)
    for (const other of ['"ACTIVE"', 'SHUTTING_DOWN', '{}', '']) expect(await put(other, key)).toBe(400)
    expect(await ask('/v1/info/state')).toEqual({ status: 200, body: '"ACTIVE"' })
    expect(await put(asked, key)).toBe(200)
    expect(await put(asked, key)).toBe(200)
    expect(await ask('/v1/info/state')).toEqual({ status: 200, body: '"SHUTTING_DOWN"' })
    expect((await ask('/v1/info/state', { method: 'DELETE' })).status).toBe(404)
  })

  it('answers 401 for metrics to callers without the right to watch', async () => {
    const { ask } = await bed(() => false)
    expect((await ask('/metrics')).status).toBe(401)
    expect((await ask('/metrics', { method: 'HEAD' })).status).toBe(401)
    expect((await ask('/v1/info')).status).toBe(200)
  })

  it('answers 404 to all other paths and methods', async () => {
    const { ask, reported } = await bed()
    for (const [path, method] of [
      ['/v1/statement', 'POST'],
      ['/v1/info', 'DELETE'],
      ['/ui', 'GET'],
    ] as const)
      expect((await ask(path, { method })).status).toBe(404)
    expect(reported.bugs).toEqual([])
  })

  it('answers 403 to requests for another host, and counts them', async () => {
    const { ask, reported } = await bed()
    expect((await ask('/v1/info', { headers: { host: 'evil.example' } })).status).toBe(403)
    expect(reported.counted).toContainEqual(['httpRefusals', { reason: 'origin' }])
  })

  it('answers 500 to a bug without its text, and reports it', async () => {
    const { ask, reported } = await bed()
    const { status, body } = await ask('/v1/task/broken')
    expect(status).toBe(500)
    expect(body).not.toContain('a bug')
    expect(reported.bugs).toEqual([new TypeError('a bug')])
  })
})
