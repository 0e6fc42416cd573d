import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { RelayTarget } from '../../src/coordinator/clusters/relay/relay-port.ts'

export interface ClusterRequestRecord {
  readonly method: string
  readonly path: string
  readonly rawHeaders: readonly string[]
  readonly body: string
}

/** A server in place of a cluster, which answers as the test says. */
export interface ScriptedCluster {
  readonly target: RelayTarget
  /** All requests so far. */
  readonly requests: readonly ClusterRequestRecord[]
  /** Answers later requests. Called after the body was read. */
  answerWith(answer: (request: IncomingMessage, response: ServerResponse) => void): void
  /** Cuts all connections, and each new one, until `restart`. Keeps the port: another test could get it meanwhile. */
  stop(): void
  restart(): void
  close(): Promise<void>
}

/** @param secure for a server with TLS */
export async function startScriptedCluster(
  part: Partial<RelayTarget> = {},
  secure?: ServerOptions,
): Promise<ScriptedCluster> {
  const requests: ClusterRequestRecord[] = []
  let answer = (_request: IncomingMessage, response: ServerResponse): void => void response.writeHead(404).end()
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url = '', rawHeaders } = request
    requests.push({ method, path: url, rawHeaders, body: await text(request) })
    answer(request, response)
  }
  const server = secure ? createSecureServer(secure, handle) : createServer(handle)
  let isStopped = false
  server.on('connection', (socket) => {
    if (isStopped) socket.destroy()
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.address() as AddressInfo
  return {
    target: {
      name: 'trino-a',
      url: new URL(`${secure ? 'https' : 'http'}://127.0.0.1:${port}`),
      credentials: async () => ({}),
      tls: undefined,
      clientTimeoutMs: 60_000,
      ...part,
    },
    requests,
    answerWith: (next) => void (answer = next),
    stop() {
      isStopped = true
      server.closeAllConnections()
    },
    restart: () => void (isStopped = false),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Answers with JSON, chunked. */
export function sendJson(
  response: ServerResponse,
  body: unknown,
  headers: Record<string, string | string[]> = {},
): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** Sends the first bytes of an answer and then breaks the connection. */
export function sendCut(response: ServerResponse, body: Buffer, bytes: number): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.flushHeaders()
  response.write(body.subarray(0, bytes), () => response.destroy())
}
