/**
 * A body as it came: bytes in their order, in pieces. A large one is passed on so, since V8 collects all garbage of a process
 * for each 64 MB of buffers that are made: a page that is put into one piece, twice, costs more of that than of anything else.
 */
export type BodyParts = readonly Buffer[]

export function bytesIn(parts: BodyParts): number {
  let bytes = 0
  for (const part of parts) bytes += part.length
  return bytes
}

/** In one piece: the only part itself, or a copy of all. */
export function inOnePiece(parts: BodyParts): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}
