import { createHash } from 'node:crypto'
import type { ConnectorSplit } from '../spi/connector.ts'
import { columnType } from '../spi/column-type.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import { FILE_INDEX, joinRowGroups } from '../spi/parquet-scan.ts'
import type { ScanPredicate } from '../spi/scan-predicate.ts'
import type { FileFacts, FileFactsCache } from './file-facts.ts'
import type { FileFormat, LakeFile, ListedFiles } from './lake-files.ts'
import type { EmptySplit, FoundSplit } from './lake-split.ts'
import type { Adopted } from './manifest.ts'
import { partitioningOf, type Partitioning, type PartitionKey } from './partition-keys.ts'
import { filesThatMayHold } from './partition-pruning.ts'
import { settingsWithout } from './table-settings.ts'
import { isCertain, isRecord, namesOf, type TextFacts } from './text-facts.ts'

/** Splits of large Parquet files are cut at row groups into about so many compressed bytes. */
export const SPLIT_BYTES = 16 * 1024 * 1024

/** Data files of a folder as they were found at one moment. */
export interface FoundFiles {
  readonly format: FileFormat
  readonly files: readonly LakeFile[]
  readonly facts: readonly FileFacts[]
  /** Of the files. */
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

/** What is known of files that were listed just now. */
export async function factsOf(listed: ListedFiles, cache: FileFactsCache): Promise<FoundFiles> {
  const { table, format, files } = listed
  const partitioning = partitioningOf(files, listed.settings?.types ?? new Map(), table)
  const settings = listed.settings && settingsWithout(listed.settings, namesOfKeys(partitioning.keys))
  const facts = await cache.facts(format, files, settings)
  const shapesDiffer = facts.some(({ shape }) => shape !== facts[0]!.shape)
  const columns = await cache.columns(format, files, facts, settings)
  return { format, files, facts, columns, partitioning, shapesDiffer, declared: new Set(settings?.types.keys()) }
}

/** The table's columns: those of its files, and behind them its partition keys, which hide columns of their names. */
export function tableColumns({ columns, partitioning: { keys } }: Pick<FoundFiles, 'columns' | 'partitioning'>) {
  const names = namesOfKeys(keys)
  return [...columns.filter(({ name }) => !names.has(name)), ...keys].map(({ name, type }) => ({ name, type }))
}

/** Names a folder's state: another one as soon as a file comes, goes or changes. */
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

/** Of files that were found, or of those that a manifest took over. */
type ReadFiles = Omit<FoundFiles, 'columns'> & { readonly columns: readonly Adopted['columns'][number][] }

/** What of a table is read. */
export interface ReadPart {
  /** Names of the columns that will be read; undefined: all. A split of a wide table need not tell of the others. */
  readonly columns?: readonly string[] | undefined
  /** What rows have to fulfil: files of partitions that cannot have such rows have no splits. */
  readonly partitions?: ScanPredicate | undefined
}

/** @param held DuckDB's type that holds values of Trino's */
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
  // Files that hold nothing at all, or none that is wanted.
  const { columns, partitioning: { keys } } = found // prettier-ignore
  const hidden = namesOfKeys(keys)
  const own = [...columns.filter(({ name }) => !hidden.has(name)), ...keys]
  const typed = columnsRead(own, read.columns).map(({ name, duckdbType }) => {
    return { name, duckdbType: held(columnType(parseDuckDbType(duckdbType)).type) }
  })
  return [{ catalog, data: { empty: true, columns: typed } satisfies EmptySplit, rows: 0, bytes: 0 }]
}

/** The values that all rows of a file have in columns that are read. */
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
  // DuckDB numbers the files of partitions in a column of this name: where a file has its own they are read one by one.
  const apart = shapesDiffer || (hidden.size > 0 && columns.some(({ name }) => name === FILE_INDEX))
  return (file, index) => {
    const { footer, names, rowGroups, misread, finer, checkedByRow } = facts[index]!
    const own = shown.map(({ name, source, duckdbType }) => {
      // Where all files have the same columns each has those: one without a name, or with another's, DuckDB calls otherwise.
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
    // A table has at least one split: an empty one says of which types the no rows are.
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

/** One for each file that holds anything. */
function textSplits({ format, facts, columns, declared }: ReadFiles, read: ReadPart): SplitsOf {
  return (file, index) => {
    const { footer, text } = facts[index]!
    if (!text || namesOf(text).length === 0) return []
    const checked = !isCertain(text, columns)
    // Who looks at every value has to know all types.
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
  // What a large file has not in its beginning may come later.
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
