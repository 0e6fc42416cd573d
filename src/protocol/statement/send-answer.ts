import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Writable } from 'node:stream'
import { createGzip, constants as zlib } from 'node:zlib'
import { bytesIn, inOnePiece } from '../../shared/body-parts.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'

/** A body up to this size is sent as one chunk. A larger one is sent in parts, or by gzip. */
const SMALL_BYTES = 64 * 1024

/** Sends a whole body, chunked; gzip for large bodies to clients on other machines. */
export function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  parts: readonly (string | Buffer)[],
  headers: Record<string, string[]>,
): void {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0)
  const isLarge = bytes > SMALL_BYTES
  const body = startBody(request, response, isLarge, headers)
  if (!isLarge) {
    response.end(parts.length === 1 ? parts[0] : inOnePiece(parts.map(asBuffer)))
    return
  }
  // Node sends writes of the same tick together. Do not cork here: Node 24 loses corked data at the end.
  for (const part of parts) body.write(part)
  body.end()
}

/** A body whose middle arrives while it is sent. */
export interface StreamedBody {
  readonly head: string
  readonly data: AsyncIterable<Buffer>
  /** Resolves after the data was read. */
  readonly tail: Promise<string>
}

/**
 * Sends a body while it arrives, no faster than the client reads. A small one is sent whole, like that of `sendAnswer`.
 * Once a part was sent, a failure of the source cuts the client's connection: the client asks again.
 * @returns the bytes of the data that were read
 * @throws the failure of the source, if nothing was sent yet
 */
export async function sendStream(
  request: IncomingMessage,
  response: ServerResponse,
  { head, data, tail }: StreamedBody,
  headers: Record<string, string[]>,
): Promise<number> {
  tail.catch(() => {})
  const source = data[Symbol.asyncIterator]()
  // Ends a read under way: its source may be silent for long.
  const onClose = (): void => void source.return?.().catch(() => {})
  response.once('close', onClose)
  try {
    const first: Buffer[] = []
    for (let bytes = head.length; bytes <= SMALL_BYTES; bytes += first.at(-1)!.length) {
      const part = await source.next()
      if (part.done) {
        sendAnswer(request, response, [head, ...first, await tail], headers)
        return bytesIn(first)
      }
      first.push(part.value)
    }
    const body = startBody(request, response, true, headers)
    for (const part of [head, ...first]) body.write(part)
    return bytesIn(first) + (await sendRest(source, tail, body, response))
  } finally {
    response.off('close', onClose)
    if (response.destroyed) onClose()
  }
}

/** Sends what is left of a body. Its failure cuts the connection. */
async function sendRest(
  source: AsyncIterator<Buffer>,
  tail: Promise<string>,
  body: Writable,
  response: ServerResponse,
): Promise<number> {
  let bytes = 0
  try {
    for (;;) {
      if (body.writableNeedDrain) await drained(body, response)
      if (response.destroyed) break
      const part = await source.next()
      if (part.done) {
        body.end(await tail)
        return bytes
      }
      bytes += part.value.length
      body.write(part.value)
    }
  } catch {
    response.destroy()
  }
  // Frees a compressor.
  body.destroy()
  return bytes
}

/** Resolves when the body takes more, or the client is gone. */
function drained(body: Writable, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      body.off('drain', done)
      response.off('close', done)
      resolve()
    }
    if (response.destroyed) return resolve()
    body.once('drain', done)
    response.once('close', done)
  })
}

/**
 * Writes the head of an answer.
 * @param isLarge whether it is worth compressing
 * @returns where the body is written
 */
function startBody(
  request: IncomingMessage,
  response: ServerResponse,
  isLarge: boolean,
  headers: Record<string, string[]>,
): Writable {
  const gzip =
    isLarge &&
    /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? '')) &&
    !isLoopback(remoteAddressOf(request) ?? '')
  response.writeHead(200, {
    'content-type': 'application/json',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    // A client of HTTP/1.0 reads until the connection ends.
    ...(request.httpVersion === '1.1' ? { 'transfer-encoding': 'chunked' } : {}),
    ...(gzip ? { 'content-encoding': 'gzip', vary: 'Accept-Encoding' } : {}),
    ...headers,
  })
  if (!gzip) return response
  // Level 6 costs 28 ms of CPU a megabyte.
  const stream = createGzip({ level: zlib.Z_BEST_SPEED })
  stream.pipe(response)
  return stream
}

function asBuffer(part: string | Buffer): Buffer {
  return typeof part === 'string' ? Buffer.from(part) : part
}
