import type { IncomingMessage } from 'node:http'
import { checkServerIdentity, createSecureContext, type SecureContext } from 'node:tls'
import { createHttpClient, type HttpClient } from '../../../shared/http-client.ts'
import { hasCode } from '../../../shared/node-error.ts'
import { requestOptionsOf } from '../../../shared/request-options.ts'
import { AnswerBody } from './answer-body.ts'
import { AnswerNotRead, ClusterLost, type RelayTarget } from './relay-port.ts'

export interface ClusterRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  /** Path and query, sent unchanged. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  /** Bytes, and not text: Node sends the headers together with a text body, in the encoding of that text. */
  readonly body?: Buffer
  /** How long the head of the answer may take, milliseconds. */
  readonly deadlineMs: number
}

export interface ClusterResponse {
  readonly status: number
  readonly message: IncomingMessage
  /** The body. Throws ClusterLost when it breaks off or stalls. */
  readonly chunks: AsyncIterator<Buffer>
  /** Drops the rest of the body and closes the connection. A read that is under way then throws AnswerNotRead. */
  close(): void
}

/** Requests to clusters over HTTP or TLS, with their credentials. Follows no redirection. */
export interface ClusterRequests {
  /**
   * Sends a request and returns its answer once the head is there. If the cluster has just closed the kept connection,
   * the request is sent once more. This holds for a POST too, because Trino does not start a statement at its POST.
   * @throws ClusterLost `unreachable` or `stalled`; the reason of the signal
   */
  send(cluster: RelayTarget, request: ClusterRequest, signal?: AbortSignal): Promise<ClusterResponse>
  close(): void
}

/** Large, because a cluster returns prepared statements in headers. */
const MOST_HEADER_BYTES = 1024 * 1024
/** How long an unused connection is kept, milliseconds: servers and proxies keep it longer. */
const KEPT_MS = 30_000

interface Connections {
  readonly origin: string
  readonly tls: RelayTarget['tls']
  readonly http: HttpClient
}

/** @param silenceMs how long an answer may pause while it is being read */
export function createClusterRequests(silenceMs: number): ClusterRequests {
  const connections = new Map<string, Connections>()

  /**
   * The connections to a cluster. After a change of its file, requests that are under way keep their old connections.
   */
  function httpOf({ name, url, tls }: RelayTarget): HttpClient {
    const known = connections.get(name)
    if (known && known.origin === url.origin && sameFiles(known.tls, tls)) return known.http
    const context = tls && createSecureContext(tls)
    const http = createHttpClient(
      { context: (): SecureContext | undefined => context, identify: checkServerIdentity },
      { keepAlive: true, noDelay: true, timeout: KEPT_MS },
    )
    connections.set(name, { origin: url.origin, tls, http })
    return http
  }

  function attempt(
    cluster: RelayTarget,
    { method, target, body, deadlineMs }: ClusterRequest,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<IncomingMessage | 'reused'> {
    return new Promise((resolve, reject) => {
      const request = httpOf(cluster).request(
        {
          ...requestOptionsOf(cluster.url.origin, target),
          method,
          headers,
          maxHeaderSize: MOST_HEADER_BYTES,
          ...(signal && { signal }),
        },
        (message) => {
          clearTimeout(late)
          resolve(message)
        },
      )
      const late = setTimeout(() => {
        request.destroy(new ClusterLost(cluster.name, 'stalled', `it did not answer within ${deadlineMs} ms`))
      }, deadlineMs)
      request.on('error', (error) => {
        clearTimeout(late)
        if (request.reusedSocket && hasCode(error, 'ECONNRESET', 'EPIPE')) resolve('reused')
        else reject(lostBy(cluster.name, error, signal))
      })
      request.end(body)
    })
  }

  return {
    async send(cluster, request, signal) {
      const headers = await headersOf(cluster, request)
      for (let tries = 0; ; tries++) {
        signal?.throwIfAborted()
        const message = await attempt(cluster, request, headers, signal)
        if (message !== 'reused') return responseOf(cluster.name, message, silenceMs, signal)
        if (tries === 1) throw new ClusterLost(cluster.name, 'unreachable', 'it closes connections that it keeps')
      }
    },
    close() {
      for (const { http } of connections.values()) http.close()
    },
  }
}

async function headersOf(cluster: RelayTarget, { headers, body }: ClusterRequest): Promise<Record<string, string>> {
  const credentials = await cluster.credentials().catch((error: unknown) => {
    throw new ClusterLost(cluster.name, 'refused', 'its credentials cannot be read', {
      cause: error,
    })
  })
  return {
    ...headers,
    // The relay reads addresses inside the answers, so the answers must not be compressed.
    'accept-encoding': 'identity',
    accept: 'application/json',
    'user-agent': 'quipu',
    ...(body === undefined ? {} : { 'content-length': String(body.length) }),
    ...credentials,
  }
}

function responseOf(
  cluster: string,
  message: IncomingMessage,
  silenceMs: number,
  signal: AbortSignal | undefined,
): ClusterResponse {
  const body = new AnswerBody(cluster, message, silenceMs)
  return {
    status: message.statusCode ?? 0,
    message,
    chunks: {
      next: () =>
        body.next().catch((error: unknown) => {
          throw lostBy(cluster, error, signal)
        }),
    },
    close: () => body.close(),
  }
}

function lostBy(cluster: string, error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason
  if (error instanceof ClusterLost || error instanceof AnswerNotRead) return error
  return new ClusterLost(cluster, 'unreachable', 'no whole answer', { cause: error })
}

function sameFiles(a: RelayTarget['tls'], b: RelayTarget['tls']): boolean {
  const same = (one?: Buffer, other?: Buffer): boolean => one === other || (!!one && !!other && one.equals(other))
  return a === b || (!!a && !!b && same(a.ca, b.ca) && same(a.cert, b.cert) && same(a.key, b.key))
}
