import type { DuckDBConnection } from '@duckdb/node-api'
import { checkExpression, checkStatement } from '../../src/execution/engine/statement-wall.ts'
import { engineVocabulary } from '../../src/duckdb/engine-vocabulary.ts'
import type { RenderedQuery } from '../../src/planner/planned-statement.ts'
import { translateError } from '../../src/sql/functions/runtime-errors.ts'

export type RenderedScan = RenderedQuery['scans'][number]

/**
 * The SQL of a rendered query with its scans inserted, as an engine inserts them. It has passed the statement wall.
 * @param sourceOf the text in FROM for a scan
 */
export function withScans(query: RenderedQuery, sourceOf: (scan: RenderedScan) => string): string {
  const { scans } = checkStatement(query.sql, query.scans.length, engineVocabulary)
  for (const value of query.wire) checkExpression(value, engineVocabulary)
  let text = ''
  let at = 0
  for (const { scan: index, from, to } of scans) {
    const scan = query.scans[index]!
    // DuckDB numbers the rows of a table from 0.
    const rowIds = scan.rowIds ? ['CAST(0 AS INTEGER) AS "$file"', 'rowid AS "$row"'] : []
    const columns = [...scan.columns.map((column) => `"${column}"`), ...rowIds]
    const list = columns.length === 0 ? '1' : columns.join(', ')
    text += `${query.sql.slice(at, from)}(SELECT ${list} FROM ${sourceOf(scan)})`
    at = to
  }
  return text + query.sql.slice(at)
}

/** The rows of a rendered query in the form that a client gets. @throws EngineError */
export async function wireRows(
  connection: DuckDBConnection,
  query: RenderedQuery,
  sourceOf: (scan: RenderedScan) => string,
): Promise<unknown[][]> {
  const statement = `SELECT CAST(json_array(${query.wire.join(', ')}) AS VARCHAR) FROM (${withScans(query, sourceOf)})`
  try {
    const reader = await connection.runAndReadAll(statement)
    return reader.getRows().map(([row]) => JSON.parse(row as string) as unknown[])
  } catch (error) {
    throw translateError(error instanceof Error ? error.message : String(error))
  }
}
