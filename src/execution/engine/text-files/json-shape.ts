import { parseDuckDbType, type DuckDbType } from '../../../connectors/spi/duckdb-type-text.ts'
import { fits, scalarBit, type JsonFile, type JsonLayout, type JsonShape } from '../../../connectors/spi/text-file.ts'
import type { TextNeed } from '../../../connectors/spi/table-source.ts'
import { checkUtf8, startOf } from './csv-records.ts'
import { SAMPLE_BYTES, SAMPLE_RECORDS } from './csv-shape.ts'
import { MoreNeeded, ValueFault, ValueNode, ValueReader } from './json-values.ts'
import { readChunks } from './read-chunks.ts'
import { TextFault } from './text-fault.ts'

/** DuckDB's own limit for a value, bytes. */
const LARGEST_VALUE = 16 * 1024 * 1024

type NamedNeed = TextNeed & { readonly name: string }

const LIST = 0x5b
const LIST_END = 0x5d
const COMMA = 0x2c

/**
 * Determines the layout and the types of a JSON file, from the whole of a small file or the beginning of a large one.
 * @throws TextFault
 */
export async function jsonShape(path: string): Promise<JsonFile> {
  const node = new ValueNode()
  const records = new JsonRecords(path, node)
  const complete = await records.read(SAMPLE_RECORDS)
  return {
    layout: records.layout,
    ...(records.count > 0 && { record: shapeOf(node) }),
    complete,
  }
}

/**
 * Checks every value of a file.
 * @param isRecord each value is an object with these columns; else the only column is the value itself
 * @throws TextFault for the first value that does not fit
 */
export async function checkJson(
  path: string,
  layout: JsonLayout,
  isRecord: boolean,
  needs: readonly NamedNeed[],
): Promise<void> {
  const root = isRecord ? new ValueNode(fits.object) : nodeOf(needs[0]!)
  if (isRecord) root.fields = new Map(needs.map((need) => [need.name, nodeOf(need)]))
  const records = new JsonRecords(path, root, layout)
  await records.read(Infinity)
}

function nodeOf({ type, declared }: TextNeed): ValueNode {
  return declared ? new ValueNode(undefined, type) : typeNode(parseDuckDbType(type), type)
}

function typeNode(type: DuckDbType, text: string): ValueNode {
  switch (type.kind) {
    case 'plain':
    case 'decimal':
      return new ValueNode(scalarBit(text) ?? fits.json)
    case 'list': {
      const node = new ValueNode(fits.list)
      node.element = typeNode(type.element, duckdbText(type.element))
      return node
    }
    case 'struct': {
      const node = new ValueNode(fits.object)
      node.fields = new Map(type.fields.map((field) => [field.name, typeNode(field.type, duckdbText(field.type))]))
      return node
    }
    case 'map':
    case 'other':
      return new ValueNode(fits.json)
  }
}

function duckdbText(type: DuckDbType): string {
  if (type.kind === 'plain') return type.name
  return type.kind === 'decimal' ? `DECIMAL(${type.precision},${type.scale})` : ''
}

function shapeOf(node: ValueNode): JsonShape {
  const { mask, fields, element } = node
  return {
    fits: mask,
    ...(mask & fits.object &&
      fields && { fields: [...fields].map(([name, field]) => ({ name, shape: shapeOf(field) })) }),
    ...(mask & fits.list && element && { element: shapeOf(element) }),
  }
}

/** Reads the records of a file in order. */
class JsonRecords {
  layout: JsonLayout = 'newline_delimited'
  count = 0
  readonly #path: string
  readonly #node: ValueNode
  /** Undefined: derived from the file. */
  readonly #known: JsonLayout | undefined
  readonly #reader = new ValueReader()
  #window: Buffer = Buffer.alloc(0)
  #started = false
  #closed = false
  /** The line on which the previous value ended. */
  #lineBefore = 0

  constructor(path: string, node: ValueNode, known?: JsonLayout) {
    this.#path = path
    this.#node = node
    this.#known = known
    if (known !== undefined) this.layout = known
  }

  /** @returns whether the file was read to its end */
  async read(most: number): Promise<boolean> {
    let bytes = 0
    let waiting: Buffer[] = []
    let wanted = 0
    for await (const chunk of readChunks(this.#path)) {
      bytes += chunk.length
      waiting.push(chunk)
      // A value that is longer than the window is read again from its beginning, each time with twice as many bytes.
      const available = waiting.reduce((sum, one) => sum + one.length, 0)
      if (available < wanted) continue
      this.#window = Buffer.concat([this.#window, ...waiting])
      waiting = []
      this.#take(false, most)
      wanted = this.#window.length
      if (this.count >= most || (bytes > SAMPLE_BYTES && most !== Infinity && this.count > 0)) return false
    }
    this.#window = Buffer.concat([this.#window, ...waiting])
    this.#take(true, most)
    return this.count < most
  }

  #take(atEnd: boolean, most: number): void {
    const reader = this.#reader
    const bytes = this.#window
    Object.assign(reader, { bytes, at: 0, end: bytes.length, atEnd })
    let begun = { at: 0, line: reader.line }
    try {
      if (!this.#started && !this.#start()) return
      while (this.count < most) {
        begun = { at: reader.at, line: reader.line }
        if (!this.#record()) {
          begun = { at: reader.at, line: reader.line }
          break
        }
        begun = { at: reader.at, line: reader.line }
      }
    } catch (error) {
      if (error instanceof ValueFault) throw new TextFault(this.#path, reader.line, error.message)
      if (!(error instanceof MoreNeeded)) throw error
      reader.line = begun.line
    }
    checkUtf8(this.#path, bytes.subarray(0, begun.at), begun.line)
    this.#window = bytes.subarray(begun.at)
    if (this.#window.length > LARGEST_VALUE) throw tooLarge(this.#path, reader.line)
  }

  /** Reads the beginning of the file. @returns whether there are enough bytes to continue */
  #start(): boolean {
    const reader = this.#reader
    if (startOf(this.#path, reader.bytes) > 0)
      throw new TextFault(this.#path, 1, 'the file begins with a byte order mark, which JSON has not')
    const first = reader.peek()
    if (this.#known === undefined && first === LIST && this.#isArray()) this.layout = 'array'
    if (this.layout === 'array' && first !== -1) reader.expect(LIST)
    this.#started = true
    return true
  }

  /**
   * Whether the list at the beginning is the whole file. A list that continues behind the bytes counts as the whole
   * file.
   */
  #isArray(): boolean {
    const probe = Object.assign(new ValueReader(), {
      bytes: this.#reader.bytes,
      end: this.#reader.end,
      atEnd: this.#reader.atEnd,
    })
    try {
      probe.value(new ValueNode(fits.json))
      return probe.peek() === -1
    } catch (error) {
      if (error instanceof MoreNeeded || error instanceof ValueFault) return true
      throw error
    }
  }

  /** @returns whether there was another record */
  #record(): boolean {
    const reader = this.#reader
    const byte = reader.peek()
    if (this.layout === 'array') {
      if (this.#closed) {
        if (byte !== -1) throw new ValueFault('something follows the list that the file is')
        return false
      }
      if (byte === -1 && this.count === 0) return false
      if (byte === LIST_END) {
        reader.at++
        this.#closed = true
        return false
      }
      if (this.count > 0) {
        reader.expect(COMMA)
        reader.peek()
      }
    } else if (byte === -1) return false
    const { line, at } = reader
    reader.value(this.#node)
    if (reader.at - at > LARGEST_VALUE) throw tooLarge(this.#path, line)
    if (this.layout === 'newline_delimited' && (line === this.#lineBefore || line !== reader.line)) {
      if (this.#known !== undefined) throw new ValueFault('it does not hold one value as the lines before it do')
      this.layout = 'unstructured'
    }
    this.#lineBefore = reader.line
    this.count++
    return true
  }
}

function tooLarge(path: string, line: number): TextFault {
  return new TextFault(path, line, `a value is larger than ${LARGEST_VALUE} bytes, the most that can be read`)
}
