import {
  fits,
  scalarBit,
  type CsvDialect,
  type CsvShape,
  type DeclaredText,
} from '../../../connectors/spi/text-file.ts'
import type { TextNeed } from '../../../connectors/spi/table-source.ts'
import { acceptsText } from '../../../connectors/spi/accepts-text.ts'
import { classifyText } from '../../../connectors/spi/classify-text.ts'
import { CsvTokenizer, lineBehind, PLAIN, RecordFault, readRecords, startOf } from './csv-records.ts'
import { readChunks } from './read-chunks.ts'
import { shown, TextFault } from './text-fault.ts'

/** The shape of a larger file is derived from its beginning, and checked when the file is read. */
export const SAMPLE_RECORDS = 20_480
export const SAMPLE_BYTES = 8 * 1024 * 1024
/** The part of the beginning that decides the dialect. */
const DIALECT_BYTES = 256 * 1024

const DELIMITERS = [',', ';', '\t', '|']
const ESCAPES = ['"', '\\']

/** The beginning of a file, and a stream of all its bytes. */
interface Opened {
  readonly head: Buffer
  readonly whole: boolean
  readonly chunks: AsyncIterable<Buffer>
}

/**
 * Determines how to read a CSV file, from the whole of a small file or the beginning of a large one. @throws TextFault
 */
export async function csvShape(path: string, declared: DeclaredText): Promise<CsvShape> {
  const { head, whole, chunks } = await openHead(path)
  const separators = chooseSeparators(path, head, whole, declared)
  const tokenizer = new CsvTokenizer(separators)
  const columns = new CsvColumns(path, tokenizer, declared.nullString ?? '')
  let records = 0
  let bytes = 0
  const complete = await readRecords(path, counted(chunks, (more) => (bytes += more)), tokenizer, declared.skip ?? 0, (record, line) => {
    columns.take(record, line)
    return ++records < SAMPLE_RECORDS && bytes <= SAMPLE_BYTES
  }) // prettier-ignore
  const header = declared.header ?? columns.hasHeader()
  const skip = (declared.skip ?? 0) + columns.blankBefore
  refuseMisreadBeginning(path, head, whole, separators, declared.skip ?? 0, header && skip === 0)
  return {
    dialect: {
      ...separators,
      header,
      skip,
      nullString: declared.nullString ?? '',
      lineEnd: lineEndOf(tokenizer),
    },
    columns: columns.shapes(header, declared.names),
    complete,
  }
}

/**
 * Checks every line of a file.
 * @param needs by column
 * @throws TextFault for the first line that does not fit
 */
export async function checkCsv(path: string, dialect: CsvDialect, needs: readonly TextNeed[]): Promise<void> {
  const tokenizer = new CsvTokenizer(dialect)
  const tests = needs.map(testOf)
  const typed = needs.flatMap((need, column) => (tests[column] ? [{ ...need, column, test: tests[column] }] : []))
  let isFirst = dialect.header
  await readRecords(path, readChunks(path), tokenizer, dialect.skip, (bytes, line) => {
    if (isBlank(tokenizer) && needs.length > 1) return true
    checkCount(path, line, tokenizer.count, needs.length, 'the table')
    checkLineBreaks(path, line, tokenizer)
    if (dialect.lineEnd !== 'mixed' && lineEndOf(tokenizer, dialect.lineEnd) !== dialect.lineEnd)
      throw new TextFault(path, line, 'it does not end as the lines before it do')
    if (isFirst) {
      isFirst = false
      return true
    }
    for (const { column, test, type, blanks } of typed) {
      const [from, to] = [tokenizer.startOffsets[column]!, tokenizer.endOffsets[column]!]
      if (isNull(tokenizer, bytes, column, dialect.nullString) || (blanks && from === to)) continue
      if (!test(bytes, from, to)) {
        const value = shown(tokenizer.text(bytes, column))
        throw new TextFault(path, line, `value ${value} in column ${column + 1} cannot be read as ${type} unchanged`)
      }
    }
    return true
  })
}

function testOf({ type, declared }: TextNeed): ((bytes: Buffer, from: number, to: number) => boolean) | undefined {
  if (type === 'VARCHAR') return undefined
  const bit = scalarBit(type)
  if (declared || bit === undefined) return (bytes, from, to) => acceptsText(type, bytes.toString('utf8', from, to))
  return (bytes, from, to) => from < to && (classifyText(bytes, from, to) & bit) !== 0
}

/** Collects what the records of a file show about its columns. */
class CsvColumns {
  readonly #path: string
  readonly #tokenizer: CsvTokenizer
  readonly #nullString: string
  /** The first record: its texts, and the types that each text fits. */
  #first: { readonly texts: readonly string[]; readonly masks: readonly number[]; readonly line: number } | undefined
  readonly #masks: number[] = []
  /** Empty lines before the first record. */
  blankBefore = 0
  readonly #blanks: boolean[] = []

  constructor(path: string, tokenizer: CsvTokenizer, nullString: string) {
    this.#path = path
    this.#tokenizer = tokenizer
    this.#nullString = nullString
  }

  take(bytes: Buffer, line: number): void {
    const tokenizer = this.#tokenizer
    const { count } = tokenizer
    checkLineBreaks(this.#path, line, tokenizer)
    if (!this.#first) {
      if (isBlank(tokenizer)) this.blankBefore++
      else this.#takeFirst(bytes, line)
      return
    }
    const fields = this.#masks.length
    if (isBlank(tokenizer) && fields > 1) return
    if (fields === 1) this.#checkSingle(line)
    checkCount(this.#path, line, count, fields, `line ${this.#first.line}`)
    for (let column = 0; column < fields; column++) {
      const mask = this.#masks[column]!
      const empty = tokenizer.startOffsets[column] === tokenizer.endOffsets[column]
      if (empty && tokenizer.kinds[column] !== PLAIN) this.#blanks[column] = true
      if (mask !== fits.text && !empty) this.#masks[column] = mask & this.#maskOf(bytes, column)
    }
  }

  #takeFirst(bytes: Buffer, line: number): void {
    // The engine would take a line break within such a record for the line end of the file.
    if (lineEndOf(this.#tokenizer) !== 'lf' && this.#tokenizer.lineBreaks > 1)
      throw new TextFault(this.#path, line, 'it does not end with LF, and has line breaks in its values')
    const columns = Array.from({ length: this.#tokenizer.count }, (_, column) => column)
    this.#first = {
      texts: columns.map((column) => this.#tokenizer.text(bytes, column)),
      masks: columns.map((column) => this.#maskOf(bytes, column)),
      line,
    }
    for (const column of columns) {
      this.#masks[column] = fits.anything
      this.#blanks[column] = false
    }
  }

  #maskOf(bytes: Buffer, column: number): number {
    const [from, to] = [this.#tokenizer.startOffsets[column]!, this.#tokenizer.endOffsets[column]!]
    if (from === to || isNull(this.#tokenizer, bytes, column, this.#nullString)) return fits.anything
    return classifyText(bytes, from, to)
  }

  /**
   * Decides whether the first record is a header. It is when the types of the lines below do not fit it. It also is
   * when all columns are texts, in this record and below, and the texts of this record are all different.
   */
  hasHeader(): boolean {
    const first = this.#first
    if (!first) return true
    const typed = this.#masks.flatMap((mask, column) =>
      mask === fits.anything || mask === fits.text || first.masks[column] === fits.anything ? [] : [column],
    )
    if (typed.some((column) => isText(this.#masks[column]! & first.masks[column]!))) return true
    if (typed.length > 0) return false
    const names = first.texts.map((text) => text.trim().toLowerCase())
    return (
      first.masks.every(
        (mask, column) => isText(mask) || (column === 0 && mask === fits.anything && names.length > 1),
      ) && new Set(names).size === names.length
    )
  }

  /** Refuses mixed line ends in a file with a single column: an empty line there is a row, or a part of a line end. */
  #checkSingle(line: number): void {
    if (this.#tokenizer.hasMixedBreaks)
      throw new TextFault(this.#path, line, 'lines of a single column end in different ways')
  }

  /** @param declared names of the columns of a file without header */
  shapes(header: boolean, declared: readonly string[] | undefined): CsvShape['columns'] {
    const { texts, masks, line } = this.#first ?? { texts: [], masks: [], line: 0 }
    if (texts.length === 1) this.#checkSingle(line)
    if (!header && declared && texts.length > 0)
      checkCount(this.#path, line, texts.length, declared.length, 'the table')
    const names =
      !header && declared
        ? declared.slice(0, texts.length)
        : header
          ? headerNames(texts)
          : texts.map((_, index) => columnName(index, texts.length))
    return names.map((name, index) => ({
      name,
      fits: header ? this.#masks[index]! : this.#masks[index]! & masks[index]!,
      blanks: this.#blanks[index]! || (!header && texts[index] === ''),
    }))
  }
}

/** @param none the result for a file without a line end */
function lineEndOf({ lineBreakKinds }: CsvTokenizer, none: CsvDialect['lineEnd'] = 'lf'): CsvDialect['lineEnd'] {
  switch (lineBreakKinds) {
    case 0:
      return none
    case 1:
      return 'lf'
    case 2:
      return 'crlf'
    case 4:
      return 'cr'
    default:
      return 'mixed'
  }
}

/** DuckDB reads LF and CRLF in one file. A CR in such a file would become a part of a value. */
function checkLineBreaks(path: string, line: number, { lineBreakKinds, hasMixedBreaks }: CsvTokenizer): void {
  if ((lineBreakKinds & 4) !== 0 && hasMixedBreaks)
    throw new TextFault(path, line, 'some lines end with CR, and others with LF or CRLF')
}

function isText(mask: number): boolean {
  return mask === fits.text
}

/** Whether a line has no character. */
function isBlank({ count, startOffsets, endOffsets, kinds }: CsvTokenizer): boolean {
  return count === 1 && startOffsets[0] === endOffsets[0] && kinds[0] === PLAIN
}

function isNull(
  { startOffsets, endOffsets, kinds }: CsvTokenizer,
  bytes: Buffer,
  column: number,
  nullString: string,
): boolean {
  if (kinds[column] !== PLAIN) return false
  const [from, to] = [startOffsets[column]!, endOffsets[column]!]
  return from === to || (nullString !== '' && bytes.toString('utf8', from, to) === nullString)
}

function checkCount(path: string, line: number, count: number, wanted: number, of: string): void {
  if (count === wanted) return
  throw new TextFault(path, line, `it has ${values(count)}, ${of} has ${values(wanted)}`)
}

function values(count: number): string {
  return count === 1 ? '1 value' : `${count} values`
}

/** Makes names that differ, even where names in the header are equal. */
function headerNames(texts: readonly string[]): string[] {
  const taken = new Set<string>()
  return texts.map((text, index) => {
    const wanted = text.trim() === '' ? columnName(index, texts.length) : text.trim()
    let name = wanted
    for (let number = 1; taken.has(name.toLowerCase()); number++) name = `${wanted}_${number}`
    taken.add(name.toLowerCase())
    return name
  })
}

function columnName(index: number, columns: number): string {
  return `column${String(index).padStart(String(columns - 1).length, '0')}`
}

/** Chooses the separators: of the delimiters in the first line, the delimiter that splits the most lines alike. */
function chooseSeparators(
  path: string,
  head: Buffer,
  whole: boolean,
  { delimiter, quote, escape, skip }: DeclaredText,
): Pick<CsvDialect, 'delimiter' | 'quote' | 'escape'> {
  const delimiters = delimiter === undefined ? (/\.tsv(\.gz)?$/i.test(path) ? ['\t'] : DELIMITERS) : [delimiter]
  const usedQuote = quote ?? '"'
  const escapes =
    usedQuote === '' ? [''] : escape === undefined ? [usedQuote, ...ESCAPES.filter((one) => one !== '"')] : [escape]
  const candidates = escapes.flatMap((oneEscape) =>
    delimiters.map((oneDelimiter) => {
      const separators = { delimiter: oneDelimiter, quote: usedQuote, escape: oneEscape }
      return { separators, ...tryOut(path, head, whole, separators, skip ?? 0) }
    }),
  )
  const split = candidates.filter(({ fields }) => fields > 1)
  const eligible =
    split.length > 0 ? split : candidates.filter(({ separators }) => separators.delimiter === delimiters[0])
  // Among equals the first.
  const best = eligible.reduce((best, one) =>
    one.alike > best.alike || (one.alike === best.alike && one.fields > best.fields) ? one : best,
  )
  return best.separators
}

/**
 * DuckDB looks for quotes in lines that it skips, and takes a quote behind a byte order mark for a plain character while
 * it skips a header. This function refuses files of which DuckDB would skip more or less than these lines.
 * @param skip lines before the first record
 * @param header whether the record behind the byte order mark is a header
 * @throws TextFault
 */
function refuseMisreadBeginning(
  path: string,
  head: Buffer,
  whole: boolean,
  separators: Pick<CsvDialect, 'delimiter' | 'quote' | 'escape'>,
  skip: number,
  header: boolean,
): void {
  const start = startOf(path, head)
  const recordEnd = (from: number): number => {
    try {
      return new CsvTokenizer(separators).next(head, from, head.length, whole)
    } catch (error) {
      if (!(error instanceof RecordFault)) throw error
      return -1
    }
  }
  let at = 0
  for (let line = 1; line <= skip && at < head.length; line++) {
    const end = recordEnd(at)
    if (end === -1 || end !== lineBehind(head, at, whole))
      throw new TextFault(path, line, 'a line with quotes cannot be skipped; remove its quotes')
    at = end
  }
  if (!header || start === 0 || start === head.length) return
  const end = recordEnd(start)
  if (end === -1 || end !== recordEnd(0))
    throw new TextFault(path, 1, 'a quoted header behind a byte order mark cannot be read; save it without the mark')
}

/** Tries these separators: fields of the first record, and the share of lines with as many fields. */
function tryOut(
  path: string,
  head: Buffer,
  whole: boolean,
  separators: Pick<CsvDialect, 'delimiter' | 'quote' | 'escape'>,
  skip: number,
): { readonly fields: number; readonly alike: number } {
  const tokenizer = new CsvTokenizer(separators)
  let fields = 0
  let records = 0
  let alike = 0
  let at = startOf(path, head)
  for (let line = 0; line < skip && at > 0; line++) at = head.indexOf(0x0a, at) + 1
  try {
    while (at < head.length && (at = tokenizer.next(head, at, head.length, whole)) !== -1) {
      if (isBlank(tokenizer)) continue
      if (records++ === 0) fields = tokenizer.count
      // A delimiter that is not in the first line is a candidate only when no other is, whatever comes below.
      if (fields === 1) return { fields, alike: 0 }
      if (tokenizer.count === fields) alike++
    }
  } catch (error) {
    if (!(error instanceof RecordFault)) throw error
    // The lines behind the fault are unknown: this candidate must not win against one that reads without a fault.
    return { fields: Math.max(fields, tokenizer.count), alike: Math.max(0, alike - 1) / (records + 1) / 2 }
  }
  return { fields, alike: records === 0 ? 0 : alike / records }
}

async function openHead(path: string): Promise<Opened> {
  const chunks = readChunks(path)
  const read: Buffer[] = []
  let bytes = 0
  let whole = false
  while (bytes < DIALECT_BYTES && !whole) {
    const { done, value } = await chunks.next()
    if (done === true) whole = true
    else {
      read.push(value)
      bytes += value.length
    }
  }
  const head = Buffer.concat(read)
  return { head, whole, chunks: joined(head, chunks) }
}

async function* joined(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield head
    yield* rest
  } finally {
    await rest.return(undefined)
  }
}

async function* counted(chunks: AsyncIterable<Buffer>, count: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    count(chunk.length)
    yield chunk
  }
}
