/**
 * A body in pieces, in order, as it was received. Large bodies are passed on in pieces because V8 collects all garbage
 * of a process for each 64 MB of new buffers. Joining a page, twice, costs more of that than anything else.
 */
export type BodyParts = readonly Buffer[]

export function bytesIn(parts: BodyParts): number {
  let bytes = 0
  for (const part of parts) bytes += part.length
  return bytes
}

/** The body in one piece: the only part itself, or a copy of all parts. */
export function inOnePiece(parts: BodyParts): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}
