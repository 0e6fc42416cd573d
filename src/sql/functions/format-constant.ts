import { integer, joined, literal, sql, type Sql } from '../../duckdb/text/sql.ts'
import type { SqlType } from '../types/sql-type.ts'

/** A value for `format`. `generally` renders it alone with a specifier, through the general function. */
interface Given {
  readonly x: Sql
  readonly type: SqlType
  generally(specifier: string): Sql
}

/** The number of fractional digits that DuckDB's decimal always holds besides the integer digits. */
const MAX_DECIMALS = 15

/**
 * Renders `format` with a constant pattern, if it contains only plain `%s`, `%d` and `%.2f`, one for each value, and
 * the result certainly equals that of java.util.Formatter; otherwise undefined.
 */
export function constantFormat(pattern: string, values: readonly Given[]): Sql | undefined {
  const parts: Sql[] = []
  let next = 0
  for (const [part, decimals, conversion] of pattern.matchAll(/%(?:\.(\d{1,2}))?([sdf])|%%|[^%]+|%/g)) {
    if (part === '%') return undefined
    if (conversion === undefined) {
      parts.push(literal(part === '%%' ? '%' : part))
      continue
    }
    const value = values[next++]
    const digits = decimals === undefined ? undefined : Number(decimals)
    const text = value && converted(value, conversion, digits)
    if (text === undefined) return undefined
    // Also cuts the text of NULL, where the precision is a number of characters.
    parts.push(sql`coalesce(${text}, ${literal('null'.slice(0, digits))})`)
  }
  // A value without a specifier may still fail, so it must be evaluated.
  return next === values.length && parts.length > 0 ? sql`concat(${joined(parts, ', ')})` : undefined
}

function converted({ x, type, generally }: Given, conversion: string, decimals: number | undefined): Sql | undefined {
  switch (type.kind) {
    case 'varchar':
      return conversion === 's' && decimals === undefined ? x : undefined
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return conversion !== 'f' && decimals === undefined ? sql`CAST(${x} AS VARCHAR)` : undefined
    case 'double': {
      const digits = decimals ?? 6
      if (conversion !== 'f' || digits > MAX_DECIMALS) return undefined
      // Rounds Java's digits half up; the sign stays even before zeros.
      const rounded = sql`CAST(CAST(CAST(abs(${x}) AS VARCHAR) AS DECIMAL(38, ${integer(digits)})) AS VARCHAR)`
      const signed = sql`CASE WHEN ${x} < 0 THEN '-' ELSE '' END || ${rounded}`
      return sql`CASE WHEN abs(${x}) >= 1e-3 AND abs(${x}) < 1e7 THEN ${signed} WHEN ${x} IS NOT NULL THEN ${generally(`%.${digits}f`)} END`
    }
    default:
      return undefined
  }
}
