import { request as httpRequest, type Agent, type IncomingMessage, type ServerResponse } from 'node:http'
import { relayHeaders } from './relayed-request.ts'

/** A request as it is passed on, as often as it takes. */
export interface RelayedRequest {
  readonly method: string
  readonly path: string
  /** Name and value in turn, as the client sent them. */
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
  readonly clientAddress: string | undefined
}

export interface RelayedAnswer {
  readonly status: number
  readonly rawHeaders: readonly string[]
  /** The whole body, or what of it was read when it grew too large for memory: the rest comes by `rest`. */
  readonly body: Buffer
  readonly rest: IncomingMessage | undefined
  /** The other one does not write the log either. */
  readonly notWriter: boolean
}

/** Belong to one connection, not to the message. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'upgrade', 'expect'])
/** An answer up to this is had whole before its first byte goes on. */
const WHOLE_BYTES = 8 * 1024 * 1024

/** Sends a request to another coordinator. Rejects when it does not answer whole, as far as an answer is had whole. */
export function sendRelayed(
  base: string,
  sent: RelayedRequest,
  bearer: string,
  agent: Agent,
  signal: AbortSignal,
): Promise<RelayedAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      new URL(sent.path, base),
      {
        method: sent.method,
        agent,
        signal,
        headers: [
          ...endToEnd(sent.rawHeaders, ['content-length', 'transfer-encoding', ...Object.values(relayHeaders)]),
          ...(sent.body.length > 0 || sent.method === 'POST' ? ['content-length', String(sent.body.length)] : []),
          relayHeaders.by,
          bearer,
          ...(sent.clientAddress === undefined ? [] : [relayHeaders.client, sent.clientAddress]),
        ],
      },
      (response) => {
        const parts: Buffer[] = []
        let bytes = 0
        const answer = (rest: IncomingMessage | undefined): void =>
          resolve({
            status: response.statusCode ?? 502,
            rawHeaders: response.rawHeaders,
            body: parts.length === 1 ? parts[0]! : Buffer.concat(parts),
            rest,
            notWriter: response.headers[relayHeaders.notWriter] !== undefined,
          })
        response.on('error', reject)
        response.on('end', () => answer(undefined))
        response.on('close', () => reject(new Error('The answer broke off')))
        response.on('data', function gather(part: Buffer) {
          parts.push(part)
          bytes += part.length
          if (bytes <= WHOLE_BYTES) return
          response.pause().off('data', gather)
          answer(response)
        })
      },
    )
    request.on('error', reject)
    request.end(sent.body)
  })
}

/** Writes an answer as the other coordinator gave it. What fails from now on destroys the connection. */
export function tellRelayed(response: ServerResponse, answer: RelayedAnswer): void {
  // With the length or chunks as they were: Node frames the body accordingly.
  response.writeHead(answer.status, endToEnd(answer.rawHeaders, []))
  if (!answer.rest) return void response.end(answer.body)
  response.write(answer.body)
  answer.rest.on('error', () => response.destroy())
  answer.rest.on('close', () => !answer.rest?.complete && response.destroy())
  answer.rest.pipe(response)
}

function endToEnd(rawHeaders: readonly string[], without: readonly string[]): string[] {
  const kept: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase()
    if (!HOP_BY_HOP.has(name) && !without.includes(name)) kept.push(rawHeaders[index]!, rawHeaders[index + 1]!)
  }
  return kept
}
