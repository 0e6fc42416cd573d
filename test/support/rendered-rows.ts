import type { DuckDBConnection } from '@duckdb/node-api'
import { checkExpression, checkStatement } from '../../src/execution/engine/statement-wall.ts'
import { engineVocabulary } from '../../src/sql/engine-vocabulary.ts'
import type { RenderedQuery } from '../../src/sql/front-end.ts'
import { translateError } from '../../src/sql/functions/runtime-errors.ts'

export type RenderedScan = RenderedQuery['scans'][number]

/** A SELECT over a rendered query, which passed the engines' wall. @param sourceOf what stands in FROM for a scan of it */
export function withScans(query: RenderedQuery, select: string, sourceOf: (scan: RenderedScan) => string): string {
  checkStatement(query.sql, query.scans.length, engineVocabulary)
  for (const value of query.wire) checkExpression(value, engineVocabulary)
  const scans = query.scans.map((scan, i) => {
    const list = scan.columns.length === 0 ? '1' : scan.columns.map((column) => `"${column}"`).join(', ')
    return `"$s${i}" AS (SELECT ${list} FROM ${sourceOf(scan)})`
  })
  return scans.length === 0 ? select : `WITH ${scans.join(', ')} ${select}`
}

/** The rows of a rendered query as they go to a client. @throws EngineError */
export async function wireRows(
  connection: DuckDBConnection,
  query: RenderedQuery,
  sourceOf: (scan: RenderedScan) => string,
): Promise<unknown[][]> {
  const select = `SELECT CAST(json_array(${query.wire.join(', ')}) AS VARCHAR) FROM (${query.sql})`
  const statement = withScans(query, select, sourceOf)
  try {
    const reader = await connection.runAndReadAll(statement)
    return reader.getRows().map(([row]) => JSON.parse(row as string) as unknown[])
  } catch (error) {
    throw translateError(error instanceof Error ? error.message : String(error))
  }
}
