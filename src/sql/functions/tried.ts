import { sql, type Sql } from '../../duckdb/text/sql.ts'

/**
 * The value, or NULL where it fails.
 *
 * After a failure DuckDB 1.5.6 calculates row by row into a vector of one row, and COALESCE, if it is what TRY holds or what
 * a CASE in it chooses, writes there at the number of the row: over what lies behind, tables of others among it. Any
 * function around it gives it a vector of its own; `least` of one value is that value, of every type.
 */
export function tried(value: Sql): Sql {
  return sql`TRY(least(${value}))`
}
