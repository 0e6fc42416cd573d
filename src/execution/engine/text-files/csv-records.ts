import { Signal } from '../../../shared/quipu-error.ts'
import { isUtf8 } from 'node:buffer'
import type { CsvDialect } from '../../../connectors/spi/text-file.ts'
import { TextFault } from './text-fault.ts'

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
/** The value that equals no byte. */
const NONE = -1

/** DuckDB's own limit, bytes. */
const LONGEST_RECORD = 2_000_000

export const PLAIN = 0
const QUOTED = 1
/** Quoted, with escapes inside. */
const ESCAPED = 2

type Separators = Pick<CsvDialect, 'delimiter' | 'quote' | 'escape'>

/** A fault of a record, found at its line. */
export class RecordFault extends Signal {}

/** Splits bytes into the fields of one record at a time. Spaces around a quoted field are not part of it. */
export class CsvTokenizer {
  /** The offsets where each field of the record begins and ends, without its quotes. */
  readonly startOffsets: number[] = []
  readonly endOffsets: number[] = []
  readonly kinds: number[] = []
  /** Number of fields in the record. */
  count = 0
  /** Number of line breaks in the record, including its own end. */
  lineBreaks = 0
  /** The line ends found so far, as bits: 1 LF, 2 CRLF, 4 CR. */
  lineBreakKinds = 0
  readonly #delimiter: number
  readonly #quote: number
  readonly #escape: number

  constructor({ delimiter, quote, escape }: Separators) {
    this.#delimiter = delimiter.charCodeAt(0)
    this.#quote = quote === '' ? NONE : quote.charCodeAt(0)
    this.#escape = escape === '' ? this.#quote : escape.charCodeAt(0)
  }

  get hasMixedBreaks(): boolean {
    return (this.lineBreakKinds & (this.lineBreakKinds - 1)) !== 0
  }

  /**
   * @returns where the next record begins; -1 when the record continues behind the bytes
   * @throws RecordFault
   */
  next(bytes: Buffer, from: number, to: number, atEnd: boolean): number {
    this.count = 0
    this.lineBreaks = 0
    let at = from
    for (;;) {
      at = this.#field(bytes, at, to, atEnd)
      if (at === -1) return -1
      if (at === to) return atEnd ? to : -1
      const byte = bytes[at]!
      if (byte === this.#delimiter) at++
      else return this.#lineEnd(bytes, at, to, atEnd)
    }
  }

  text(bytes: Buffer, field: number): string {
    const text = bytes.toString('utf8', this.startOffsets[field], this.endOffsets[field])
    if (this.kinds[field] !== ESCAPED) return text
    const [quote, escape] = [String.fromCharCode(this.#quote), String.fromCharCode(this.#escape)]
    if (quote === escape) return text.replaceAll(quote + quote, quote)
    return text.replaceAll(new RegExp(`\\${escape}([^])`, 'g'), '$1')
  }

  #lineEnd(bytes: Buffer, at: number, to: number, atEnd: boolean): number {
    this.lineBreaks++
    if (bytes[at] === LF) {
      this.lineBreakKinds |= 1
      return at + 1
    }
    if (at + 1 === to && !atEnd) return -1
    const crlf = bytes[at + 1] === LF && at + 1 < to
    this.lineBreakKinds |= crlf ? 2 : 4
    return at + (crlf ? 2 : 1)
  }

  /** @returns the position of the delimiter, the line end or the end of the bytes; -1 when it is not known yet */
  #field(bytes: Buffer, from: number, to: number, atEnd: boolean): number {
    let at = from
    while (at < to && bytes[at] === SPACE && this.#delimiter !== SPACE) at++
    if (at < to && bytes[at] === this.#quote) return this.#quoted(bytes, at + 1, to, atEnd)
    const delimiter = this.#delimiter
    for (; at < to; at++) {
      const byte = bytes[at]!
      if (byte === delimiter || byte === LF || byte === CR) break
    }
    if (at === to && !atEnd) return -1
    this.#add(from, at, PLAIN)
    return at
  }

  #quoted(bytes: Buffer, from: number, to: number, atEnd: boolean): number {
    let kind = QUOTED
    for (let at = from; ; at++) {
      if (at >= to) {
        if (atEnd) throw new RecordFault('a quote that opens is never closed')
        return -1
      }
      const byte = bytes[at]
      if (byte === LF || (byte === CR && bytes[at + 1] !== LF)) this.lineBreaks++
      if (byte !== this.#quote && byte !== this.#escape) continue
      if (at + 1 >= to && !atEnd) return -1
      const next = at + 1 < to ? bytes[at + 1] : NONE
      if (byte === this.#escape && (next === this.#quote || next === this.#escape)) {
        kind = ESCAPED
        at++
      } else if (byte === this.#quote) {
        this.#add(from, at, kind)
        return this.#behindQuote(bytes, at + 1, to, atEnd)
      } else throw new RecordFault('a character other than a quote is escaped')
    }
  }

  #behindQuote(bytes: Buffer, from: number, to: number, atEnd: boolean): number {
    let at = from
    while (at < to && bytes[at] === SPACE && this.#delimiter !== SPACE) at++
    if (at === to) return atEnd ? at : -1
    const byte = bytes[at]!
    if (byte === this.#delimiter || byte === LF || byte === CR) return at
    throw new RecordFault('a value goes on behind its closing quote')
  }

  #add(start: number, end: number, kind: number): void {
    this.startOffsets[this.count] = start
    this.endOffsets[this.count] = end
    this.kinds[this.count++] = kind
  }
}

/** Receives a record, whose fields are in the tokenizer, and its line. @returns whether to read on */
type TakeRecord = (bytes: Buffer, line: number) => boolean

/**
 * Passes on the records of a CSV file in order.
 * @param skip lines before the first record
 * @returns whether the file was read to its end
 * @throws TextFault for a line that is not a record, is not UTF-8, or is too long
 */
export async function readRecords(
  path: string,
  chunks: AsyncIterable<Buffer>,
  tokenizer: CsvTokenizer,
  skip: number,
  take: TakeRecord,
): Promise<boolean> {
  let line = 1
  let toSkip = skip
  let rest: Buffer = Buffer.alloc(0)
  let first = true

  /** @returns whether to read on */
  const takeAll = (bytes: Buffer, atEnd: boolean): boolean => {
    let at = first ? startOf(path, bytes) : 0
    first = false
    const begin = at
    let goesOn = true
    while (goesOn && at < bytes.length) {
      const next = toSkip > 0 ? lineBehind(bytes, at, atEnd) : record(bytes, at, atEnd)
      if (next === -1) break
      if (next - at > LONGEST_RECORD) throw tooLong(path, line)
      if (toSkip > 0) {
        toSkip--
        line++
      } else {
        goesOn = take(bytes, line)
        line += tokenizer.lineBreaks
      }
      at = next
    }
    checkUtf8(path, bytes.subarray(begin, at), line)
    rest = bytes.subarray(at)
    if (rest.length > LONGEST_RECORD) throw tooLong(path, line)
    return goesOn
  }
  const record = (bytes: Buffer, at: number, atEnd: boolean): number => {
    try {
      return tokenizer.next(bytes, at, bytes.length, atEnd)
    } catch (error) {
      if (!(error instanceof RecordFault)) throw error
      throw new TextFault(path, line, error.message)
    }
  }

  for await (const chunk of chunks) {
    if (!takeAll(rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk, false)) return false
  }
  return rest.length === 0 || takeAll(rest, true)
}

function tooLong(path: string, line: number): TextFault {
  return new TextFault(path, line, `it is longer than ${LONGEST_RECORD} bytes, the most that can be read`)
}

/** The position behind the byte order mark, if there is one. */
export function startOf(path: string, bytes: Buffer): number {
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    throw new TextFault(path, 1, 'the file is UTF-16; only UTF-8 can be read')
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
}

/** @returns where the next line begins; -1 when that is not known yet */
export function lineBehind(bytes: Buffer, from: number, atEnd: boolean): number {
  const end = bytes.indexOf(LF, from)
  if (end >= 0) return end + 1
  return atEnd ? bytes.length : -1
}

/** @param lineBehind number of the line that follows the bytes */
export function checkUtf8(path: string, bytes: Buffer, lineBehind: number): void {
  if (isUtf8(bytes)) return
  const lines = bytes.toString('latin1').split(/\r\n|\r|\n/)
  const last = lines.at(-1) === '' ? lines.length - 1 : lines.length
  const bad = lines.findIndex((text) => !isUtf8(Buffer.from(text, 'latin1')))
  throw new TextFault(path, lineBehind - last + Math.max(0, bad), 'it is not UTF-8')
}
