import { EngineError } from '../../shared/engine-error.ts'

export interface CutPage {
  /** `[row,row,…]`: JSON text. */
  readonly bytes: Buffer
  readonly rows: number
}

/** Turns the engine's lines `[…],\n` into pages. */
export interface PageCutter {
  /** Takes whole lines; gives a page once the target size is reached. */
  add(lines: Buffer): CutPage | undefined
  /** What is left over, if anything. */
  flush(): CutPage | undefined
  pendingBytes(): number
}

const NEWLINE = 10
const OPEN = 0x5b
const CLOSE = 0x5d

/**
 * @param targetBytes a page is cut once it is at least this large
 * @param maxBytes no page may be larger: one wide row
 */
export function createPageCutter(targetBytes: number, maxBytes: number): PageCutter {
  let parts: Buffer[] = []
  let bytes = 0

  function cut(): CutPage | undefined {
    if (bytes === 0) return undefined
    if (bytes > maxBytes) {
      throw new EngineError('PAGE_TOO_LARGE', `A row of the result is larger than ${Math.floor(maxBytes / 2 ** 20)} MB`)
    }
    // `[` + lines without the last `,\n` + `]`; newlines between rows are white space of JSON.
    const page = Buffer.allocUnsafe(bytes)
    page[0] = OPEN
    let at = 1
    let rows = 0
    for (const part of parts) {
      for (let i = part.indexOf(NEWLINE); i >= 0; i = part.indexOf(NEWLINE, i + 1)) rows++
      at += part.copy(page, at, 0, Math.min(part.length, bytes - 1 - at))
    }
    page[bytes - 1] = CLOSE
    parts = []
    bytes = 0
    return { bytes: page, rows }
  }

  return {
    add(lines) {
      parts.push(lines)
      bytes += lines.length
      return bytes >= targetBytes ? cut() : undefined
    },
    flush: cut,
    pendingBytes: () => bytes,
  }
}
