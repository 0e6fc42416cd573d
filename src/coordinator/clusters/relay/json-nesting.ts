/** The bytes of the characters that structure a JSON text. */
export const jsonBytes = {
  quote: 0x22,
  colon: 0x3a,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const

/**
 * Follows the nesting of a JSON text, byte by byte. The text is UTF-8, so no byte of a longer character equals a
 * bracket or a quote. This class does not check that the text is JSON.
 */
export class JsonNesting {
  /** Open objects and arrays. */
  depth: number
  inString = false
  #escaped = false

  constructor(depth: number) {
    this.depth = depth
  }

  next(byte: number): void {
    if (this.inString) {
      if (this.#escaped) this.#escaped = false
      else if (byte === jsonBytes.backslash) this.#escaped = true
      else if (byte === jsonBytes.quote) this.inString = false
    } else if (byte === jsonBytes.quote) this.inString = true
    else if (byte === jsonBytes.openObject || byte === jsonBytes.openArray) this.depth++
    else if (byte === jsonBytes.closeObject || byte === jsonBytes.closeArray) this.depth--
  }
}

/** The number of rows of a JSON array of arrays. The array is complete, and comes in parts. */
export function countJsonRows(parts: readonly Buffer[]): number {
  const nesting = new JsonNesting(0)
  let rows = 0
  for (const part of parts)
    for (const byte of part) {
      const before = nesting.depth
      nesting.next(byte)
      if (before === 2 && nesting.depth === 1) rows++
    }
  return rows
}

export function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
