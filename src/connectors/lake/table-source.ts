import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { bloomFilterMisleads } from '../spi/parquet-scan.ts'
import type { FileColumn, TablePart, TableSource } from '../spi/table-source.ts'
import { changed } from './manifest-table.ts'
import type { EmptySplit, FoundSplit, LakeSplit, WrittenSplit } from './lake-split.ts'

/** What reads the splits' files: Parquet by row ranges, CSV and JSON file by file with the table's types. */
export function lakeTableSource(
  location: string,
  splits: readonly LakeSplit[],
  columns: readonly string[],
): TableSource {
  const written = splits.filter((split) => 'written' in split)
  const found = splits.filter((split) => 'format' in split)
  const [first, ...others] = [
    ...(written.length > 0 ? [writtenFiles(location, written, columns)] : []),
    ...(found.length > 0 ? foundFiles(location, found, columns) : []),
  ]
  if (first) return [first, ...others]
  const empty = splits.find((split) => 'empty' in split)
  if (!empty) throw new EngineError('GENERIC_INTERNAL_ERROR', 'A scan needs at least one split')
  return [noRows(empty, columns)]
}

function writtenFiles(location: string, splits: readonly WrittenSplit[], columns: readonly string[]): TablePart {
  const byRow = new Set(splits.flatMap((split) => split.byRow ?? []))
  return {
    kind: 'parquet',
    ranges: rangesOf(location, splits),
    columns: columns.map((name) => ({ name, source: name, ...(byRow.has(name) && { checkedByRow: true }) })),
  }
}

function noRows({ columns: own }: EmptySplit, columns: readonly string[]): TablePart {
  return { kind: 'empty', columns: columns.map((name) => ({ name, type: named(own, name).duckdbType })) }
}

function foundFiles(location: string, splits: readonly FoundSplit[], columns: readonly string[]): TablePart[] {
  const first = splits[0]!
  if (first.format === 'parquet' && !first.unionByName) {
    return [{ kind: 'parquet', ranges: rangesOf(location, splits), columns: fileColumns(first, columns) }]
  }
  // Files that differ in their columns, and text files, are read one by one, each with what it has.
  const byFile = new Map<string, FoundSplit[]>()
  for (const split of splits) byFile.set(split.file, [...(byFile.get(split.file) ?? []), split])
  return [...byFile.values()].map((parts) => {
    const [part] = parts as [FoundSplit]
    const own = fileColumns(part, columns)
    if (part.format === 'parquet') return { kind: 'parquet', ranges: rangesOf(location, parts), columns: own }
    return textFile(join(location, part.file), part, own)
  })
}

function textFile(path: string, { size, text, columns: all }: FoundSplit, columns: readonly FileColumn[]): TablePart {
  // Listed by a Quipu that had no such splits.
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

function rangesOf(location: string, splits: readonly (WrittenSplit | FoundSplit)[]) {
  return splits.map(({ file, firstRow, rows, fileRows }) => ({ path: join(location, file), firstRow, rows, fileRows }))
}

function fileColumns(split: FoundSplit, names: readonly string[]): FileColumn[] {
  return names.map((name) => {
    const { present, source, duckdbType } = named(split.columns, name)
    return {
      name,
      fileType: duckdbType,
      ...(present && { source }),
      ...(split.format === 'parquet' && bloomFilterMisleads(duckdbType) && { checkedByRow: true as const }),
      ...((!present || split.unionByName) && { cast: duckdbType }),
    }
  })
}

function named<C extends { readonly name: string }>(columns: readonly C[], name: string): C {
  const column = columns.find((candidate) => candidate.name === name)
  if (!column) throw new EngineError('COLUMN_NOT_FOUND', `Column '${name}' does not exist`)
  return column
}
