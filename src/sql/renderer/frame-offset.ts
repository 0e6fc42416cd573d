import type { Expr, BoundFrame } from '../analyzer/tree.ts'
import { notSupportedPrecision } from '../functions/precision-guard.ts'
import { integer, literal, sql, type Sql } from '../../duckdb/text/sql.ts'
import { isFine } from '../types/duckdb-representation.ts'
import type { SqlType } from '../types/sql-type.ts'

const BAD_OFFSET = literal('INVALID_WINDOW_FRAME: Window frame offset value must not be negative or null')
/** More rows than any input has. DuckDB adds the offset to a row number, and the sum must fit 64 bits. */
const MOST_ROWS = 1n << 62n

export const FRAME_BOUNDS = {
  UNBOUNDED_PRECEDING: sql`UNBOUNDED PRECEDING`,
  PRECEDING: sql`PRECEDING`,
  CURRENT_ROW: sql`CURRENT ROW`,
  FOLLOWING: sql`FOLLOWING`,
  UNBOUNDED_FOLLOWING: sql`UNBOUNDED FOLLOWING`,
}

/**
 * Renders the `n` of `n PRECEDING` as `text`: a number for ROWS and GROUPS; for RANGE, the distance in keys of type
 * `sorted`.
 */
export function frameOffset(type: BoundFrame['type'], value: Expr, text: Sql, sorted: SqlType | undefined): Sql {
  const known = value.kind === 'constant' && value.value !== null && !String(value.value).startsWith('-')
  const checked = known
    ? text
    : sql`CASE WHEN ${text} IS NULL OR ${text} < 0 THEN u_raise(${BAD_OFFSET}) ELSE ${text} END`
  if (type === 'RANGE') return sorted === undefined ? checked : rangeOffset(sorted, value.type, checked)
  if (known) {
    const count = BigInt(String(value.value).split('.')[0]!)
    return integer(count < MOST_ROWS ? count : MOST_ROWS)
  }
  if (value.type.kind !== 'bigint' && value.type.kind !== 'decimal') return sql`CAST(${checked} AS BIGINT)`
  const held = value.type.kind === 'bigint' ? sql`BIGINT` : sql`DECIMAL(38,0)`
  return sql`CAST(least(${checked}, CAST(${integer(MOST_ROWS)} AS ${held})) AS BIGINT)`
}

/** The distance in the key that DuckDB sorts by. */
function rangeOffset(sorted: SqlType, offset: SqlType, checked: Sql): Sql {
  if (offset.kind !== 'interval day to second' && offset.kind !== 'interval year to month') return checked
  switch (sorted.kind) {
    case 'interval day to second':
    case 'interval year to month':
      return checked
    case 'time':
    case 'time with time zone':
      return sql`(${checked} * ${integer(isFine(sorted) ? 1_000_000_000 : 1000)})`
    default:
      if (isFine(sorted)) throw notSupportedPrecision(sorted)
      return offset.kind === 'interval year to month' ? sql`to_months(${checked})` : sql`to_milliseconds(${checked})`
  }
}
