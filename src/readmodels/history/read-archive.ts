import { join } from 'node:path'
import type { ScanQuestion } from '../../connectors/spi/scan-question.ts'
import { archivedTables, typeInFile, type ArchivedName } from '../archive/archived-tables.ts'
import type { ParquetEngine, ParquetParameter } from '../archive/parquet-engine.ts'
import { fileOf, type QueriesPeriod } from '../archive/query-periods.ts'
import { historyValue, type HistoryValue } from './read-history.ts'
import type { AnswerType, ArchivedStatement } from './statement.ts'
import type { HistoryViewName } from './tables.ts'

/** The archive's files and the limits for reading them. */
export interface ArchivedFiles {
  readonly engine: ParquetEngine
  /** Folder of this log's archive. */
  readonly folder: string
  /** Time limit of one read. */
  readonly limitMs: number
}

/** Columns of `queries` whose range in a period is known. */
const PERIOD_TIMES: ReadonlySet<string> = new Set(['created', 'ended', 'end'])

/**
 * The periods that can have rows for a question. A period's times are those of its queries; tasks have others, so only
 * the table `queries` is selected by time.
 */
export function periodsFor(
  periods: readonly QueriesPeriod[],
  table: HistoryViewName,
  { terms }: Pick<ScanQuestion, 'terms'>,
): QueriesPeriod[] {
  return periods.filter((period) =>
    terms.every((term) => {
      if ('in' in term && (term.column === 'query_id' || term.column === 'stream'))
        return term.in.some((id) => period.first_id <= id && id <= period.last_id)
      if (table === 'queries' && 'compare' in term && PERIOD_TIMES.has(term.column)) {
        const [from, to] =
          term.column === 'created' ? [period.created_from, period.created_to] : [period.ended_from, period.ended_to]
        if (term.compare === '>' || term.compare === '>=') return to >= term.value
        if (term.compare === '<' || term.compare === '<=') return from <= term.value
      }
      return true
    }),
  )
}

/**
 * Runs a statement over tables in some periods' files, without forgotten rows.
 * @param values its parameters `$1` …
 */
export function readFiles(
  { engine, folder, limitMs }: ArchivedFiles,
  { text, values, reads }: Pick<ArchivedStatement, 'text' | 'values' | 'reads'>,
  periods: readonly QueriesPeriod[],
  forgotten: readonly string[],
): AsyncGenerator<readonly (readonly unknown[])[]> {
  const all: ParquetParameter[] = [...values]
  const bind = (value: ParquetParameter): string => `$${all.push(value)}`
  const tables = [...reads].map((name) => {
    const files = bind(periods.map((period) => join(folder, period.folder, fileOf(name))))
    return `${name} as not materialized (${tableText(name, files, forgotten, bind)})`
  })
  return engine.rows(`with ${tables.join(', ')} ${text}`, all, limitMs)
}

function tableText(
  name: ArchivedName,
  files: string,
  forgotten: readonly string[],
  bind: (value: ParquetParameter) => string,
): string {
  // Files of an earlier version lack later columns.
  const table = archivedTables.find((one) => one.name === name)!
  const later = Object.keys(table.columns).map((column) => `null::${typeInFile(table, column)} as "${column}"`)
  const rows = `from (from read_parquet(${files}, union_by_name = true)
    union all by name select ${later.join(', ')} where false)`
  if (forgotten.length === 0) return `select * ${rows}`
  const gone = bind(forgotten)
  return name === 'query_events'
    ? `select * replace (case when list_contains(${gone}, stream) then '' else data end as data,
         forgotten or list_contains(${gone}, stream) as forgotten) ${rows}`
    : `select * ${rows} where not list_contains(${gone}, query_id)`
}

/** Converts a value from DuckDB, which returns times and lists as texts. */
export function archivedValue(value: unknown, type: AnswerType): HistoryValue {
  if (value === null || value === undefined) return null
  if (type === 'timestamptz') return String(value)
  return historyValue(type === 'jsonb' ? JSON.parse(String(value)) : value, type)
}
