import { isAscii } from 'node:buffer'
import type { DuckDBType } from '@duckdb/node-api'
import type { Vector } from '@duckdb/node-bindings'
import { BIGINT, bindings, BLOB, BOOLEAN, DOUBLE, INTEGER, LIST, VARCHAR } from '../../shared/duckdb.ts'
import type { ColumnFunction, ArgumentColumns, ScalarTypeName, ScalarValue } from './scalar-function.ts'

// Reads and writes whole columns of DuckDB. @duckdb/node-api calls its bindings for every text of a column, which takes
// longer than most functions do. Here a column takes a few calls, whatever its number of rows.

export const scalarTypes: Readonly<Record<ScalarTypeName, DuckDBType>> = {
  VARCHAR,
  BIGINT,
  INTEGER,
  DOUBLE,
  BOOLEAN,
  BLOB,
  'VARCHAR[]': LIST(VARCHAR),
  'DOUBLE[]': LIST(DOUBLE),
}

/** Bytes of DuckDB's string_t: a length, then up to 12 bytes, or four bytes and the address of all. */
const STRING = 16
const INLINE = 12

/**
 * Texts with a smaller distance are read together. Less than a memory page, since the bytes between might not be
 * mapped.
 */
const GAP = 256
/** The largest size that is read together, bytes: a caller that keeps a part of it keeps all of it in memory. */
const SPAN = 32_768
/** Up to this number of bytes, copying them one by one is faster. */
const SHORT = 64
/** Results are passed on in pieces of about this many characters. */
const PIECE = 4_194_304

/** Reads the values of a vector's first rows. */
export function readColumn(vector: Vector, type: ScalarTypeName, rows: number): readonly ScalarValue[] {
  const isValid = validity(vector, rows)
  switch (type) {
    case 'VARCHAR':
      return strings(vector, rows, isValid, textOf)
    case 'BLOB':
      return strings(vector, rows, isValid, bytesOf)
    case 'BIGINT':
      return numbers(new BigInt64Array(data(vector, rows * 8)), isValid)
    case 'INTEGER':
      return numbers(new Int32Array(data(vector, rows * 4)), isValid)
    case 'DOUBLE':
      return numbers(new Float64Array(data(vector, rows * 8)), isValid)
    case 'BOOLEAN': {
      const bytes = new Uint8Array(data(vector, rows))
      const values: (boolean | null)[] = []
      for (let row = 0; row < rows; row++) values.push(isValid(row) ? bytes[row] !== 0 : null)
      return values
    }
    case 'VARCHAR[]':
    case 'DOUBLE[]': {
      const entries = new BigUint64Array(data(vector, rows * 16))
      const size = bindings.list_vector_get_size(vector)
      const items = size === 0 ? [] : readColumn(bindings.list_vector_get_child(vector), itemType(type), size)
      return Array.from({ length: rows }, (_, i) => {
        if (!isValid(i)) return null
        const start = Number(entries[2 * i]!)
        return items.slice(start, start + Number(entries[2 * i + 1]!)) as (string | number | null)[]
      })
    }
  }
}

/** Writes a vector's first rows. */
export function writeColumn(vector: Vector, type: ScalarTypeName, values: readonly ScalarValue[]): void {
  if (values.length === 0) return
  writeValidity(vector, values)
  switch (type) {
    case 'VARCHAR':
    case 'BLOB':
      writeStrings(vector, values as readonly (string | Uint8Array | null)[])
      return
    case 'BIGINT':
      copy(vector, bigints(values as readonly (bigint | number | null)[]))
      return
    case 'INTEGER':
      copy(vector, filled(new Int32Array(values.length), values as readonly (number | null)[]))
      return
    case 'DOUBLE':
      copy(vector, filled(new Float64Array(values.length), values as readonly (number | null)[]))
      return
    case 'BOOLEAN':
      copy(vector, Uint8Array.from(values as readonly (boolean | null)[], Number))
      return
    case 'VARCHAR[]':
    case 'DOUBLE[]': {
      const lists = values as readonly (readonly (string | number | null)[] | null)[]
      const entries = new BigUint64Array(lists.length * 2)
      let size = 0
      for (const [i, list] of lists.entries()) {
        entries[2 * i] = BigInt(size)
        entries[2 * i + 1] = BigInt(list?.length ?? 0)
        size += list?.length ?? 0
      }
      bindings.list_vector_reserve(vector, size)
      bindings.list_vector_set_size(vector, size)
      copy(vector, entries)
      writeColumn(
        bindings.list_vector_get_child(vector),
        itemType(type),
        lists.flatMap((list) => list ?? []),
      )
    }
  }
}

/** Reads the first rows of a function's columns. */
export function readColumns(
  vectors: readonly Vector[],
  types: ColumnFunction['parameters'],
  rows: number,
): ArgumentColumns & { readonly bits: Uint8Array<ArrayBuffer> | undefined } {
  const bits = commonBits(vectors, rows)
  const of = (type: 'BIGINT' | 'VARCHAR'): readonly Vector[] => vectors.filter((_, i) => types[i] === type)
  return {
    rows,
    bits,
    numbers: of('BIGINT').map((vector) => new BigInt64Array(data(vector, rows * 8))),
    texts: of('VARCHAR').map((vector) => strings(vector, rows, validity(vector, rows), textOf)),
    isKnown: isValidIn(bits),
  }
}

/** Writes a vector's first rows; rows that are not valid in the bits are NULL. */
export function writeBigints(
  vector: Vector,
  values: BigInt64Array<ArrayBuffer>,
  bits: Uint8Array<ArrayBuffer> | undefined,
): void {
  if (bits !== undefined) {
    bindings.vector_ensure_validity_writable(vector)
    bindings.copy_data_to_vector_validity(vector, 0, bits.buffer, 0, bits.byteLength)
  }
  copy(vector, values)
}

function itemType(type: 'VARCHAR[]' | 'DOUBLE[]'): 'VARCHAR' | 'DOUBLE' {
  return type === 'VARCHAR[]' ? 'VARCHAR' : 'DOUBLE'
}

/** A copy of the vector's memory that begins at offset zero of its buffer. */
function data(vector: Vector, bytes: number): ArrayBuffer {
  const copied = bindings.vector_get_data(vector, bytes)
  return copied.byteOffset === 0 && copied.byteLength === copied.buffer.byteLength
    ? (copied.buffer as ArrayBuffer)
    : new Uint8Array(copied).buffer
}

function copy(vector: Vector, source: { readonly buffer: ArrayBuffer; readonly byteLength: number }): void {
  bindings.copy_data_to_vector(vector, 0, source.buffer, 0, source.byteLength)
}

function validity(vector: Vector, rows: number): (row: number) => boolean {
  return isValidIn(bitsOf(vector, rows) ?? undefined)
}

function bitsOf(vector: Vector, rows: number): Uint8Array | null {
  // DuckDB has no bits when all rows are valid, although the types of the bindings do not say so.
  return bindings.vector_get_validity(vector, Math.ceil(rows / 64) * 8) as Uint8Array | null
}

function isValidIn(bits: Uint8Array | undefined): (row: number) => boolean {
  return bits === undefined ? () => true : (row) => (bits[row >> 3]! & (1 << (row & 7))) !== 0
}

/** Bits of the rows that are valid in all vectors; undefined when all rows are. */
function commonBits(vectors: readonly Vector[], rows: number): Uint8Array<ArrayBuffer> | undefined {
  let common: Uint8Array<ArrayBuffer> | undefined
  for (const vector of vectors) {
    const bits = bitsOf(vector, rows)
    if (bits === null) continue
    if (common === undefined) common = Uint8Array.from(bits)
    else for (let i = 0; i < bits.length; i++) common[i]! &= bits[i]!
  }
  return common
}

function writeValidity(vector: Vector, values: readonly ScalarValue[]): void {
  if (!values.includes(null)) return
  const bits = new Uint8Array(Math.ceil(values.length / 64) * 8)
  for (const [row, value] of values.entries()) if (value !== null) bits[row >> 3]! |= 1 << (row & 7)
  bindings.vector_ensure_validity_writable(vector)
  bindings.copy_data_to_vector_validity(vector, 0, bits.buffer, 0, bits.byteLength)
}

function numbers<T extends number | bigint>(all: ArrayLike<T>, isValid: (row: number) => boolean): (T | null)[] {
  // Array.from and Typed.from use iterators, which take longer than most functions do.
  const values: (T | null)[] = []
  for (let row = 0; row < all.length; row++) values.push(isValid(row) ? all[row]! : null)
  return values
}

function bigints(values: readonly (bigint | number | null)[]): BigInt64Array<ArrayBuffer> {
  const all = new BigInt64Array(values.length)
  for (let row = 0; row < all.length; row++) {
    const value = values[row]!
    if (value !== null) all[row] = typeof value === 'bigint' ? value : BigInt(value)
  }
  return all
}

function filled<T extends Int32Array<ArrayBuffer> | Float64Array<ArrayBuffer>>(
  all: T,
  values: readonly (number | null)[],
): T {
  for (let row = 0; row < all.length; row++) all[row] = values[row] ?? 0
  return all
}

/** Bytes that were read together; `text` is present when every byte is a character. */
interface Span {
  readonly bytes: Buffer
  readonly text: string | undefined
}

function spanOf(bytes: Buffer): Span {
  return { bytes, text: isAscii(bytes) ? bytes.toString('latin1') : undefined }
}

function textOf({ bytes, text }: Span, start: number, end: number): string {
  return text === undefined ? bytes.toString('utf8', start, end) : text.substring(start, end)
}

function bytesOf({ bytes }: Span, start: number, end: number): Uint8Array {
  return bytes.subarray(start, end)
}

function strings<T>(
  vector: Vector,
  rows: number,
  isValid: (row: number) => boolean,
  taken: (span: Span, start: number, end: number) => T,
): (T | null)[] {
  const held = data(vector, rows * STRING)
  const words = new Uint32Array(held)
  const values: (T | null)[] = []
  const far: number[] = []
  const repeated: number[] = []
  const inline = { bytes: Buffer.from(held), text: undefined }
  const addressOf = (row: number): number => words[4 * row + 2]! + words[4 * row + 3]! * 2 ** 32
  let inOrder = true
  for (let row = 0; row < rows; row++) {
    values.push(null)
    if (!isValid(row)) continue
    // A literal, or a column of few texts: equal words mean the same text.
    if (row > 0 && isRepeated(words, row) && isValid(row - 1)) {
      repeated.push(row)
      continue
    }
    const length = words[4 * row]!
    if (length > INLINE) {
      inOrder &&= far.length === 0 || addressOf(far.at(-1)!) <= addressOf(row)
      far.push(row)
      continue
    }
    values[row] = taken(inline, row * STRING + 4, row * STRING + 4 + length)
  }
  if (!inOrder) far.sort((a, b) => addressOf(a) - addressOf(b))
  for (let first = 0; first < far.length;) {
    const start = addressOf(far[first]!)
    let end = start + words[4 * far[first]!]!
    let next = first + 1
    for (; next < far.length; next++) {
      const from = addressOf(far[next]!)
      const to = Math.max(end, from + words[4 * far[next]!]!)
      if (from - end > GAP || to - start > SPAN) break
      end = to
    }
    const read = bindings.get_data_from_pointer(held, far[first]! * STRING + 8, end - start)
    const span = spanOf(Buffer.from(read.buffer, read.byteOffset, read.byteLength))
    for (; first < next; first++) {
      const row = far[first]!
      const at = addressOf(row) - start
      values[row] = taken(span, at, at + words[4 * row]!)
    }
  }
  for (const row of repeated) values[row] = values[row - 1]!
  return values
}

/** Whether a row's text has the address of the text of the row before, or is the same inline text. */
function isRepeated(words: Uint32Array, row: number): boolean {
  const at = 4 * row
  return (
    words[at] === words[at - 4] &&
    words[at + 1] === words[at - 3] &&
    words[at + 2] === words[at - 2] &&
    words[at + 3] === words[at - 1]
  )
}

/**
 * Passes on several results as one string of DuckDB, of which each result is a part: the vector keeps that string as
 * long as it lives.
 */
function writeStrings(vector: Vector, values: readonly (string | Uint8Array | null)[]): void {
  const held = new ArrayBuffer(values.length * STRING)
  for (let first = 0; first < values.length;) {
    let next = first
    for (let size = 0; next < values.length && size < PIECE; next++) size += values[next]?.length ?? 0
    const all = first === 0 && next === values.length
    writePiece(vector, all ? values : values.slice(first, next), held, first * STRING)
    first = next
  }
  bindings.copy_data_to_vector(vector, 0, held, 0, held.byteLength)
}

function writePiece(
  vector: Vector,
  values: readonly (string | Uint8Array | null)[],
  held: ArrayBuffer,
  from: number,
): void {
  const { bytes, lengths } = joined(values)
  const words = new Uint32Array(held, from, values.length * (STRING / 4))
  const inlined = new Uint8Array(held, from, values.length * STRING)
  let address: number | undefined
  let start = 0
  for (let row = 0; row < values.length; row++) {
    const length = lengths[row]!
    if (length === 0) continue
    words[4 * row] = length
    const copied = length > INLINE ? 4 : length
    for (let i = 0; i < copied; i++) inlined[row * STRING + 4 + i] = bytes[start + i]!
    if (length > INLINE) {
      address ??= addressOfCopy(vector, bytes)
      words[4 * row + 2] = (address + start) % 2 ** 32
      words[4 * row + 3] = Math.floor((address + start) / 2 ** 32)
    }
    start += length
  }
}

/** The values one behind the other, and the length of each, bytes. */
function joined(values: readonly (string | Uint8Array | null)[]): {
  readonly bytes: Buffer
  readonly lengths: Uint32Array
} {
  const lengths = new Uint32Array(values.length)
  let size = 0
  let isText = true
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (value === null) continue
    lengths[row] = value.length
    size += value.length
    isText &&= typeof value === 'string'
  }
  if (isText) {
    const bytes = Buffer.from(values.join(''))
    if (bytes.length === size) return { bytes, lengths }
    // One by one: half characters at the ends of two neighbouring texts must not become one character.
    return joined(values.map((value) => (typeof value === 'string' ? Buffer.from(value) : value)))
  }
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  for (const value of values as readonly (Uint8Array | null)[]) {
    if (value === null) continue
    if (value.length > SHORT) bytes.set(value, at)
    else for (let i = 0; i < value.length; i++) bytes[at + i] = value[i]!
    at += value.length
  }
  return { bytes, lengths }
}

/** The address where the vector has put a copy of the bytes, which are more than twelve. */
function addressOfCopy(vector: Vector, bytes: Buffer): number {
  bindings.vector_assign_string_element_len(vector, 0, bytes)
  return Number(new BigUint64Array(data(vector, STRING))[1]!)
}
