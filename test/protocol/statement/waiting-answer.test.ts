import { ANYBODY } from '../../../src/protocol/access/caller.ts'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createStartingServer, type StartingServer } from '../../../src/processes/coordinator/starting-server.ts'
import { createStartNeeds, type StartNeeds } from '../../../src/processes/coordinator/start-needs.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { QueryEventType } from '../../../src/coordinator/query/stream/events.ts'
import type { KnownQuery } from '../../../src/coordinator/query/stream/state.ts'
import { createStatementMemory } from '../../../src/coordinator/dispatch/statement-memory.ts'
import { sendProblem, toProblem } from '../../../src/protocol/edge/problem.ts'
import type { RelayWriter } from '../../../src/protocol/relay/send-relayed.ts'
import { createWriterRelay } from '../../../src/protocol/relay/writer-relay.ts'
import { createStatementUris } from '../../../src/protocol/statement/next-uri.ts'
import type { LastKnown } from '../../../src/protocol/statement/waiting-answer.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { createServerTrust } from '../../../src/shared/server-trust.ts'
import { event, QUERY_ID } from '../../support/query-events.ts'
import { raw } from '../../support/statement-client.ts'

const uris = createStatementUris('a secret of the test')
const waits = { longPollMs: 20, postLogWaitMs: 40, deleteValidityWaitMs: 30 }
const servers: Server[] = []

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
})

function after(...types: readonly QueryEventType[]): KnownQuery {
  const state = foldQuery(
    QUERY_ID,
    types.map((type) => event(type)),
  )
  if (state.kind === 'NONE') throw new Error('a query is created')
  return state
}

const published = ['QueryCreated', 'QueryPlanned', 'TaskCreated', 'ResultPagesPublished'] as const

describe('A follower while there is no writer', () => {
  const relayed = (lastKnown: LastKnown, writer: () => RelayWriter | undefined = () => undefined) => {
    const relay = createWriterRelay({
      trust: createServerTrust({}),
      clock: systemClock,
      writer,
      writerLives: () => false,
      key: Buffer.alloc(32, 'k'),
      uris,
      lastKnown,
      checkResults: () => {},
      memory: createStatementMemory({ totalBytes: 10_000, userBytes: 10_000, addressBytes: 10_000 }),
      limits: { ...waits, headerBytes: 64 * 1024, statementBytes: 1000, taskBodyBytes: 1000 },
    })
    return serve((request, response) => {
      relay
        .routes(request, response, request.url!)
        .catch((error: unknown) => sendProblem(request, response, toProblem(error)))
    })
  }

  it('answers with the last known state and columns of a query, without a page', async () => {
    const base = await relayed(async () => after(...published))
    const { status, json } = await raw(uris.nextUri(base, QUERY_ID, 0))
    expect(status).toBe(200)
    expect(json).toMatchObject({ id: QUERY_ID, nextUri: uris.nextUri(base, QUERY_ID, 0), columns: [{ name: 'a' }] })
    expect(json.infoUri).toBe(`${base}/v1/query/${QUERY_ID}`)
    expect(json.stats).toMatchObject({ state: 'FINISHING', queued: false })
    expect(json.data).toBeUndefined()
  })

  it('does not report the end of a result whose last page it cannot give', async () => {
    const base = await relayed(async () => after(...published, 'QueryFinished'))
    const { json } = await raw(uris.nextUri(base, QUERY_ID, 1))
    expect(json.nextUri).toBe(uris.nextUri(base, QUERY_ID, 1))
    expect(json.stats.state).toBe('FINISHING')
  })

  it('reports the failure of a query as the final answer', async () => {
    const base = await relayed(async () => after('QueryCreated', 'QueryFailed'))
    const { json } = await raw(uris.nextUri(base, QUERY_ID, 0))
    expect(json.nextUri).toBeUndefined()
    expect(json.error).toMatchObject({ errorName: 'DIVISION_BY_ZERO' })
    expect(json.stats.state).toBe('FAILED')
  })

  it('reports QUEUED for a query that it does not know, and answers 503 to a POST', async () => {
    const base = await relayed(async () => undefined)
    const { json } = await raw(uris.nextUri(base, QUERY_ID, 0))
    expect(json).toMatchObject({ nextUri: uris.nextUri(base, QUERY_ID, 0), stats: { state: 'QUEUED', nodes: 0 } })
    expect((await raw(`${base}/v1/statement/${QUERY_ID}/0.wrong`)).status).toBe(404)
    const refused = await raw(`${base}/v1/statement`, { method: 'POST', body: 'SELECT 1' })
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
  })

  it('accepts a cancel, and relays it to the next writer', async () => {
    const writer: { now: RelayWriter | undefined } = { now: undefined }
    const base = await relayed(
      async () => undefined,
      () => writer.now,
    )
    const canceled = uris.nextUri(base, QUERY_ID, 0)
    expect((await raw(canceled, { method: 'DELETE' })).status).toBe(204)
    const passedOn = new Promise<string>((resolve) => {
      void serve((request, response) => {
        resolve(`${request.method} ${request.url}`)
        response.writeHead(204).end()
      }).then((address) => (writer.now = { address, epoch: 4 }))
    })
    expect(await passedOn).toBe(`DELETE ${new URL(canceled).pathname}`)
    expect((await raw(`${base}/v1/statement/${QUERY_ID}/0.wrong`, { method: 'DELETE' })).status).toBe(404)
  })
})

describe('A coordinator that starts to replace another', () => {
  let starting: StartingServer
  let needs: StartNeeds
  const started = () => {
    needs = createStartNeeds(true)
    starting = createStartingServer({
      clock: systemClock,
      needs,
      info: () => ({ starting: true }),
      restarts: () => 3,
      uris,
      lastKnown: async () => after(...published),
      checkResults: () => {},
      policy: { authenticated: false, publicHosts: [] },
      access: { callerAt: () => ANYBODY },
      waits,
      onError: (error) => {
        throw error
      },
    })
    return serve(starting.listener)
  }

  it('answers information, status, polls and cancels while the log does not answer', async () => {
    const base = await started()
    needs.failed('database')
    expect((await raw(`${base}/v1/info`)).json).toEqual({ starting: true })
    expect((await raw(`${base}/v1/status`)).json).toMatchObject({
      live: true,
      ready: false,
      writer: false,
      log: 'down',
      database: 'down',
      restarts: 3,
    })
    const polled = await raw(uris.nextUri(base, QUERY_ID, 0))
    expect(polled.status).toBe(200)
    expect(polled.json.nextUri).toBe(uris.nextUri(base, QUERY_ID, 0))
    expect(polled.json.stats.state).toBe('FINISHING')
    expect((await raw(uris.nextUri(base, QUERY_ID, 0), { method: 'HEAD' })).status).toBe(200)
    expect((await raw(`${base}/v1/statement/${QUERY_ID}/0.wrong`)).status).toBe(404)
    for (const [path, method] of [
      ['/v1/statement', 'POST'],
      [`/v1/query/${QUERY_ID}`, 'GET'],
    ] as const)
      expect(await raw(base + path, { method })).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    expect((await raw(uris.nextUri(base, QUERY_ID, 0), { method: 'DELETE' })).status).toBe(204)
    expect((await raw(`${base}/v1/statement/${QUERY_ID}/0.wrong`, { method: 'DELETE' })).status).toBe(404)
    const foreign = await raw(`${base}/v1/status`, { headers: { origin: 'http://elsewhere.example' } })
    expect(foreign.status).toBe(403)
    const carriedOut: string[] = []
    const answered = new Promise<void>((resolve) =>
      starting.handOver((request, response) => {
        carriedOut.push(`${request.method} ${new URL(request.url!, base).pathname}`)
        response.once('finish', resolve)
        response.writeHead(204).end()
      }),
    )
    await answered
    expect(carriedOut).toEqual([`DELETE ${new URL(uris.nextUri(base, QUERY_ID, 0)).pathname}`])
  })

  it('holds all requests while its dependencies answer, and hands them to the started coordinator', async () => {
    const base = await started()
    const waiting = [
      raw(`${base}/v1/statement`, { method: 'POST', body: 'SELECT 1' }),
      raw(uris.nextUri(base, QUERY_ID, 0)),
      raw(`${base}/v1/status`),
    ]
    let early = false
    for (const one of waiting) void one.then(() => (early = true))
    // This is longer than any of these requests waits for a log that does not answer.
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(early).toBe(false)
    starting.handOver((request, response) => {
      request.resume()
      response.end(`${request.method} by the coordinator`)
    })
    expect((await Promise.all(waiting)).map(({ text }) => text)).toEqual([
      'POST by the coordinator',
      'GET by the coordinator',
      'GET by the coordinator',
    ])
    expect((await raw(`${base}/v1/info`)).text).toBe('GET by the coordinator')
  })
})
