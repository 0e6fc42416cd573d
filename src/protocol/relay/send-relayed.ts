import type { IncomingMessage, ServerResponse } from 'node:http'
import { bodyDigest, openRelayClock, sealRelay, type RelayClaims } from '../../security/relay-credential.ts'
import { inOnePiece } from '../../shared/body-parts.ts'
import type { HttpClient } from '../../shared/http-client.ts'
import { requestOptionsOf } from '../../shared/request-options.ts'
import { forwardedHeaders } from '../edge/forwarded.ts'
import { relayHeaders } from '../edge/relay-headers.ts'
import type { RequestTarget } from '../edge/request-target.ts'

/** A request that is passed on, as often as needed. */
export interface RelayedRequest {
  readonly method: string
  readonly target: Pick<RequestTarget, 'text' | 'authority'>
  /** Names and values alternately, as the client sent them. */
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
  /** The facts about the client that this coordinator asserts. */
  readonly claims: RelayClaims
}

/** The coordinator that requests are passed on to. */
export interface RelayWriter {
  /** Base address. */
  readonly address: string
  /** The epoch in which it writes. */
  readonly epoch: number
}

export interface RelaySender {
  /** Signs the credentials. */
  readonly key: Buffer
  readonly http: HttpClient
  /** The largest accepted head of an answer. */
  readonly mostHeadBytes: number
  /** The writer's wall clock, in milliseconds since 1970, as far as this process knows it. */
  readonly now: (writer: RelayWriter) => number
  /** Called with the writer's time where its clock differs. */
  readonly onClock: (writer: RelayWriter, now: number) => void
}

export interface RelayedAnswer {
  readonly status: number
  readonly rawHeaders: readonly string[]
  /** The whole body, or its beginning when it grew too large for memory: `rest` has the remainder. */
  readonly body: Buffer
  readonly rest: IncomingMessage | undefined
  /** The other coordinator did not process the request: it does not write the log either, or its clock differs. */
  readonly again: boolean
}

/** Headers that belong to one connection, not to the message. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'upgrade', 'expect'])
const FRAMING = new Set(['content-length', 'transfer-encoding'])
/** Headers that are made anew for the next connection. The claims contain what matters of the client's own. */
const OWN_REQUEST_HEADERS = ['host', ...FRAMING, ...Object.values(relayHeaders), ...forwardedHeaders]
/** An answer up to this size is received whole before its first byte is passed on. */
const WHOLE_BYTES = 8 * 1024 * 1024

/**
 * Sends a request to another coordinator, with a new credential. Rejects when there is no answer, or when the answer
 * breaks off while it is being received whole.
 */
export function sendRelayed(
  writer: RelayWriter,
  sent: RelayedRequest,
  sender: RelaySender,
  signal: AbortSignal,
): Promise<RelayedAnswer> {
  const { credential, nonce } = sealRelay(
    sender.key,
    { method: sent.method, target: sent.target.text, bodyDigest: bodyDigest(sent.body) },
    sent.claims,
    { epoch: writer.epoch, now: sender.now(writer) },
  )
  return new Promise((resolve, reject) => {
    const options = requestOptionsOf(writer.address, sent.target.text)
    const request = sender.http.request(
      {
        ...options,
        method: sent.method,
        signal,
        maxHeaderSize: sender.mostHeadBytes,
        headers: [
          ...endToEnd(sent.rawHeaders, OWN_REQUEST_HEADERS),
          // The host that the client used, so that addresses in the answer lead back here.
          'host',
          sent.target.authority ?? `${options.hostname}:${options.port}`,
          ...(sent.body.length > 0 || sent.method === 'POST' ? ['content-length', String(sent.body.length)] : []),
          relayHeaders.credential,
          credential,
        ],
      },
      (response) => {
        const clock = response.headers[relayHeaders.clock]
        const now = clock === undefined ? undefined : openRelayClock(sender.key, String(clock), nonce)
        if (now !== undefined) sender.onClock(writer, now)
        const parts: Buffer[] = []
        let bytes = 0
        const answer = (rest: IncomingMessage | undefined): void =>
          resolve({
            status: response.statusCode ?? 502,
            rawHeaders: response.rawHeaders,
            body: inOnePiece(parts),
            rest,
            again: now !== undefined || response.headers[relayHeaders.notWriter] !== undefined,
          })
        response.on('error', reject)
        response.on('end', () => answer(undefined))
        response.on('close', () => reject(new Error('The connection broke before the answer was complete')))
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

/** Writes the other coordinator's answer to the client. A failure from now on destroys the connection. */
export function writeRelayed(response: ServerResponse, answer: RelayedAnswer): void {
  // Keeps the length or the chunks: Node frames the body accordingly. A client of HTTP/1.0 knows no chunks.
  const unknown = response.req.httpVersion === '1.1' ? [] : ['transfer-encoding']
  response.writeHead(answer.status, endToEnd(answer.rawHeaders, unknown))
  if (!answer.rest) return void response.end(answer.body)
  response.write(answer.body)
  answer.rest.on('error', () => response.destroy())
  answer.rest.on('close', () => !answer.rest?.complete && response.destroy())
  answer.rest.pipe(response)
}

/** Removes headers of the connection, also those that the Connection header names (RFC 9110, 7.6.1). */
function endToEnd(rawHeaders: readonly string[], without: readonly string[]): string[] {
  const pairs: { readonly name: string; readonly pair: readonly [string, string] }[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2)
    pairs.push({ name: rawHeaders[index]!.toLowerCase(), pair: [rawHeaders[index]!, rawHeaders[index + 1]!] })
  const nominated = pairs
    .filter(({ name }) => name === 'connection')
    .flatMap(({ pair }) => pair[1].toLowerCase().split(','))
    .map((name) => name.trim())
  return (
    pairs
      .filter(({ name }) => !HOP_BY_HOP.has(name) && !without.includes(name))
      // Framing headers stay: Node reads them and frames the body accordingly.
      .filter(({ name }) => FRAMING.has(name) || !nominated.includes(name))
      .flatMap(({ pair }) => pair)
  )
}
