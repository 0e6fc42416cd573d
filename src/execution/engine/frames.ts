import { inOnePiece } from '../../shared/body-parts.ts'

/**
 * A frame between a process and its engine: two little-endian 32-bit lengths, a JSON header, then bytes. The header
 * says what the frame is; the bytes are rows or a profile, so that they need no escaping or parsing.
 */
export interface Frame<Header> {
  readonly header: Header
  /** Empty when the frame has no body. */
  readonly body: Buffer
}

const LENGTHS = 8
/** A longer header means that the stream is broken: statements are 1 MB at most. */
const MAX_HEADER_BYTES = 64 * 1024 * 1024
/**
 * Limit for headers from an engine: figures, or a message that the engine cut. The parent parses each on its event
 * loop.
 */
export const MAX_REPLY_HEADER_BYTES = 4 * 1024 * 1024
const MAX_BODY_BYTES = 256 * 1024 * 1024
const NO_BODY = Buffer.alloc(0)

export function encodeFrame(header: object, body: Buffer = NO_BODY): Buffer {
  const json = Buffer.from(JSON.stringify(header))
  if (json.length > MAX_HEADER_BYTES || body.length > MAX_BODY_BYTES) throw new RangeError('Frame too large')
  const frame = Buffer.allocUnsafe(LENGTHS + json.length + body.length)
  frame.writeUInt32LE(json.length, 0)
  frame.writeUInt32LE(body.length, 4)
  json.copy(frame, LENGTHS)
  body.copy(frame, LENGTHS + json.length)
  return frame
}

/**
 * Takes the bytes of a stream and passes on whole frames, in order. The caller has to check the headers.
 * @throws RangeError on lengths that no sender of this program writes
 */
export function createFrameDecoder<Header>(
  onFrame: (frame: Frame<Header>) => void,
  maxHeaderBytes = MAX_HEADER_BYTES,
): (bytes: Buffer) => void {
  // Chunks are joined only when a frame is whole: joining at every arrival would copy a large body many times.
  let chunks: Buffer[] = []
  let size = 0
  let needed = LENGTHS

  const join = (): Buffer => {
    const all = inOnePiece(chunks)
    chunks = [all]
    return all
  }

  return (bytes) => {
    chunks.push(bytes)
    size += bytes.length
    while (size >= needed) {
      const all = join()
      const headerBytes = all.readUInt32LE(0)
      const bodyBytes = all.readUInt32LE(4)
      if (headerBytes > maxHeaderBytes || bodyBytes > MAX_BODY_BYTES) throw new RangeError('Frame too large')
      const total = LENGTHS + headerBytes + bodyBytes
      if (size < total) {
        needed = total
        return
      }
      const header = JSON.parse(all.toString('utf8', LENGTHS, LENGTHS + headerBytes)) as Header
      const rest = all.subarray(total)
      chunks = rest.length > 0 ? [rest] : []
      size = rest.length
      needed = LENGTHS
      onFrame({ header, body: all.subarray(LENGTHS + headerBytes, total) })
    }
  }
}
