import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { columnType } from '../spi/column-type.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import type { TableSourceOptions } from '../spi/connector.ts'
import type { ParquetRange } from '../spi/parquet-scan.ts'
import type { FileColumn, TablePart, TableSource } from '../spi/table-source.ts'
import { tableOfFolder } from './folder-names.ts'
import { tableFolderOf } from './partition-folders.ts'
import { changed } from './manifest-table.ts'
import type { EmptySplit, FoundSplit, LakeSplit, WrittenSplit } from './lake-split.ts'

/** The source for the splits' files: Parquet by row ranges, CSV and JSON file by file with the table's types. */
export function lakeTableSource(
  location: string,
  splits: readonly LakeSplit[],
  columns: readonly string[],
  { rowIds = false }: TableSourceOptions = {},
): TableSource {
  const written = splits.filter((split) => 'written' in split)
  const found = splits.filter((split) => 'format' in split)
  if (rowIds && found.length > 0) {
    throw new EngineError('NOT_SUPPORTED', 'Rows of files that Quipu did not write cannot be changed')
  }
  const [first, ...others] = [
    ...writtenFiles(location, written, columns, rowIds),
    ...(found.length > 0 ? foundFiles(location, found, columns) : []),
  ]
  if (first) return [first, ...others]
  const empty = splits.find((split) => 'empty' in split)
  if (!empty) throw new EngineError('GENERIC_INTERNAL_ERROR', 'A scan needs at least one split')
  const ids = rowIds ? rowIdColumns : []
  return [{ kind: 'empty', columns: [...noRows(empty, columns), ...ids] }]
}

const rowIdColumns = [
  { name: '$file', type: 'INTEGER' },
  { name: '$row', type: 'BIGINT' },
]

/** One part for all files that have the columns under the same names and with the same types. */
function writtenFiles(
  location: string,
  splits: readonly WrittenSplit[],
  columns: readonly string[],
  rowIds: boolean,
): TablePart[] {
  const groups = new Map<string, WrittenSplit[]>()
  for (const split of splits) {
    const key = split.columns ? JSON.stringify(split.columns) : ''
    const known = groups.get(key)
    if (known) known.push(split)
    else groups.set(key, [split])
  }
  return [...groups.values()].map((group) => {
    const byRow = new Set(group.flatMap((split) => split.byRow ?? []))
    const other = new Map(group[0]!.columns?.map((column) => [column.name, fileColumn(column)]))
    return {
      kind: 'parquet',
      ranges: group.map((split) => writtenRange(location, split)),
      columns: columns.map((name) => ({
        ...(other.get(name) ?? { name, source: name }),
        ...(byRow.has(name) && { checkedByRow: true }),
      })),
      ...(rowIds && { rowIds }),
    }
  })
}

function fileColumn({ name, source, cast }: NonNullable<WrittenSplit['columns']>[number]): FileColumn {
  return { name, ...(source !== undefined && { source }), ...(cast !== undefined && { cast }) }
}

function writtenRange(location: string, split: WrittenSplit): ParquetRange {
  const { file, firstRow, rows, fileRows, index, live, removedBy } = split
  return {
    path: join(location, file),
    firstRow,
    rows,
    fileRows,
    ...(index !== undefined && { index }),
    ...(live && { liveOnly: live }),
    ...(removedBy && { removedBy: removedBy.map((by) => ({ path: join(location, by.file), index: by.index })) }),
  }
}

function noRows({ columns: own }: EmptySplit, columns: readonly string[]) {
  return columns.map((name) => ({ name, type: named(own, name).duckdbType }))
}

function foundFiles(location: string, splits: readonly FoundSplit[], columns: readonly string[]): TablePart[] {
  const first = splits[0]!
  if (first.format === 'parquet' && !first.unionByName) {
    return [{ kind: 'parquet', ranges: rangesOf(location, splits), columns: fileColumns(splits, columns) }]
  }
  // Files with different columns, and text files, are read one by one, each with its own columns.
  const parts = new Map<string, FoundSplit[]>()
  for (const split of splits) {
    // Links can put a file into several folders of partitions.
    const key = JSON.stringify([split.file, split.partition])
    const known = parts.get(key)
    if (known) known.push(split)
    else parts.set(key, [split])
  }
  return [...parts.values()].map((some) => {
    const [part] = some as [FoundSplit]
    const own = fileColumns(some, columns)
    if (part.format === 'parquet') return { kind: 'parquet', ranges: rangesOf(location, some), columns: own }
    return textFile(join(location, part.file), part, own)
  })
}

function textFile(path: string, { size, text, columns: all }: FoundSplit, columns: readonly FileColumn[]): TablePart {
  // A Quipu version without such splits listed it.
  if (!text) throw changed()
  const read = new Set(columns.map(({ source }) => source))
  const types = all.filter(({ present, source }) => present && read.has(source))
  if (text.kind === 'csv') {
    const { dialect, fields } = text
    const typed = types.filter(({ duckdbType }) => duckdbType !== 'VARCHAR')
    return {
      kind: 'csv',
      path,
      bytes: size,
      dialect,
      fields,
      types: typed.map(({ source, duckdbType, blanks }) => ({
        field: Number(source.slice(1)),
        type: duckdbType,
        blanks: blanks ?? false,
      })),
      columns,
    }
  }
  return {
    kind: 'json',
    path,
    layout: text.layout,
    isRecord: text.isRecord,
    types: types.map(({ source, duckdbType }) => ({ source, type: duckdbType })),
    columns,
  }
}

function rangesOf(location: string, splits: readonly FoundSplit[]) {
  return splits.map(({ file, firstRow, rows, fileRows }) => ({ path: join(location, file), firstRow, rows, fileRows }))
}

/**
 * The columns to read from files.
 * @param splits of files that have the same columns
 * @throws EngineError NOT_SUPPORTED for a column whose values cannot be read without change
 */
function fileColumns(splits: readonly FoundSplit[], names: readonly string[]): FileColumn[] {
  const [split] = splits as readonly [FoundSplit]
  const constants = new Map(split.partition?.map(({ name, duckdbType }, index) => [name, { index, duckdbType }]))
  const wanted = new Set(names.filter((name) => !constants.has(name)))
  const byRowNames = new Set<string>()
  for (const each of splits) {
    for (const { name, misread, byRow } of each.columns) {
      if (misread !== undefined && wanted.has(name)) throw unreadable(name, each, misread)
      if (byRow) byRowNames.add(name)
    }
  }
  const byName = new Map(split.columns.map((column) => [column.name, column]))
  return names.map((name) => {
    const constant = constants.get(name)
    if (constant) return constantColumn(name, constant.duckdbType, splits.map(({ partition }) => partition![constant.index]!.value)) // prettier-ignore
    const column = byName.get(name)
    if (!column) throw noColumn(name)
    const { present, source, duckdbType } = column
    const { unreadable: reason } = columnType(parseDuckDbType(duckdbType))
    if (reason !== undefined) throw unreadable(name, split, reason)
    // DuckDB looks up the printed text of a BLOB in a bloom filter.
    const byRow = split.format === 'parquet' && (duckdbType === 'BLOB' || byRowNames.has(name))
    return {
      name,
      fileType: duckdbType,
      ...(present && { source }),
      ...(byRow && { checkedByRow: true }),
      ...((!present || split.unionByName) && { cast: duckdbType }),
    }
  })
}

/** @param values the value in each split */
function constantColumn(name: string, duckdbType: string, values: readonly (string | null)[]): FileColumn {
  const [first = null] = values
  const typed = { name, fileType: duckdbType, cast: duckdbType }
  if (values.some((value) => value !== first)) return { ...typed, constants: values }
  return first === null ? typed : { ...typed, constant: first }
}

function unreadable(column: string, { file }: FoundSplit, reason: string): EngineError {
  const table = tableOfFolder(tableFolderOf(file))
  return new EngineError('NOT_SUPPORTED', `Column '${column}' of table '${table}' cannot be read: ${reason} [${file}]`)
}

function named<C extends { readonly name: string }>(columns: readonly C[], name: string): C {
  const column = columns.find((candidate) => candidate.name === name)
  if (!column) throw noColumn(name)
  return column
}

function noColumn(name: string): EngineError {
  return new EngineError('COLUMN_NOT_FOUND', `Column '${name}' does not exist`)
}
