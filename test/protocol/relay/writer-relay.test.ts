import { createServer, request as httpRequest, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createStatementMemory, type StatementMemory } from '../../../src/coordinator/dispatch/statement-memory.ts'
import { sendProblem, toProblem } from '../../../src/protocol/edge/problem.ts'
import { createWriterRelay, type WriterRelay } from '../../../src/protocol/relay/writer-relay.ts'
import type { RemoteUri } from '../../../src/coordinator/clusters/relay/relay-port.ts'
import { createStatementUris } from '../../../src/protocol/statement/next-uri.ts'
import { createServerTrust } from '../../../src/shared/server-trust.ts'
import { QUERY_ID } from '../../support/query-events.ts'
import { raw } from '../../support/statement-client.ts'

const KEY = Buffer.alloc(32, 1)
const uris = createStatementUris('a secret of the test')

let writer: Server
let standby: Server
let relay: WriterRelay
let memory: StatementMemory
/** Requests that the writer has received and not answered. */
let arrived: { readonly bytes: number; readonly response: ServerResponse }[]
let onArrival: () => void

const portOf = (server: Server): number => (server.address() as AddressInfo).port
const listening = (server: Server): Promise<void> =>
  new Promise((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))

beforeEach(async () => {
  arrived = []
  onArrival = () => {}
  writer = createServer((request, response) => {
    let bytes = 0
    request.on('data', (part: Buffer) => (bytes += part.length))
    request.on('end', () => {
      arrived.push({ bytes, response })
      onArrival()
    })
  })
  await listening(writer)
  memory = createStatementMemory({ totalBytes: 200_000, userBytes: 66_000, addressBytes: 66_000 })
  relay = createWriterRelay({
    trust: createServerTrust({}),
    clock: { now: () => Date.now(), monotonicMs: () => performance.now() },
    writer: () => ({ address: `http://127.0.0.1:${portOf(writer)}`, epoch: 1 }),
    writerLives: () => true,
    key: KEY,
    uris,
    lastKnown: async () => undefined,
    checkResults: () => {},
    memory,
    limits: {
      headerBytes: 64 * 1024,
      statementBytes: 50_000,
      taskBodyBytes: 90_000,
      longPollMs: 1000,
      postLogWaitMs: 10_000,
      deleteValidityWaitMs: 1000,
    },
  })
  standby = createServer((request, response) => {
    relay.routes(request, response, request.url!).then(
      (handled) => handled || response.writeHead(418).end(),
      (error: unknown) => sendProblem(request, response, toProblem(error)),
    )
  })
  await listening(standby)
})
afterEach(() => {
  relay.close()
  for (const server of [writer, standby]) server.close().closeAllConnections()
})

/** @returns the status of the answer */
function post(bytes: number, path = '/v1/statement', headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      { port: portOf(standby), host: '127.0.0.1', method: 'POST', path, headers },
      (response) => {
        response.resume().on('end', () => resolve(response.statusCode!))
      },
    )
    sent.on('error', reject)
    sent.end('x'.repeat(bytes))
  })
}

const arrivals = (count: number): Promise<void> =>
  new Promise((resolve) => {
    onArrival = () => arrived.length >= count && resolve()
    onArrival()
  })

describe('Request bodies that a stand-by relays to the writer', () => {
  it('count against the memory limit until the writer answers: a further body gets 429 until then', async () => {
    const first = post(40_000)
    await arrivals(1)
    expect(memory.heldBytes).toBe(40_000)
    expect(await post(40_000)).toBe(429)
    arrived[0]!.response.end()
    expect(await first).toBe(200)
    expect(memory.heldBytes).toBe(0)
    const second = post(40_000)
    await arrivals(2)
    arrived[1]!.response.end()
    expect(await second).toBe(200)
  })

  it('count as they arrive when their length is not announced', async () => {
    const chunked = { 'transfer-encoding': 'chunked' }
    const task = '/v1/task/20260102_030405_00006_00001.1.0'
    const first = post(300, task, chunked)
    await arrivals(1)
    expect(memory.heldBytes).toBeGreaterThanOrEqual(300)
    expect(await post(300, task, chunked)).toBe(429)
    arrived[0]!.response.end()
    expect(await first).toBe(200)
    expect(memory.heldBytes).toBe(0)
  })

  it('get 413 above the size limit of statements or of task bodies', async () => {
    expect(await post(50_001)).toBe(413)
    expect(await post(90_001, '/v1/task/20260102_030405_00006_00001.1.0')).toBe(413)
    expect(arrived).toEqual([])
    expect(memory.heldBytes).toBe(0)
  })
})

describe('A page of a cluster that a stand-by relays from the writer', () => {
  const page = { attempt: 0, cluster: 'trino-a', uri: '/v1/statement/executing/x/1' as RemoteUri, rowsSent: false }
  const path = (): string => new URL(uris.nextUri('http://x', QUERY_ID, 3, page)).pathname
  const at = (): string => `http://127.0.0.1:${portOf(standby)}${path()}`

  it('is asked for with the same address, and again when the writer cuts it', async () => {
    const paths: string[] = []
    const body = Buffer.from(`{"data":[${'[1],'.repeat(100_000)}[2]]}`)
    writer.removeAllListeners('request')
    writer.on('request', ({ url }, response) => {
      paths.push(url!)
      response.writeHead(200, { 'content-type': 'application/json' })
      if (paths.length === 1) response.write(body.subarray(0, 200_000), () => response.destroy())
      else response.end(body)
    })
    const { text } = await raw(at())
    expect(text).toBe(body.toString())
    expect(paths).toEqual([path(), path()])
  })

  it('keeps its address in the answer of a stand-by without a writer', async () => {
    writer.removeAllListeners('request')
    writer.on('request', (_request, response) => response.destroy())
    const { json } = await raw(at())
    expect(new URL(json.nextUri!).pathname).toBe(path())
  })

  it('does not reach the writer if its address is wrong', async () => {
    expect((await raw(at().replace('/3.', '/4.'))).status).toBe(404)
    expect(arrived).toEqual([])
  })
})
