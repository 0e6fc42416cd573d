import { Signal } from '../../../shared/quipu-error.ts'
import { fits } from '../../../connectors/spi/text-file.ts'
import { acceptsText } from '../../../connectors/spi/accepts-text.ts'
import { classifyNumber, classifyString } from '../../../connectors/spi/classify-text.ts'
import { shown } from './text-fault.ts'

/** The deepest nesting that the reader accepts, in levels. */
const DEEPEST = 500
/** Values below this depth get the type JSON: types with more levels are not useful. */
const DEEPEST_TYPE = 24

/** A fault in the file, at the reader's position. */
export class ValueFault extends Signal {}
/** Signals that the value continues behind the bytes at hand. */
export class MoreNeeded extends Signal {}

/** The common type of the values at one position of the records. */
export class ValueNode {
  mask: number = fits.anything
  fields: Map<string, ValueNode> | undefined
  element: ValueNode | undefined
  /** The bit that all values must have; undefined when the type is being derived from the values. */
  readonly need: number | undefined
  /** The declared type, in DuckDB's words. */
  readonly declared: string | undefined
  /** The number of the object that had this field last: an object may have a field only once. */
  met = 0

  constructor(need?: number, declared?: string) {
    this.need = need
    this.declared = declared
  }
}

/** Reads JSON values strictly, and notes their types in nodes. */
export class ValueReader {
  bytes: Buffer = Buffer.alloc(0)
  at = 0
  /** The end of the bytes at hand, and whether the file ends there. */
  end = 0
  atEnd = false
  /** Line that `at` is on, from 1. */
  line = 1
  #objects = 0

  /** Skips blanks. @returns the next byte; -1 at the end of the file */
  peek(): number {
    const { bytes, end } = this
    for (; this.at < end; this.at++) {
      const byte = bytes[this.at]!
      if (byte === 0x0a) this.line++
      else if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return byte
    }
    if (!this.atEnd) throw new MoreNeeded()
    return -1
  }

  /** @throws ValueFault; MoreNeeded */
  value(node: ValueNode, depth = 0): void {
    if (depth > DEEPEST) throw new ValueFault(`its values are nested more than ${DEEPEST} levels deep`)
    const byte = this.peek()
    switch (byte) {
      case 0x7b:
        return this.#object(node, depth)
      case 0x5b:
        return this.#list(node, depth)
      case 0x22:
        return this.#string(node)
      case 0x74:
        return this.#word(node, 'true', fits.boolean)
      case 0x66:
        return this.#word(node, 'false', fits.boolean)
      case 0x6e:
        return this.#word(node, 'null', fits.anything)
      case 0x4e:
        return this.#word(node, 'NaN', fits.double)
      case -1:
        throw new ValueFault('the file ends within a value')
      default:
        return this.#number(node)
    }
  }

  expect(byte: number): void {
    if (this.peek() !== byte) this.#unexpected()
    this.at++
  }

  #unexpected(): never {
    const byte = this.peek()
    throw new ValueFault(
      byte === -1 ? 'the file ends within a value' : `it is not valid JSON at ${shown(String.fromCharCode(byte))}`,
    )
  }

  #note(node: ValueNode, mask: number, text: () => string): void {
    if (node.declared !== undefined) {
      if (mask === fits.anything || node.declared === 'JSON') return
      const value = text()
      const plain = mask & fits.text ? (JSON.parse(value) as string) : value
      const alike = node.declared === 'VARCHAR' ? (mask & fits.text) !== 0 : acceptsText(node.declared, plain)
      if (!alike) throw new ValueFault(`value ${shown(value)} cannot be read as ${node.declared} unchanged`)
      return
    }
    node.mask &= mask | fits.json
    if (node.need !== undefined && (node.mask & node.need) === 0)
      throw new ValueFault(`value ${shown(text())} has another type than the values before it`)
  }

  #object(node: ValueNode, depth: number): void {
    this.#note(node, fits.object, () => '{…}')
    const stamp = ++this.#objects
    const free = isJson(node) || depth >= DEEPEST_TYPE
    if (free) this.#note(node, fits.json, () => '{…}')
    node.fields ??= new Map()
    this.at++
    if (this.peek() === 0x7d) {
      this.at++
      return
    }
    for (;;) {
      if (this.peek() !== 0x22) this.#unexpected()
      const name = this.#name()
      this.expect(0x3a)
      if (free) this.value(new ValueNode(fits.json), depth + 1)
      else this.value(this.#field(node, name, stamp), depth + 1)
      const byte = this.peek()
      this.at++
      if (byte === 0x7d) return
      if (byte !== 0x2c) {
        this.at--
        this.#unexpected()
      }
    }
  }

  #field(node: ValueNode, name: string, stamp: number): ValueNode {
    let field = node.fields!.get(name)
    if (!field) {
      if (node.need !== undefined) throw new ValueFault(`key ${shown(name)} is in no object before it`)
      field = new ValueNode()
      node.fields!.set(name, field)
    }
    if (field.met === stamp) throw new ValueFault(`key ${shown(name)} is twice in an object`)
    field.met = stamp
    return field
  }

  #list(node: ValueNode, depth: number): void {
    this.#note(node, fits.list, () => '[…]')
    const free = isJson(node) || depth >= DEEPEST_TYPE
    if (free) this.#note(node, fits.json, () => '[…]')
    const element = free
      ? new ValueNode(fits.json)
      : (node.element ??= new ValueNode(node.need === undefined ? undefined : fits.json))
    this.at++
    if (this.peek() === 0x5d) {
      this.at++
      return
    }
    for (;;) {
      this.value(element, depth + 1)
      const byte = this.peek()
      this.at++
      if (byte === 0x5d) return
      if (byte !== 0x2c) {
        this.at--
        this.#unexpected()
      }
    }
  }

  #name(): string {
    const from = this.at
    const escaped = this.#stringEnd()
    const text = this.bytes.toString('utf8', from + 1, this.at - 1)
    return escaped ? (JSON.parse(`"${text}"`) as string) : text
  }

  #string(node: ValueNode): void {
    const from = this.at
    const escaped = this.#stringEnd()
    const mask =
      node.mask === (fits.text | fits.json) || escaped ? fits.text : classifyString(this.bytes, from + 1, this.at - 1)
    this.#note(node, mask, () => this.bytes.toString('utf8', from, this.at))
  }

  /** Moves behind the string. @returns whether it has escapes */
  #stringEnd(): boolean {
    const { bytes, end } = this
    let escaped = false
    for (let at = this.at + 1; at < end; at++) {
      const byte = bytes[at]!
      if (byte === 0x22) {
        this.at = at + 1
        return escaped
      }
      if (byte < 0x20) throw new ValueFault('a control character stands in a text')
      if (byte !== 0x5c) continue
      escaped = true
      at++
      if (at >= end) break
      const kind = bytes[at]!
      if (kind === 0x75) {
        if (at + 4 >= end) break
        if (!/^[0-9a-fA-F]{4}$/.test(bytes.toString('latin1', at + 1, at + 5)))
          throw new ValueFault('an escape in a text is none of JSON')
        at += 4
      } else if (!ESCAPES.has(kind)) throw new ValueFault('an escape in a text is none of JSON')
    }
    if (this.atEnd) throw new ValueFault('the file ends within a text')
    throw new MoreNeeded()
  }

  #word(node: ValueNode, word: string, mask: number): void {
    const { bytes, at } = this
    const to = at + word.length
    if (to > this.end && !this.atEnd) throw new MoreNeeded()
    if (bytes.toString('latin1', at, Math.min(to, this.end)) !== word) this.#unexpected()
    this.at = to
    this.#note(node, mask, () => word)
  }

  #number(node: ValueNode): void {
    const { bytes, end, at: from } = this
    let at = from
    while (at < end && NUMERIC[bytes[at]!]) at++
    if (at === end && !this.atEnd) throw new MoreNeeded()
    const text = (): string => bytes.toString('latin1', from, at)
    if (at === from || !/^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(text())) this.#unexpected()
    this.at = at
    let mask = classifyNumber(bytes, from, at)
    // Digits beyond the precision of a double are ignored, as JSON readers generally do.
    if (!/^-?\d+$/.test(text()) && Number.isFinite(Number(text()))) mask |= fits.double
    this.#note(node, mask, text)
  }
}

/** Whether the values have only the type JSON in common: their content is then irrelevant. */
function isJson({ mask, need, declared }: ValueNode): boolean {
  return declared !== undefined || need === fits.json || (need === undefined && mask === fits.json)
}

const ESCAPES = new Set(Buffer.from('"\\/bfnrt'))
const NUMERIC = new Uint8Array(256)
for (const byte of Buffer.from('0123456789+-.eE')) NUMERIC[byte] = 1
