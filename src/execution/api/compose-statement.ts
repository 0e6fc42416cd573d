import type { Fragment } from './fragment.ts'

/**
 * The statement an engine runs for a fragment: each scan's table expression as a CTE named as the fragment names it,
 * then one VARCHAR column: the JSON text of a row array, values in the wire encoding.
 * @param scans table expression of each scan, in order: a DuckDB SELECT
 */
export function composeStatement(fragment: Fragment, scans: readonly string[]): string {
  const values = fragment.output.map((column) => column.wire).join(', ')
  const ctes = scans.map((scan, index) => `"$s${index}" AS (${scan})`)
  const prefix = ctes.length > 0 ? `WITH ${ctes.join(', ')} ` : ''
  return `${prefix}SELECT json_array(${values})::VARCHAR AS "row" FROM (${fragment.sql}) AS "$q"`
}
