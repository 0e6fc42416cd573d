import { isBlank, jsonBytes, JsonNesting } from './json-nesting.ts'

const DATA = Buffer.from('data')

/**
 * Finds where the rows begin: at the value of the root's member `data`. It looks at each byte before the rows once, and
 * at no byte of the rows.
 *
 *     {"id":…,"columns":[…],"data":[[1,2],…],"stats":{…}}
 *     └────── the head ─────┘      └ the rows
 */
export class HeadReader {
  readonly #parts: Buffer[] = []
  readonly #nesting = new JsonNesting(0)
  /** Bytes of all parts. */
  bytes = 0
  /** Where the newest string of the root object began. */
  #stringAt = 0
  /** How many characters of `data` that string has so far; -1 when it is another text. */
  #matched = -1
  /** The next token after the name `data`: the colon, then the value. */
  #expects: 'any' | 'colon' | 'value' = 'any'

  /** @returns the chunk from the `[` of the rows on; undefined while they have not begun */
  take(chunk: Buffer): Buffer | undefined {
    for (let index = 0; index < chunk.length; index++) {
      if (!this.#next(chunk[index]!, this.bytes + index)) continue
      this.#parts.push(chunk.subarray(0, index))
      this.bytes += index
      return chunk.subarray(index)
    }
    this.#parts.push(chunk)
    this.bytes += chunk.length
    return undefined
  }

  /** The members before the rows, as JSON. */
  head(): string {
    const before = Buffer.concat(this.#parts).subarray(0, this.#stringAt).toString('utf8').trimEnd()
    return `${before.endsWith(',') ? before.slice(0, -1) : before}}`
  }

  /** All that was read, for an answer without rows. */
  whole(): string {
    return Buffer.concat(this.#parts).toString('utf8')
  }

  /** @returns whether the byte is the first of the rows */
  #next(byte: number, at: number): boolean {
    const nesting = this.#nesting
    const wasString = nesting.inString
    if (!wasString && !isBlank(byte) && this.#expects !== 'any') {
      if (this.#expects === 'value' && byte === jsonBytes.openArray) return true
      this.#expects = this.#expects === 'colon' && byte === jsonBytes.colon ? 'value' : 'any'
    }
    nesting.next(byte)
    if (nesting.depth !== 1) return false
    if (!wasString && nesting.inString) {
      this.#stringAt = at
      this.#matched = 0
    } else if (wasString && !nesting.inString) {
      if (this.#matched === DATA.length) this.#expects = 'colon'
    } else if (wasString) {
      this.#matched = this.#matched >= 0 && byte === DATA[this.#matched] ? this.#matched + 1 : -1
    }
    return false
  }
}

/** The end of the rows and the beginning of the first member after them, as Trino writes them. */
const END = Buffer.from('],"stats":{')

/**
 * Separates the rows from the members after them. It searches each chunk for `END`, at the speed of `memchr`, and
 * follows the nesting only from there on. `END` cannot occur inside a string, where its quotes would be escaped. It can
 * occur between the values of a row: then the root object seems to close too early, and the search continues.
 *
 *     [[1,2],…],"stats":{…},"warnings":[]}
 *     └ rows ─┘└──────── the tail ───────┘
 */
export class RowsReader {
  /** The last bytes of the last chunk, if they may be the beginning of `END`. */
  #rest: Buffer = NOTHING
  /** The parts after a possible end of the rows. */
  #held: Buffer[] = []
  /** Bytes in `#held`. */
  heldBytes = 0
  #nesting: JsonNesting | undefined

  /** @returns the parts that belong to the rows, without a copy */
  take(chunk: Buffer): Buffer[] {
    const rows: Buffer[] = []
    let part = this.#joined(chunk, rows)
    while (part.length > 0) {
      if (!this.#nesting) {
        const at = part.indexOf(END)
        if (at < 0) {
          const certain = part.length - overlap(part)
          if (certain > 0) rows.push(part.subarray(0, certain))
          this.#rest = part.subarray(certain)
          return rows
        }
        rows.push(part.subarray(0, at + 1))
        part = part.subarray(at + 1)
        this.#nesting = new JsonNesting(1)
      }
      const end = beyondRoot(this.#nesting, part)
      if (end < 0) {
        this.#held.push(part)
        this.heldBytes += part.length
        return rows
      }
      rows.push(...this.#held, part.subarray(0, end))
      part = part.subarray(end)
      this.#held = []
      this.heldBytes = 0
      this.#nesting = undefined
    }
    return rows
  }

  /**
   * Returns the chunk. If the rest of the previous chunk and this chunk together contain `END`, returns both, joined.
   * Otherwise that rest belongs to the rows. A row often ends at the end of a chunk, so joining always would copy too
   * much.
   */
  #joined(chunk: Buffer, rows: Buffer[]): Buffer {
    const rest = this.#rest
    this.#rest = NOTHING
    if (rest.length === 0) return chunk
    const seam = Buffer.concat([rest, chunk.subarray(0, END.length)])
    if (chunk.length < END.length || seam.includes(END)) return Buffer.concat([rest, chunk])
    rows.push(rest)
    return chunk
  }

  /** The members after the rows, as JSON; undefined when the text does not end as Trino's answers do. */
  tail(): string | undefined {
    if (this.#nesting?.depth !== 0) return undefined
    // The brace replaces the comma.
    return `{${Buffer.concat(this.#held).toString('utf8').slice(1)}`
  }
}

const NOTHING = Buffer.alloc(0)

/** How many bytes at the end of a chunk may be the beginning of `END`. */
function overlap(chunk: Buffer): number {
  const from = Math.max(0, chunk.length - END.length + 1)
  for (let at = chunk.indexOf(END[0]!, from); at >= 0; at = chunk.indexOf(END[0]!, at + 1))
    if (END.indexOf(chunk.subarray(at)) === 0) return chunk.length - at
  return 0
}

/** The index of the first byte that is not blank after the root object has closed; -1 if there is none. */
function beyondRoot(nesting: JsonNesting, part: Buffer): number {
  for (let index = 0; index < part.length; index++) {
    const byte = part[index]!
    if (nesting.depth === 0 && !isBlank(byte)) return index
    nesting.next(byte)
  }
  return -1
}
