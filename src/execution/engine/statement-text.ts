/** The statements that DuckDB is given: put together here, in the engine's process, of texts that have passed the wall. */
import { quoteName } from '../../connectors/spi/duckdb-text.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { EngineQuery, EngineRow } from './engine-query.ts'
import { scanText } from './scan-text.ts'
import { checkExpression, checkStatement, checkType, type EngineVocabulary, type ReadText } from './statement-wall.ts'

/**
 * Each scan as a common table, the SELECT over them, and of each of its rows what is wanted.
 * @throws RefusedStatement when the data of a scan is not what it should be. The texts are taken as they are: `checkQuery`
 */
export function statementText({ sql, scans, row }: EngineQuery): string {
  // Not materialised: filters and column choice of the SELECT must reach the scan.
  const tables = scans.map((scan, index) => `"$s${index}" AS NOT MATERIALIZED (${scanText(scan)})`)
  return `${tables.length > 0 ? `WITH ${tables.join(', ')} ` : ''}${rowText(sql, row)}`
}

function rowText(sql: string, row: EngineRow): string {
  switch (row.kind) {
    case 'json':
      return `SELECT CAST(json_array(${row.values.join(', ')}) AS VARCHAR) FROM (${sql}) AS q(${columnNames(row.values)})`
    case 'typed': {
      const columns = row.columns.map(({ name, type }, i) => `CAST(c${i} AS ${type}) AS ${quoteName(name)}`)
      return `SELECT ${columns.join(', ')} FROM (${sql}) AS q(${columnNames(row.columns)})`
    }
    case 'text':
      return `SELECT * FROM (${sql}) AS q`
    default:
      return unreachable(row)
  }
}

function columnNames(columns: readonly unknown[]): string {
  return columns.map((_, i) => `c${i}`).join(', ')
}

/** @throws RefusedStatement when a text of the query is not of the form that rendered statements have */
export function checkQuery({ sql, scans, row }: EngineQuery, vocabulary: EngineVocabulary): ReadText {
  const read = checkStatement(sql, scans.length, vocabulary)
  switch (row.kind) {
    case 'json': {
      const values = row.values.map((value) => checkExpression(value, vocabulary))
      const all = [read, ...values]
      return {
        scripted: all.some(({ scripted }) => scripted),
        macros: new Set(all.flatMap(({ macros }) => [...macros])),
      }
    }
    case 'typed':
      for (const { type } of row.columns) checkType(type)
      return read
    case 'text':
      return read
    default:
      return unreachable(row)
  }
}
