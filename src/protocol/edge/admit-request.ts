import { validateHeaderName, validateHeaderValue, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressRanges } from '../../shared/address-ranges.ts'
import { readConnection } from './client-connection.ts'
import { HttpProblem } from './problem.ts'
import { relayHeaders, RELAYED_MORE } from './relay-headers.ts'
import { requestTarget } from './request-target.ts'

/**
 * Checks what every request to every server must fulfil, before anything else reads it: one host, a readable target,
 * not too many headers, readable headers of proxies, and a body framed as this server frames it. Otherwise the next hop
 * may see two requests in it.
 * @throws HttpProblem; its connection is to be closed
 */
export function admitRequest(request: IncomingMessage, most: HeadLimits, isProxy: AddressRanges): void {
  checkHead(request, most)
  const coding = request.headers['transfer-encoding']
  if (coding !== undefined && (request.httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked'))
    throw new HttpProblem(501, 'The transfer coding of a body must be chunked, in HTTP/1.1', CLOSE)
  if (request.headers.connection !== undefined && withdraws(request.headers.connection))
    throw new HttpProblem(400, 'The Connection header names a header that does not belong to the connection', CLOSE)
  try {
    requestTarget(request)
    readConnection(request, isProxy)
  } catch (error) {
    throw error instanceof HttpProblem ? new HttpProblem(error.status, error.message, CLOSE) : error
  }
}

/**
 * Headers that the coordinator that writes reads, or the one that passes the request on. Both must see the same ones.
 */
const READ_ANYWHERE = /^(?:x-(?:trino|presto|quipu|forwarded)-.*|forwarded|authorization|cookie|origin|host)$/

/** Whether a Connection header withdraws one of these headers. RFC 9110, 7.6.1, forbids senders to do that. */
function withdraws(connection: string): boolean {
  return connection
    .toLowerCase()
    .split(',')
    .some((name) => READ_ANYWHERE.test(name.trim()))
}

interface HeadLimits {
  readonly headers: number
  /** Bytes of names and values together, with the target. */
  readonly headerBytes: number
}

/**
 * Checks the size of the head. A request that one coordinator admits must be admitted by the next one, which receives
 * it with a relay credential added.
 */
function checkHead({ rawHeaders, url = '' }: IncomingMessage, most: HeadLimits): void {
  let [headers, bytes, moreHeaders, moreBytes] = [0, url.length, 0, 0]
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name, value] = [rawHeaders[index]!, rawHeaders[index + 1]!]
    if (name.toLowerCase() === relayHeaders.credential)
      [moreHeaders, moreBytes] = [RELAYED_MORE.headers, RELAYED_MORE.bytes]
    else {
      headers++
      bytes += name.length + value.length
    }
  }
  if (headers > most.headers + moreHeaders)
    throw new HttpProblem(431, `A request may have at most ${most.headers} headers`, CLOSE)
  if (bytes > most.headerBytes + moreBytes)
    throw new HttpProblem(431, `The headers of a request may have at most ${most.headerBytes} bytes`, CLOSE)
}

const CLOSE = { connection: 'close' } as const

/**
 * Checks headers before Node writes the head. Otherwise Node would keep the headers that it read before the invalid
 * one, and the error would be answered with status, length and framing of both.
 */
export function guardHead(response: ServerResponse): void {
  const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse
  response.writeHead = (...head: unknown[]) => {
    checkHeaders(head.find((part) => typeof part === 'object' && part !== null))
    return writeHead(...head)
  }
}

function checkHeaders(headers: unknown): void {
  const pairs = Array.isArray(headers) ? pairsOf(headers) : Object.entries(headers ?? {})
  for (const [name, value] of pairs) {
    validateHeaderName(String(name))
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value])
      if (one !== undefined) validateHeaderValue(String(name), String(one))
  }
}

function pairsOf(flat: readonly unknown[]): [unknown, unknown][] {
  if (Array.isArray(flat[0])) return flat as [unknown, unknown][]
  return Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index], flat[2 * index + 1]])
}
