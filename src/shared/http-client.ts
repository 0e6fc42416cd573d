import { Agent as HttpAgent, request as httpRequest, type AgentOptions } from 'node:http'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { QuipuError } from './quipu-error.ts'
import { requestOptionsOf } from './request-options.ts'
import type { ServerTrust } from './server-trust.ts'

/** Sends requests to servers over HTTP, or over TLS if the address says so. Follows no redirection. */
export interface HttpClient {
  /** @param to has `protocol`, `hostname` and `port`: see `requestOptionsOf` */
  request(to: RequestOptions, onAnswer: (answer: IncomingMessage) => void): ClientRequest
  /** Closes all connections. */
  close(): void
}

export function createHttpClient(trust: ServerTrust, options: AgentOptions): HttpClient {
  const plain = new HttpAgent(options)
  const secure = new HttpsAgent({
    ...options,
    minVersion: 'TLSv1.2',
    checkServerIdentity: (host, certificate) => trust.identify(host, certificate),
  })
  return {
    request(to, onAnswer) {
      if (to.protocol !== 'https:') return httpRequest({ agent: plain, ...to }, onAnswer)
      const secureContext = trust.context()
      return httpsRequest({ ...to, agent: secure, ...(secureContext && { secureContext }) }, onAnswer)
    },
    close() {
      plain.destroy()
      secure.destroy()
    },
  }
}

export interface ServerAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface ServerQuestion extends Pick<RequestOptions, 'method' | 'signal'> {
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Longest answer that is accepted, in bytes; undefined: no limit. */
  readonly mostBytes?: number
}

/** Thrown when a server's answer is longer than it may be. */
export class AnswerTooLarge extends QuipuError {
  readonly retry = 'never'
}

/**
 * Sends a request and reads the whole answer.
 * @param base `https://host:port`
 * @param target path and query
 * @throws AnswerTooLarge when the answer has more than `mostBytes`
 */
export function askServer(
  http: HttpClient,
  base: string,
  target: string,
  { body, headers, mostBytes = Infinity, ...options }: ServerQuestion,
): Promise<ServerAnswer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const to = { ...requestOptionsOf(base, target), ...options, headers: { ...headers, ...length } }
    const asked = http.request(to, (answer) => {
      const parts: Buffer[] = []
      let bytes = 0
      answer.on('data', (part: Buffer) => {
        parts.push(part)
        bytes += part.length
        if (bytes > mostBytes) asked.destroy(new AnswerTooLarge(`The answer has more than ${mostBytes} bytes`))
      })
      answer.on('error', reject)
      answer.on('close', () => reject(new Error('the connection broke before the answer was complete')))
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text: Buffer.concat(parts).toString('utf8'),
        }),
      )
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/**
 * The body after a status is read and dropped. If it is longer than this, or takes longer, the connection is closed.
 */
const REST = { bytes: 64 * 1024, milliseconds: 1000 }

/**
 * Sends a request and reads only the status of the answer.
 * @param base `https://host:port`
 * @param target path and query
 */
export function askStatus(
  http: HttpClient,
  base: string,
  target: string,
  { body, headers, ...options }: Omit<ServerQuestion, 'mostBytes'> & { readonly body: string },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    const to = { ...requestOptionsOf(base, target), ...options, headers: { ...headers, ...length } }
    const asked = http.request(to, (answer) => {
      const late = setTimeout(() => asked.destroy(), REST.milliseconds).unref()
      let bytes = 0
      answer.on('data', (part: Buffer) => {
        bytes += part.length
        if (bytes > REST.bytes) asked.destroy()
      })
      answer.on('error', () => {})
      answer.on('close', () => clearTimeout(late))
      resolve(answer.statusCode ?? 0)
    })
    asked.on('error', reject)
    asked.end(body)
  })
}
