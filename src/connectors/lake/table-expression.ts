import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { quoteName, quoteText } from '../spi/duckdb-text.ts'
import { parquetSources } from '../spi/parquet-scan.ts'
import { columnType } from './column-type.ts'
import { parseDuckDbType } from './duckdb-type-text.ts'
import type { EmptySplit, FoundSplit, LakeSplit, WrittenSplit } from './lake-split.ts'

/** One SELECT over the splits' files: Parquet by row ranges, CSV and JSON file by file with the table's types. */
export function lakeTableExpression(
  location: string,
  splits: readonly LakeSplit[],
  columns: readonly string[],
): string {
  const written = splits.filter((split) => 'written' in split)
  const found = splits.filter((split) => 'format' in split)
  const parts = [
    ...(written.length > 0 ? [writtenFiles(location, written, columns)] : []),
    ...(found.length > 0 ? [foundFiles(location, found, columns)] : []),
  ]
  if (parts.length > 0) return parts.join(' UNION ALL ')
  const empty = splits.find((split) => 'empty' in split)
  if (!empty) throw new EngineError('GENERIC_INTERNAL_ERROR', 'A table expression needs at least one split')
  return noRows(empty, columns)
}

function writtenFiles(location: string, splits: readonly WrittenSplit[], columns: readonly string[]): string {
  const ranges = splits.map((split) => ({ ...split, path: join(location, split.file) }))
  return unionAll(parquetSources(ranges), columns.length > 0 ? columns.map(quoteName).join(', ') : '1 AS one')
}

function noRows({ columns: own }: EmptySplit, columns: readonly string[]): string {
  const list = columns.map((name) => {
    const column = own.find((candidate) => candidate.name === name)
    if (!column) throw new EngineError('COLUMN_NOT_FOUND', `Column '${name}' does not exist`)
    return `CAST(NULL AS ${column.duckdbType}) AS ${quoteName(name)}`
  })
  return `SELECT ${list.join(', ') || '1 AS one'} WHERE false`
}

function foundFiles(location: string, splits: readonly FoundSplit[], columns: readonly string[]): string {
  const first = splits[0]!
  if (first.format === 'parquet' && !first.unionByName) {
    const ranges = splits.map((split) => ({ ...split, path: join(location, split.file) }))
    return unionAll(parquetSources(ranges), selectList(first, columns))
  }
  // Files that differ in their columns, and text files, are read one by one, each with what it has.
  const byFile = new Map<string, FoundSplit[]>()
  for (const split of splits) byFile.set(split.file, [...(byFile.get(split.file) ?? []), split])
  return [...byFile.values()]
    .map((parts) => {
      const path = join(location, parts[0]!.file)
      const sources =
        first.format === 'parquet'
          ? parquetSources(parts.map((part) => ({ ...part, path })))
          : [textSource(path, parts[0]!)]
      return unionAll(sources, selectList(parts[0]!, columns))
    })
    .join(' UNION ALL ')
}

function unionAll(sources: readonly string[], list: string): string {
  return sources.map((source) => `SELECT ${list} FROM ${source}`).join(' UNION ALL ')
}

function selectList(split: FoundSplit, names: readonly string[]): string {
  if (names.length === 0) return '1 AS one'
  return names
    .map((name) => {
      const column = split.columns.find((candidate) => candidate.name === name)
      if (!column) throw new EngineError('COLUMN_NOT_FOUND', `Column '${name}' does not exist`)
      const source = !column.present
        ? `CAST(NULL AS ${column.duckdbType})`
        : split.unionByName
          ? `CAST(${quoteName(column.source)} AS ${column.duckdbType})`
          : quoteName(column.source)
      const { convert } = columnType(parseDuckDbType(column.duckdbType)) ?? {}
      return `${convert ? convert(source) : source} AS ${quoteName(name)}`
    })
    .join(', ')
}

function textSource(file: string, split: FoundSplit): string {
  const path = quoteText(file)
  const types = split.columns
    .filter(({ present }) => present)
    .map(({ source, duckdbType }) => `${quoteText(source)}: ${quoteText(duckdbType)}`)
    .join(', ')
  return split.format === 'csv' ? `read_csv(${path}, types={${types}})` : `read_json(${path}, columns={${types}})`
}
