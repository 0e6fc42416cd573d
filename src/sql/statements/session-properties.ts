import { canCoerce } from '../types/coercion.ts'
import { BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, type SqlType } from '../types/sql-type.ts'
import type { ConstantValue } from './constant-values.ts'
import { sessionPropertyTable } from './session-property-table.ts'

export interface SessionProperty {
  readonly name: string
  /** Undefined: NULL. */
  readonly defaultValue: string | undefined
  readonly type: keyof typeof types
  readonly description: string
}

const types = { boolean: BOOLEAN, bigint: BIGINT, integer: INTEGER, double: DOUBLE, varchar: VARCHAR } as const

const byName = new Map<string, SessionProperty>(
  sessionPropertyTable.map(([name, defaultValue, type, description]) => [
    name,
    { name, defaultValue: defaultValue === '' ? undefined : defaultValue, type, description },
  ]),
)

export function sessionProperties(): readonly SessionProperty[] {
  return [...byName.values()]
}

/** The property with this name, in lower case; undefined where there is none. */
export function sessionProperty(name: string): SessionProperty | undefined {
  return byName.get(name)
}

export function propertyType(property: SessionProperty): SqlType {
  return types[property.type]
}

/** Whether a constant's type can become the property's. */
export function acceptsType(property: SessionProperty, value: ConstantValue): boolean {
  return canCoerce(value.type, propertyType(property))
}

const duration = /^\s*\d+(?:\.\d+)?\s*(?:ns|us|ms|s|m|h|d)\s*$/
const dataSize = /^\s*\d+(?:\.\d+)?\s*(?:B|kB|MB|GB|TB|PB)\s*$/
const powersOfTwo: ReadonlySet<string> = new Set(['task_concurrency', 'task_min_writer_count', 'task_max_writer_count'])

/** Values that its strategies may have, besides those that a description lists. */
const choices: Readonly<Record<string, readonly string[]>> = {
  join_distribution_type: ['BROADCAST', 'PARTITIONED', 'AUTOMATIC'],
  join_reordering_strategy: ['NONE', 'ELIMINATE_CROSS_JOINS', 'AUTOMATIC'],
  exchange_compression_codec: ['NONE', 'LZ4', 'ZSTD'],
}

function choicesOf(property: SessionProperty): readonly string[] | undefined {
  const listed = /Possible values: \[([^\]]*)\]/.exec(property.description)?.[1]
  return choices[property.name] ?? listed?.split(', ')
}

/** What is wrong with a value of the right type, in Trino's words; undefined where nothing is. */
export function complaintAbout(property: SessionProperty, value: string): string | undefined {
  const allowed = choicesOf(property)
  if (allowed !== undefined) {
    return allowed.includes(value.toUpperCase())
      ? undefined
      : `Invalid value [${value}]. Valid values: [${allowed.join(', ')}]`
  }
  if (property.type === 'varchar' && property.defaultValue !== undefined) {
    if (duration.test(property.defaultValue) && !duration.test(value)) {
      return `duration is not a valid data duration string: ${value}`
    }
    if (dataSize.test(property.defaultValue) && !dataSize.test(value)) {
      return `size is not a valid data size string: ${value}`
    }
  }
  if (powersOfTwo.has(property.name) && !isPowerOfTwo(BigInt(value))) {
    return `${property.name} must be a power of 2: ${value}`
  }
  return undefined
}

function isPowerOfTwo(value: bigint): boolean {
  return value > 0n && (value & (value - 1n)) === 0n
}
