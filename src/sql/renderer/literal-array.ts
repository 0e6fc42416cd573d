import type { ConstantExpr, LiteralsExpr } from '../analyzer/tree.ts'
import type { Names } from '../functions/rendering.ts'
import { literal, sql, type Sql } from '../../duckdb/text/sql.ts'
import { duckdbType } from '../types/duckdb-representation.ts'
import type { SqlType } from '../types/sql-type.ts'
import { literalText } from './constants.ts'

/**
 * Renders many constants as one string literal of JSON: DuckDB parses and binds it as one expression, at a tenth of the
 * cost of separate literals.
 */
export function renderLiterals({ type: { element }, literals }: LiteralsExpr, names: Names): Sql {
  switch (element.kind) {
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'varchar':
      return fromJson(element, literals)
    case 'char':
      return sql`json_transform(${jsonOf(element, literals)}, '["VARCHAR"]')`
    case 'varbinary': {
      const item = names.fresh()
      return sql`list_transform(json_transform(${jsonOf(element, literals)}, '["VARCHAR"]'), lambda ${item}: from_hex(${item}))`
    }
    default:
      return sql`CAST(json_transform(${jsonOf(element, literals)}, '["VARCHAR"]') AS ${duckdbType(element)}[])`
  }
}

function fromJson(element: SqlType, literals: LiteralsExpr['literals']): Sql {
  // DuckDB uses the SQL names of these types.
  return sql`json_transform(${jsonOf(element, literals)}, ${literal(JSON.stringify([element.kind.toUpperCase()]))})`
}

function jsonOf(element: SqlType, literals: LiteralsExpr['literals']): Sql {
  return literal(`[${literals.map((value) => itemOf(element, value)).join(',')}]`)
}

const PLAIN_NUMBER = /^(?:0|-?[1-9]\d*)$/

function itemOf(element: SqlType, value: ConstantExpr['value']): string {
  if (value === null) return 'null'
  switch (element.kind) {
    case 'boolean':
      return String(value)
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint': {
      const text = String(value)
      // JSON does not allow leading zeros.
      return PLAIN_NUMBER.test(text) ? text : String(BigInt(text))
    }
    default:
      return JSON.stringify(literalText(element, value))
  }
}
