/** The statements that DuckDB gets: made here, in the engine's process, from texts that passed the wall. */
import { quoteName } from '../../connectors/spi/duckdb-text.ts'
import type { TableSource } from '../../connectors/spi/table-source.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { EngineQuery, EngineRow } from './engine-query.ts'
import { scanText } from './scan-text.ts'
import { tokensOf } from './statement-tokens.ts'
import {
  checkExpression,
  checkStatement,
  checkType,
  type EngineVocabulary,
  type ReadText,
  type ScanPosition,
} from './statement-wall.ts'

/**
 * One statement: the SELECT with its scans inserted where it reads them, and for each of its rows the wanted form. A
 * scan as a common table would be read once for each row of an outer query: DuckDB treats references to it there as
 * correlated.
 * @param positions where the SELECT reads its scans, from `checkQuery`
 * @throws RefusedStatement when the data of a scan is not valid
 */
export function statementText({ sql, scans, row }: EngineQuery, positions: readonly ScanPosition[]): string {
  let text = ''
  let at = 0
  for (const { scan, from, to } of positions) {
    text += `${sql.slice(at, from)}(${readScan(scans[scan]!)})`
    at = to
  }
  return rowText(text + sql.slice(at), row)
}

/**
 * The text of a scan, made from data alone. Like texts from outside it is split into tokens, so it cannot end the
 * statement.
 */
function readScan(scan: TableSource): string {
  const text = scanText(scan)
  tokensOf(text)
  return text
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

/** @throws RefusedStatement when a text of the query does not have the form of rendered statements */
export function checkQuery({ sql, scans, row }: EngineQuery, vocabulary: EngineVocabulary): ReadText {
  const read = checkStatement(sql, scans.length, vocabulary)
  switch (row.kind) {
    case 'json': {
      const values = row.values.map((value) => checkExpression(value, vocabulary))
      const all = [read, ...values]
      return {
        scripted: all.some(({ scripted }) => scripted),
        macros: new Set(all.flatMap(({ macros }) => [...macros])),
        scans: read.scans,
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
