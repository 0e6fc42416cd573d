import { createHash } from 'node:crypto'
import type { ConnectorSplit } from '../spi/connector.ts'
import { columnType } from '../spi/column-type.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import { FILE_INDEX, joinRowGroups } from '../spi/parquet-scan.ts'
import type { ScanPredicate } from '../spi/scan-predicate.ts'
import type { FileFacts, FileFactsCache } from './file-facts.ts'
import type { LakeFile, ListedFiles } from './lake-files.ts'
import type { FileFormat } from './file-format.ts'
import type { EmptySplit, FoundSplit } from './lake-split.ts'
import type { Adopted } from './manifest.ts'
import { partitioningOf, type Partitioning, type PartitionKey } from './partition-keys.ts'
import { filesThatMayHold } from './partition-pruning.ts'
import { settingsWithout } from './table-settings.ts'
import { isCertain, isRecord, namesOf, type TextFacts } from './text-facts.ts'

/** Large Parquet files are split at row groups into parts of about this size, compressed bytes. */
export const SPLIT_BYTES = 16 * 1024 * 1024

/** Data files of a folder as they were found at one moment. */
export interface FoundFiles {
  readonly format: FileFormat
  readonly files: readonly LakeFile[]
  readonly facts: readonly FileFacts[]
  /** The columns of the files, without partition keys. */
  readonly columns: readonly {
    readonly name: string
    readonly source: string
    readonly duckdbType: string
    /** Trino's type text. */
    readonly type: string
  }[]
  readonly partitioning: Partitioning
  readonly shapesDiffer: boolean
  /** Names of columns whose types the administrator has fixed. */
  readonly declared: ReadonlySet<string>
}

/** The facts of files that were just listed. */
export async function factsOf(listed: ListedFiles, cache: FileFactsCache): Promise<FoundFiles> {
  const { table, format, files } = listed
  const partitioning = partitioningOf(files, listed.settings?.types ?? new Map(), table)
  const settings = listed.settings && settingsWithout(listed.settings, namesOfKeys(partitioning.keys))
  const facts = await cache.facts(format, files, settings)
  const shapesDiffer = facts.some(({ shape }) => shape !== facts[0]!.shape)
  const columns = await cache.columns(format, files, facts, settings)
  return { format, files, facts, columns, partitioning, shapesDiffer, declared: new Set(settings?.types.keys()) }
}

/** The table's columns: those of its files, then its partition keys. A key hides a file's column with the same name. */
export function tableColumns({ columns, partitioning: { keys } }: Pick<FoundFiles, 'columns' | 'partitioning'>) {
  const names = namesOfKeys(keys)
  return [...columns.filter(({ name }) => !names.has(name)), ...keys].map(({ name, type }) => ({ name, type }))
}

/** The id of a folder's state: it differs as soon as a file is added, removed or changed. */
export function snapshotId({ files, facts }: FoundFiles): string {
  const id = createHash('sha256')
  for (const [index, { file, size, mtime }] of files.entries()) {
    id.update(`${size} ${mtime} ${facts[index]!.footer} ${file}\n`)
  }
  return id.digest('hex')
}

/** @param read names of the columns that will be read; undefined: all */
export function columnsRead<C extends { readonly name: string }>(
  columns: readonly C[],
  read: readonly string[] | undefined,
): readonly C[] {
  const wanted = read && new Set(read)
  return wanted ? columns.filter(({ name }) => wanted.has(name)) : columns
}

/** The files that were found, or the files that a manifest adopted. */
type ReadFiles = Omit<FoundFiles, 'columns'> & { readonly columns: readonly Adopted['columns'][number][] }

/** The part of a table that is read. */
export interface ReadPart {
  /**
   * Names of the columns that will be read; undefined: all. A split of a wide table may leave out the other columns.
   */
  readonly columns?: readonly string[] | undefined
  /** A condition on rows: files of partitions that cannot have such rows have no splits. */
  readonly partitions?: ScanPredicate | undefined
}

/** @param held gives DuckDB's type for values of a type of Trino */
export function foundSplits(
  catalog: string,
  found: ReadFiles,
  read: ReadPart,
  held: (type: string) => string,
): ConnectorSplit[] {
  const isWanted = filesThatMayHold(found.partitioning, read.partitions)
  const splitsOf = found.format === 'parquet' ? parquetSplits(found, read) : textSplits(found, read)
  const splits = found.files.flatMap((file, index): ConnectorSplit[] => {
    if (!isWanted(index)) return []
    const partition = partitionOf(found.partitioning, index, read)
    const { size, mtime } = file
    return splitsOf({ file: file.file, size, mtime }, index).map(({ data, ...known }) => ({
      catalog,
      ...known,
      data: { ...data, ...(partition.length > 0 && { partition }) } satisfies FoundSplit,
    }))
  })
  if (splits.length > 0) return splits
  // All files are empty, or none is wanted.
  const { columns, partitioning: { keys } } = found // prettier-ignore
  const hidden = namesOfKeys(keys)
  const own = [...columns.filter(({ name }) => !hidden.has(name)), ...keys]
  const typed = columnsRead(own, read.columns).map(({ name, duckdbType }) => {
    return { name, duckdbType: held(columnType(parseDuckDbType(duckdbType)).type) }
  })
  return [{ catalog, data: { empty: true, columns: typed } satisfies EmptySplit, rows: 0, bytes: 0 }]
}

/** The partition values of a file's rows, for the columns that are read. */
function partitionOf(
  { keys, values }: Partitioning,
  file: number,
  read: ReadPart,
): NonNullable<FoundSplit['partition']> {
  const own = keys.map(({ name, duckdbType }, index) => ({ name, duckdbType, value: values[file]![index]! }))
  return [...columnsRead(own, read.columns)]
}

type SplitsOf = (
  file: Omit<LakeFile, 'partitions'>,
  index: number,
) => (Omit<ConnectorSplit, 'catalog' | 'data'> & { readonly data: FoundSplit })[]

function parquetSplits({ format, facts, columns, partitioning, shapesDiffer }: ReadFiles, read: ReadPart): SplitsOf {
  const hidden = namesOfKeys(partitioning.keys)
  const shown = columnsRead(columns, read.columns).filter(({ name }) => !hidden.has(name))
  // DuckDB numbers the files in a column of this name: if a file has such a column, the files are read one by one.
  const apart = shapesDiffer || (hidden.size > 0 && columns.some(({ name }) => name === FILE_INDEX))
  return (file, index) => {
    const { footer, names, rowGroups, misread, finer, checkedByRow } = facts[index]!
    const own = shown.map(({ name, source, duckdbType }) => {
      // When all shapes are equal, each file has all columns. DuckDB renames a column without a name or with a name
      // twice, so such a column is missing from `names`.
      const present = !shapesDiffer || names.has(name)
      const reason = misread.get(name)
      return {
        name,
        source,
        duckdbType,
        present,
        ...(reason !== undefined && { misread: reason }),
        ...(finer.has(name) && { finer: true }),
        ...(checkedByRow.has(name) && { byRow: true }),
      }
    })
    const data = { ...file, format, footer, unionByName: apart, columns: own }
    const none = { firstRow: 0, rows: 0, fileRows: 0 }
    // A table has at least one split: an empty split carries the column types.
    if (rowGroups.length === 0) return [{ data: { ...data, ...none }, rows: 0, bytes: 0 }]
    const fileRows = rowGroups.reduce((sum, { rows }) => sum + rows, 0)
    return joinRowGroups(rowGroups, SPLIT_BYTES).map(({ firstRow, rows, bytes, columnBytes }) => ({
      data: { ...data, firstRow, rows, fileRows },
      rows,
      bytes,
      columnBytes,
    }))
  }
}

/** One split for each file that has columns. */
function textSplits({ format, facts, columns, declared }: ReadFiles, read: ReadPart): SplitsOf {
  return (file, index) => {
    const { footer, text } = facts[index]!
    if (!text || namesOf(text).length === 0) return []
    const checked = !isCertain(text, columns)
    // The check of every value needs the types of all columns.
    const shown = checked ? columns : columnsRead(columns, read.columns)
    const data: FoundSplit = {
      ...file,
      format,
      footer,
      firstRow: 0,
      rows: 0,
      fileRows: 0,
      unionByName: false,
      columns: shown.map((column) => textSplitColumn(text, column, declared.has(column.name))),
      text: textOf(text, checked),
    }
    return [{ data, bytes: file.size }]
  }
}

function namesOfKeys(keys: readonly PartitionKey[]): ReadonlySet<string> {
  return new Set(keys.map(({ name }) => name))
}

function textSplitColumn(
  text: TextFacts,
  { name, source, duckdbType }: Adopted['columns'][number],
  declared: boolean,
): FoundSplit['columns'][number] {
  if (text.kind === 'csv') {
    const field = text.shape.columns.findIndex((column) => column.name.toLowerCase() === name)
    const blanks = text.shape.columns[field]?.blanks ?? false
    return { name, source: `c${field}`, duckdbType, present: field !== -1, declared, blanks }
  }
  // A column that is missing in the beginning of a large file may come later in it.
  const { complete } = text.file
  const own = namesOf(text).find((one) => one.toLowerCase() === name)
  return { name, source: own ?? source, duckdbType, present: !complete || own !== undefined, declared }
}

function textOf(text: TextFacts, checked: boolean): FoundSplit['text'] {
  if (text.kind === 'csv')
    return { kind: 'csv', dialect: text.shape.dialect, fields: text.shape.columns.length, checked }
  const { layout, record } = text.file
  return { kind: 'json', layout, isRecord: record !== undefined && isRecord(record), checked }
}
