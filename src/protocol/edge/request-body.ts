import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { HttpProblem } from './problem.ts'

/** SHA-256 of the bodies that another coordinator has sealed, base64url. */
const expected = new WeakMap<IncomingMessage, string>()

/** Makes `readBody` accept only the body with this SHA-256 (base64url). */
export function expectBody(request: IncomingMessage, sha256: string): void {
  expected.set(request, sha256)
}

/**
 * Reads a body, counted while it arrives.
 * @param onBytes called with the number of bytes so far; an error that it throws ends the reading
 * @throws HttpProblem 413 above the limit, 415 when it is encoded, 400 when the client breaks off, 401 when its SHA-256
 * is not the expected one
 */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  onBytes?: (bytes: number) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (isEncoded(request)) return reject(encodedBody())
    const announced = Number(request.headers['content-length'] ?? 0)
    if (announced > maxBytes) return reject(tooLarge(maxBytes))
    const body = createGrowingBuffer(announced)
    const stop = (error: unknown): void => {
      request.off('data', onData)
      request.pause()
      body.clear()
      reject(error)
    }
    let parts = 0
    function onData(part: Buffer): void {
      const bytes = body.bytes() + part.length
      if (bytes > maxBytes) return stop(tooLarge(maxBytes))
      if (++parts > mostParts(bytes)) return stop(new HttpProblem(400, 'The request body arrives in too small pieces'))
      try {
        onBytes?.(bytes)
      } catch (error) {
        return stop(error)
      }
      body.add(part)
    }
    request.on('data', onData)
    request.on('end', () => {
      const whole = body.whole()
      const sha256 = expected.get(request)
      if (sha256 === undefined || sha256 === createHash('sha256').update(whole).digest('base64url')) resolve(whole)
      else reject(new HttpProblem(401, 'The request body does not match the digest in its credential'))
    })
    request.on('error', () => reject(new HttpProblem(400, 'The connection broke before the request body was complete')))
    request.on('close', () => {
      if (!request.complete) reject(new HttpProblem(400, 'The connection broke before the request body was complete'))
    })
  })
}

/** Reads and discards a body, up to `maxBytes`; resolves at its end, or when the client breaks off. */
export function discardBody(request: IncomingMessage, maxBytes: number): Promise<void> {
  return new Promise((resolve) => {
    if (request.complete || request.destroyed) return resolve()
    let bytes = 0
    let parts = 0
    request.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes <= maxBytes && ++parts <= mostParts(bytes)) return
      request.pause()
      resolve()
    })
    request.on('end', resolve)
    request.on('close', resolve)
    request.resume()
  })
}

/**
 * The most chunks for a body. Each chunk, even of one byte, is an event and an object of its own; a normal sender makes
 * few.
 */
function mostParts(bytes: number): number {
  return FREE_PARTS + bytes / LEAST_PART_BYTES
}

const FREE_PARTS = 1000
const LEAST_PART_BYTES = 64

interface GrowingBuffer {
  bytes(): number
  /** Copies the part, since it is a view that keeps the socket's whole buffer in memory. */
  add(part: Buffer): void
  clear(): void
  whole(): Buffer
}

const FIRST_BYTES = 4096

/**
 * Collects bytes that arrive in parts, in at most twice their memory however small the parts are.
 * @param expected number of bytes, allocated when the first of them arrive
 */
function createGrowingBuffer(expected: number): GrowingBuffer {
  let buffer = Buffer.alloc(0)
  let used = 0
  return {
    bytes: () => used,
    add(part) {
      if (used + part.length > buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(expected || FIRST_BYTES, used + part.length, 2 * buffer.length))
        buffer.copy(larger, 0, 0, used)
        buffer = larger
      }
      used += part.copy(buffer, used)
    },
    clear() {
      buffer = Buffer.alloc(0)
      used = 0
    },
    whole: () => buffer.subarray(0, used),
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** Decodes UTF-8. @throws HttpProblem 400 when the bytes are not UTF-8 */
export function decodeUtf8(body: Buffer): string {
  try {
    return decoder.decode(body)
  } catch {
    throw new HttpProblem(400, 'The request body is not valid UTF-8')
  }
}

/**
 * Reads a body that is JSON.
 * @throws HttpProblem as `readBody` does, 400 when it is not JSON in UTF-8
 */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const text = decodeUtf8(await readBody(request, maxBytes))
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpProblem(400, 'The body is not JSON')
  }
}

/** Whether the body is encoded. RFC 9110, 8.4: `identity` means no encoding. */
function isEncoded({ headers }: IncomingMessage): boolean {
  return (headers['content-encoding'] ?? '')
    .split(',')
    .some((name) => !['', 'identity'].includes(name.trim().toLowerCase()))
}

function encodedBody(): HttpProblem {
  const message = 'The request body has a Content-Encoding: send it without one'
  return new HttpProblem(415, message, { 'accept-encoding': 'identity' })
}

function tooLarge(maxBytes: number): HttpProblem {
  return new HttpProblem(413, `The request body is larger than ${maxBytes} bytes`)
}
