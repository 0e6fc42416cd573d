import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Random } from './random.ts'

/**
 * How a cluster behaves towards the gateway. `cut`: answers break off at any byte; `bad gateway`: a proxy before the
 * cluster answers 429, 502, 503 or 504, sometimes after the cluster took the request; `slow`: answers come in small
 * parts with pauses; `refuse`: connections are closed; `mute`: requests have no answer.
 */
export type ProxyMode = 'pass' | 'cut' | 'bad gateway' | 'slow' | 'refuse' | 'mute'

/** An HTTP proxy before a cluster. */
export interface ClusterProxy {
  readonly port: number
  mode: ProxyMode
  /** From now on the cluster does not know the queries that it has, as a Trino after its restart. */
  forgetQueries(): void
  close(): Promise<void>
}

export interface ClusterProxyOptions {
  /** The address of the cluster. */
  readonly target: string
  readonly random: Random
  /** Called when a request of the gateway arrives, and when the gateway has its answer. */
  readonly passed: (point: 'cluster asked' | 'cluster answered') => void
}

const PAUSE_MS = 20
const STATEMENT = /^\/v1\/statement\/(?:[a-z]+\/)?(\d{8}_\d{6}_\d+_\w+)/

export async function startClusterProxy({ target, random, passed }: ClusterProxyOptions): Promise<ClusterProxy> {
  const { hostname, port: targetPort } = new URL(target)
  const seen = new Set<string>()
  const forgotten = new Set<string>()

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    const isStatement = url.startsWith('/v1/statement')
    if (isStatement) passed('cluster asked')
    const id = STATEMENT.exec(url)?.[1]
    if (id !== undefined) {
      if (forgotten.has(id)) return void response.writeHead(404).end('Query not found')
      seen.add(id)
    }
    const { mode } = proxy
    if (mode === 'refuse') return void response.destroy()
    if (mode === 'mute') return
    const isLost = mode === 'bad gateway' && random.chance(0.7)
    const status = random.pick([429, 502, 503, 504])
    if (isLost && random.chance(0.5)) return void response.writeHead(status, { 'retry-after': '0' }).end('no')
    const { headers: given, statusCode = 0, body } = await forward(request, await buffer(request))
    if (isLost) return void response.writeHead(status).end()
    response.on('finish', () => isStatement && passed('cluster answered'))
    const { 'transfer-encoding': _, connection: __, ...headers } = given
    response.writeHead(statusCode, { ...headers, ...(method === 'HEAD' ? {} : { 'content-length': body.length }) })
    if (mode === 'cut' && random.chance(0.6)) {
      const bytes = random.chance(0.5) ? random.whole(0, body.length) : random.whole(0, Math.min(body.length, 300))
      response.flushHeaders()
      return void response.write(body.subarray(0, bytes), () => response.destroy())
    }
    if (mode !== 'slow') return void response.end(body)
    const step = Math.max(1, Math.ceil(body.length / random.whole(1, 8)))
    for (let at = 0; at < body.length; at += step) {
      response.write(body.subarray(at, at + step))
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * random.whole(1, 5)))
    }
    response.end()
  }

  function forward({ method, url, headers }: IncomingMessage, body: Buffer) {
    return new Promise<Pick<IncomingMessage, 'headers' | 'statusCode'> & { readonly body: Buffer }>(
      (resolve, reject) => {
        const sent = httpRequest({ hostname, port: targetPort, method, path: url, headers, agent: false }, (answer) => {
          buffer(answer).then(
            (whole) => resolve({ headers: answer.headers, statusCode: answer.statusCode, body: whole }),
            reject,
          )
        })
        sent.on('error', reject)
        sent.end(body)
      },
    )
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))
  const proxy: ClusterProxy = {
    port: (server.address() as AddressInfo).port,
    mode: 'pass',
    forgetQueries() {
      for (const id of seen) forgotten.add(id)
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return proxy
}
