import type { TypePattern } from '../../src/sql/functions/signature.ts'
import { parseTypeText } from '../../src/sql/types/type-names.ts'
import type { SqlType } from '../../src/sql/types/sql-type.ts'

/** An expression with a value of the type in DuckDB. */
export function sampleOf(type: SqlType): string {
  switch (type.kind) {
    case 'array':
      return `[${sampleOf(type.element)}]`
    case 'map':
      return `MAP {${sampleOf(type.key)}: ${sampleOf(type.value)}}`
    case 'row':
      return `{${type.fields.map((field, i) => `'f${i}': ${sampleOf(field.type)}`).join(', ')}}`
    case 'qdigest':
      return `[{'v': ${sampleOf(type.element)}, 'w': CAST(1 AS DOUBLE)}]`
    case 'decimal':
      return `CAST(1 AS DECIMAL(${type.precision},${type.scale}))`
    case 'varchar':
      return `'12'`
    case 'char':
      return `rpad('12', ${type.length}, ' ')`
    case 'time':
      return type.precision > 6 ? 'CAST(36000123456789012 AS BIGINT)' : `TIME '10:00:00'`
    case 'timestamp':
      return type.precision > 6
        ? `{'t': TIMESTAMP '2024-02-29 10:20:30.123456', 'p': CAST(789000 AS INTEGER)}`
        : `TIMESTAMP '2024-02-29 10:20:30'`
    case 'time with time zone':
      return `{'t': TIME '10:00:00', 'o': CAST(60 AS INTEGER)}`
    case 'timestamp with time zone':
      return type.precision > 6
        ? `{'t': TIMESTAMP '2024-02-29 10:20:30.123456', 'p': CAST(789000 AS INTEGER), 'z': 'Europe/Paris'}`
        : `{'t': TIMESTAMP '2024-02-29 10:20:30', 'z': 'Europe/Paris'}`
    default:
      return simple[type.kind] ?? `CAST(NULL AS VARCHAR)`
  }
}

const simple: Readonly<Record<string, string>> = {
  unknown: 'CAST(NULL AS INTEGER)',
  boolean: 'true',
  tinyint: 'CAST(1 AS TINYINT)',
  smallint: 'CAST(1 AS SMALLINT)',
  integer: 'CAST(1 AS INTEGER)',
  bigint: 'CAST(1 AS BIGINT)',
  real: 'CAST(1 AS FLOAT)',
  double: 'CAST(1 AS DOUBLE)',
  varbinary: `encode('ab')`,
  json: `'1'`,
  date: `DATE '2024-02-29'`,
  'interval day to second': 'CAST(86400000 AS BIGINT)',
  'interval year to month': 'CAST(3 AS INTEGER)',
  uuid: `CAST('12151fd2-7586-11e9-8f9e-2a86e4085a59' AS UUID)`,
  ipaddress: `u_ip_parse('10.0.0.1')`,
  HyperLogLog: `{'b': CAST(12 AS INTEGER), 'd': false, 'c': CAST([1] AS INTEGER[])}`,
  P4HyperLogLog: `{'b': CAST(12 AS INTEGER), 'd': false, 'c': CAST([1] AS INTEGER[])}`,
  SetDigest: 'CAST(MAP {1: 1} AS MAP(INTEGER, BIGINT))',
  tdigest: `[{'v': CAST(1 AS DOUBLE), 'w': CAST(1 AS DOUBLE)}]`,
  color: 'CAST(255 AS INTEGER)',
}

/** The lengths of texts where a signature leaves them open. */
export interface UsualLengths {
  readonly varchar: number
  readonly char: number
}

/** The type of an argument for a parameter: type variables become `variable`, open sizes become usual sizes. */
export function typeOf(
  pattern: TypePattern,
  variable: SqlType,
  usual: UsualLengths = { varchar: 8, char: 8 },
): SqlType {
  const inner = (part: TypePattern): SqlType => typeOf(part, variable, usual)
  switch (pattern.kind) {
    case 'variable':
    case 'any':
      return variable
    case 'plain':
      return pattern.type
    case 'sized':
      if (pattern.base === 'decimal') return parseTypeText('decimal(9,2)')
      if (pattern.base === 'varchar' || pattern.base === 'char') {
        const [length] = pattern.parameters
        return parseTypeText(`${pattern.base}(${typeof length === 'number' ? length : usual[pattern.base]})`)
      }
      return parseTypeText(pattern.base.replace(/^(timestamp|time)/, '$1(3)'))
    case 'array':
    case 'qdigest':
      return { kind: pattern.kind, element: inner(pattern.element) }
    case 'map':
      return { kind: 'map', key: inner(pattern.key), value: inner(pattern.value) }
    case 'row':
      return {
        kind: 'row',
        fields: pattern.fields.map((field) => ({ name: undefined, type: inner(field) })),
      }
    case 'function':
      throw new Error('A lambda has no type of its own')
  }
}
