import { sql, type Sql } from '../../duckdb/text/sql.ts'

/**
 * Evaluates to the value, or to NULL if it fails.
 *
 * After a failure, DuckDB 1.5.6 evaluates row by row into a vector of one row. A COALESCE directly in TRY, or chosen by
 * a CASE in it, then writes at the index of the row, beyond that vector, and overwrites other memory. Any function
 * around it gives it a vector of its own; `least` of one value is that value, for every type.
 */
export function tried(value: Sql): Sql {
  return sql`TRY(least(${value}))`
}
