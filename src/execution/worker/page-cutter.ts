import { EngineError } from '../../shared/engine-error.ts'

export interface CutPage {
  /** `[row,row,…]`: JSON text. */
  readonly bytes: Buffer
  readonly rows: number
}

/** Turns the engine's lines `[…],\n` into pages. */
export interface PageCutter {
  /** Takes and copies whole lines; returns a page once the target size is reached. */
  add(lines: Buffer): CutPage | undefined
  /** Returns the rest as a page, if there are rows left. */
  flush(): CutPage | undefined
  pendingBytes(): number
}

const NEWLINE = 10
/** Rows come in pieces of up to this size: the last piece makes a page a little larger than the target. */
const PIECE_BYTES = 128 * 1024
const OPEN = 0x5b
const CLOSE = 0x5d

/**
 * Creates a cutter.
 * @param targetBytes a page is cut once it is at least this large
 * @param maxBytes the limit for any page, even of one wide row
 */
export function createPageCutter(targetBytes: number, maxBytes: number): PageCutter {
  /** The page that is being filled: `[`, then lines. */
  let open: Buffer | undefined
  let bytes = 0
  let rows = 0

  function roomFor(more: number): Buffer {
    const needed = 1 + bytes + more
    if (open && needed <= open.length) return open
    const larger = Buffer.allocUnsafeSlow(Math.max(targetBytes + PIECE_BYTES, needed, 2 * bytes))
    open?.copy(larger, 0, 0, 1 + bytes)
    open = larger
    return larger
  }

  function cut(): CutPage | undefined {
    if (bytes === 0 || !open) return undefined
    if (bytes > maxBytes) {
      throw new EngineError('PAGE_TOO_LARGE', `A row of the result is larger than ${Math.floor(maxBytes / 2 ** 20)} MB`)
    }
    // `[` + lines without the last `,\n` + `]`; newlines between rows are white space in JSON.
    open[0] = OPEN
    open[bytes - 1] = CLOSE
    // A small page is copied, so that it does not hold the larger buffer.
    const small = bytes < open.length / 2
    const page: CutPage = { bytes: small ? Buffer.from(open.subarray(0, bytes)) : open.subarray(0, bytes), rows }
    if (!small) open = undefined
    bytes = 0
    rows = 0
    return page
  }

  return {
    add(lines) {
      lines.copy(roomFor(lines.length), 1 + bytes)
      for (let i = lines.indexOf(NEWLINE); i >= 0; i = lines.indexOf(NEWLINE, i + 1)) rows++
      bytes += lines.length
      return bytes >= targetBytes ? cut() : undefined
    },
    flush: cut,
    pendingBytes: () => bytes,
  }
}
