/**
 * Reads the footer of a Parquet file from Thrift's compact protocol. DuckDB gives the same facts as a table with a row
 * for each column of each row group, thirty texts wide: for a wide file that takes seconds. This reader skips what it
 * does not need.
 */
import { open } from 'node:fs/promises'
import type { ParquetFooter, SchemaElement } from '../../connectors/spi/parquet-footer.ts'

const MAGIC = 'PAR1'
/** Behind the footer: its length and the magic bytes. */
const TRAILER_BYTES = 8

/**
 * Reads the footer of a file.
 * @throws Error when it is not a footer of Parquet
 */
export async function readParquetFooter(path: string): Promise<ParquetFooter> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const trailer = await readAt(file, Math.max(0, size - TRAILER_BYTES), TRAILER_BYTES)
    if (trailer.toString('latin1', 4) !== MAGIC) throw new Error('no magic bytes at the end')
    const length = trailer.readUInt32LE(0)
    if (length > size - TRAILER_BYTES) throw new Error('a footer longer than its file')
    return parseParquetFooter(await readAt(file, size - TRAILER_BYTES - length, length))
  } finally {
    await file.close()
  }
}

async function readAt(
  file: { read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ bytesRead: number }> },
  position: number,
  length: number,
): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length)
  for (let read = 0; read < length;) {
    const { bytesRead } = await file.read(bytes, read, length - read, position + read)
    if (bytesRead === 0) throw new Error('a file that ends early')
    read += bytesRead
  }
  return bytes
}

/** @throws Error when it is not a footer of Parquet */
function parseParquetFooter(bytes: Buffer): ParquetFooter {
  const reader = new CompactReader(bytes)
  const elements: SchemaElement[] = []
  const rowGroups: { rows: number; bytes: number[] }[] = []
  const marks = { bloomFilters: new Set<number>(), oldBounds: new Set<number>() }
  const keys: string[] = []
  let createdBy = ''
  reader.struct((field, type) => {
    if (field === 2) reader.list(type, () => elements.push(schemaElement(reader)))
    else if (field === 4) reader.list(type, () => rowGroups.push(rowGroup(reader, marks)))
    else if (field === 5) reader.list(type, () => keys.push(keyOf(reader)))
    else if (field === 6) createdBy = reader.text(type)
    else reader.skip(type)
  })
  return {
    elements,
    rowGroups,
    bloomFilters: [...marks.bloomFilters],
    oldBounds: [...marks.oldBounds],
    createdBy,
    keys,
  }
}

/** The key of a note that the writing program left; its value is skipped. */
function keyOf(reader: CompactReader): string {
  let key = ''
  reader.struct((field, type) => {
    if (field === 1) key = reader.text(type)
    else reader.skip(type)
  })
  return key
}

function schemaElement(reader: CompactReader): SchemaElement {
  const numbers: (number | undefined)[] = []
  let name = ''
  let logical = ''
  reader.struct((field, type) => {
    if (field === 4) name = reader.text(type)
    else if (field === 10) logical = reader.raw(type)
    else if (field <= 9) numbers[field] = reader.integer(type)
    else reader.skip(type)
  })
  const [, physical, length, , , children, converted, scale, precision] = numbers
  return {
    name,
    ...(children !== undefined && { children }),
    ...(physical !== undefined && { physical }),
    ...(converted !== undefined && { converted }),
    ...(precision !== undefined && { precision }),
    ...(scale !== undefined && { scale }),
    ...(length !== undefined && { length }),
    ...(logical !== '' && { logical }),
  }
}

interface Marks {
  readonly bloomFilters: Set<number>
  readonly oldBounds: Set<number>
}

function rowGroup(reader: CompactReader, marks: Marks): { rows: number; bytes: number[] } {
  const bytes: number[] = []
  let rows = 0
  reader.struct((field, type) => {
    if (field === 1) reader.list(type, () => bytes.push(columnChunk(reader, bytes.length, marks)))
    else if (field === 3) rows = reader.integer(type)
    else reader.skip(type)
  })
  return { rows, bytes }
}

/** @returns the compressed bytes of the column chunk */
function columnChunk(reader: CompactReader, leaf: number, { bloomFilters, oldBounds }: Marks): number {
  let bytes = 0
  reader.struct((field, type) => {
    if (field !== 3) return reader.skip(type)
    reader.expect(type, STRUCT)
    reader.struct((own, ownType) => {
      if (own === 7) bytes = reader.integer(ownType)
      else if (own === 14) {
        if (reader.integer(ownType) > 0) bloomFilters.add(leaf)
      } else if (own === 12) {
        reader.expect(ownType, STRUCT)
        if (hasOldBounds(reader)) oldBounds.add(leaf)
      } else reader.skip(ownType)
    })
  })
  return bytes
}

/** Whether a bound has only the deprecated fields (`max`, `min`), which define an order for signed numbers only. */
function hasOldBounds(reader: CompactReader): boolean {
  let [oldMax, oldMin, max, min] = [false, false, false, false]
  reader.struct((field, type) => {
    oldMax ||= field === 1
    oldMin ||= field === 2
    max ||= field === 5
    min ||= field === 6
    reader.skip(type)
  })
  return (oldMax && !max) || (oldMin && !min)
}

const BOOLEAN_TRUE = 1
const BOOLEAN_FALSE = 2
const BYTE = 3
const INTEGERS: ReadonlySet<number> = new Set([4, 5, 6])
const DOUBLE = 7
const BINARY = 8
const LIST = 9
const SET = 10
const MAP = 11
const STRUCT = 12
/** Parquet's own structures are nested four deep. */
const MAX_DEPTH = 32

class CompactReader {
  readonly #bytes: Buffer
  #at = 0
  #depth = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** @param take reads or skips the value of a field, given its number and type */
  struct(take: (field: number, type: number) => void): void {
    if (++this.#depth > MAX_DEPTH) throw new Error('structures nested too deeply')
    for (let field = 0; ;) {
      const head = this.#byte()
      if (head === 0) break
      const step = head >> 4
      field = step === 0 ? this.#zigzag() : field + step
      take(field, head & 0x0f)
    }
    this.#depth--
  }

  /** @param take reads one element, a structure */
  list(type: number, take: () => void): void {
    this.expect(type, LIST)
    const { size, of } = this.#listHead()
    if (size > 0) this.expect(of, STRUCT)
    for (let i = 0; i < size; i++) take()
  }

  text(type: number): string {
    this.expect(type, BINARY)
    const start = this.#skipBinary()
    return this.#bytes.toString('utf8', start, this.#at)
  }

  /** @returns a whole number; 0 for a number beyond 2^53 */
  integer(type: number): number {
    if (!INTEGERS.has(type)) throw new Error('no whole number')
    const value = this.#zigzag()
    return Number.isSafeInteger(value) ? value : 0
  }

  /** @returns the value's bytes, as hexadecimal digits */
  raw(type: number): string {
    const start = this.#at
    this.skip(type)
    return this.#bytes.toString('hex', start, this.#at)
  }

  expect(type: number, wanted: number): void {
    if (type !== wanted) throw new Error(`type ${type} for ${wanted}`)
  }

  skip(type: number): void {
    switch (type) {
      case BOOLEAN_TRUE:
      case BOOLEAN_FALSE:
        return
      case BYTE:
        return this.#pass(1)
      case DOUBLE:
        return this.#pass(8)
      case BINARY:
        this.#skipBinary()
        return
      case STRUCT:
        return this.#skipStruct()
      case LIST:
      case SET: {
        const { size, of } = this.#listHead()
        for (let i = 0; i < size; i++) this.#skipElement(of)
        return
      }
      case MAP: {
        const size = this.#varint()
        if (size === 0) return
        const types = this.#byte()
        for (let i = 0; i < size; i++) {
          this.#skipElement(types >> 4)
          this.#skipElement(types & 0x0f)
        }
        return
      }
      default:
        if (!INTEGERS.has(type)) throw new Error(`type ${type}`)
        this.#varint()
    }
  }

  #skipStruct(): void {
    if (++this.#depth > MAX_DEPTH) throw new Error('structures nested too deeply')
    for (let head = this.#byte(); head !== 0; head = this.#byte()) {
      if (head >> 4 === 0) this.#varint()
      this.skip(head & 0x0f)
    }
    this.#depth--
  }

  /** Skips an element of a list, in which a boolean is a byte of its own. */
  #skipElement(type: number): void {
    if (type === BOOLEAN_TRUE || type === BOOLEAN_FALSE) this.#pass(1)
    else this.skip(type)
  }

  #listHead(): { readonly size: number; readonly of: number } {
    const head = this.#byte()
    const short = head >> 4
    return { size: short === 15 ? this.#varint() : short, of: head & 0x0f }
  }

  /** @returns the offset where the value begins */
  #skipBinary(): number {
    const length = this.#varint()
    const start = this.#at
    this.#pass(length)
    return start
  }

  #pass(length: number): void {
    if (length > this.#bytes.length - this.#at) throw new Error('an end before its data')
    this.#at += length
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw new Error('an end before its data')
    return byte
  }

  #zigzag(): number {
    const value = this.#varint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  #varint(): number {
    let byte = this.#byte()
    if (byte < 0x80) return byte
    let value = byte & 0x7f
    for (let factor = 0x80; ; factor *= 0x80) {
      byte = this.#byte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
      if (factor > Number.MAX_SAFE_INTEGER * 0x80) throw new Error('a number without end')
    }
  }
}
