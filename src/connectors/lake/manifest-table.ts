import { basename, join } from 'node:path'
import { stat } from 'node:fs/promises'
import { EngineError } from '../../shared/engine-error.ts'
import { columnType } from '../spi/column-type.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import type { FiledColumn } from '../spi/parquet-statistics.ts'
import type { ConnectorSplit, TableStatistics } from '../spi/connector.ts'
import { bloomFilterMisleads, joinRowGroups, WITHOUT_BLOOM_FILTERS, type RowGroupRange } from '../spi/parquet-scan.ts'
import type { FileFactsCache } from './file-facts.ts'
import type { EmptySplit, WrittenSplit } from './lake-split.ts'
import { ADOPTED_ID, type Adopted, type TableColumn, type TableContent, type TableFile } from './manifest.ts'
import { countRows, liveRows, removedRows } from './removals.ts'
import { newColumns, newTableParts } from './table-columns.ts'
import type { Partitioning } from './partition-keys.ts'
import { settingsWithout, type TableSettings } from './table-settings.ts'
import { columnsRead, foundSplits, SPLIT_BYTES, tableColumns, type FoundFiles, type ReadPart } from './plain-table.ts'

/** The content of a table's first manifest: the files in its folder, as they were found. */
export function adoptedContent(found: FoundFiles, duckdbType: (type: string) => string): TableContent {
  const { format, files, facts, columns, shapesDiffer, partitioning } = found
  const isPartitioned = partitioning.keys.length > 0
  return {
    kind: 'table',
    id: ADOPTED_ID,
    // The types that Quipu uses: the files themselves may have another type, which is in `adopted`.
    ...newTableParts(
      newColumns(
        tableColumns(found).map(({ name, type }) => ({ name, type, nullable: true })),
        duckdbType,
      ),
    ),
    files: [],
    removals: [],
    changedAt: 1,
    adopted: {
      format,
      shapesDiffer,
      columns: columns.map(({ name, source, duckdbType: stored }) => ({ name, source, duckdbType: stored })),
      files: files.map(({ file, size, mtime }, index) => ({
        file,
        size,
        mtime,
        footer: facts[index]!.footer,
        ...(isPartitioned && { values: [...partitioning.values[index]!] }),
      })),
      ...(isPartitioned && {
        keys: partitioning.keys.map(({ name, duckdbType: stored }) => ({ name, duckdbType: stored })),
      }),
    },
  }
}

/** The partitioning of the files that a manifest adopted. */
function partitioningOfAdopted({ keys = [], files }: Adopted): Partitioning {
  return {
    keys: keys.map((key) => ({ ...key, type: columnType(parseDuckDbType(key.duckdbType)).type })),
    values: files.map(({ values = [] }) => values),
  }
}

/** One version of a table, and the location of its files. */
interface TableVersion {
  readonly catalog: string
  /** The settings of the table in the catalog file. */
  readonly settings: TableSettings | undefined
  readonly location: string
  readonly content: TableContent
}

/**
 * All splits of one version of a table.
 * @param held gives DuckDB's type for values of a type of Trino
 * @param onlyFiles the paths of the files that are wanted; absent: all
 */
export async function manifestSplits(
  { catalog, settings, location, content }: TableVersion,
  cache: FileFactsCache,
  read: ReadPart,
  held: (type: string) => string,
  onlyFiles?: ReadonlySet<string>,
): Promise<readonly ConnectorSplit[]> {
  const splits = await writtenSplits(catalog, location, content, cache, read, onlyFiles)
  const { adopted } = content
  if (adopted && adopted.files.length > 0) {
    const names = new Set(adopted.keys?.map(({ name }) => name))
    const facts = await cache.facts(adopted.format, adopted.files, settings && settingsWithout(settings, names))
    splits.push(
      ...foundSplits(
        catalog,
        {
          ...adopted,
          partitioning: partitioningOfAdopted(adopted),
          // The types that were derived at adoption are fixed from then on.
          declared: new Set(adopted.columns.map(({ name }) => name)),
          files: adopted.files.map(({ file, size, mtime }) => ({ file, size, mtime })),
          facts: facts.map((fact, index) => ({ ...fact, footer: adopted.files[index]!.footer })),
        },
        read,
        held,
      ),
    )
  }
  if (splits.length > 0) return splits
  const columns = columnsRead(content.columns, read.columns).map(({ name, duckdbType }) => ({ name, duckdbType }))
  return [{ catalog, data: { empty: true, columns } satisfies EmptySplit, rows: 0, bytes: 0 }]
}

/** The splits of the files that Quipu wrote, in the order of the files. */
async function writtenSplits(
  catalog: string,
  location: string,
  content: TableContent,
  cache: FileFactsCache,
  read: ReadPart,
  onlyFiles: ReadonlySet<string> | undefined,
): Promise<ConnectorSplit[]> {
  const columns = columnsRead(content.columns, read.columns)
  const removed = removedRows(content)
  const table: ReadTable = {
    catalog,
    columns,
    byRow: columns.filter(({ duckdbType }) => bloomFilterMisleads(duckdbType)).map(({ name }) => name),
    removed,
    removedBy: removingFiles(content),
    columnsBySchema: new Map(content.schemas.map((schema) => [schema.id, otherColumns(columns, schema.columns)])),
  }
  const wanted = content.files
    .map((file, index) => ({ file, index }))
    .filter(({ file }) => liveRows(file) > (removed.get(file.path) ?? 0) && (onlyFiles?.has(file.path) ?? true))
  const large = wanted.filter(({ file }) => storedBytes(file) > SPLIT_BYTES).map(({ file }) => file)
  const ranges = await rangesOfLarge(location, large, cache)
  return wanted.flatMap(({ file, index }) => {
    const whole = wholeFile(table, file, index)
    const parts = ranges.get(file.path)
    if (!parts) return [whole]
    return parts.map(({ firstRow, rows, bytes, columnBytes }) => {
      const named = columnBytesByName(table, file, columnBytes)
      return { ...whole, data: { ...whole.data, firstRow, rows }, rows, bytes, columnBytes: named }
    })
  })
}

/** The number of rows of a version with only files that Quipu wrote, and their bytes. */
export function manifestStatistics(content: TableContent): Required<TableStatistics> {
  return {
    rows: countRows(content),
    bytes: content.files.reduce((sum, file) => sum + storedBytes(file), 0),
  }
}

/** All files of one version of a table, absolute. */
export function manifestPaths(location: string, { files, adopted }: TableContent): readonly string[] {
  return [
    ...files.map(({ path }) => join(location, path)),
    ...(adopted?.files ?? []).map(({ file }) => join(location, file)),
  ]
}

/** The table's columns with their names in the files. */
export function storedColumns({ columns, adopted }: TableContent): readonly FiledColumn[] {
  const sources = new Map(adopted?.columns.map(({ name, source }) => [name, source]))
  // The footers of files have no partition keys; a column that a key hides is not read.
  const keys = new Set(adopted?.keys?.map(({ name }) => name))
  return columns
    .filter(({ name }) => !keys.has(name))
    .map(({ name, type, physical }) => ({ name, type, source: sources.get(name) ?? physical }))
}

/** A table whose files are read. */
interface ReadTable {
  readonly catalog: string
  readonly columns: readonly TableColumn[]
  /** Columns for which a bloom filter, if there is one, gives wrong answers. */
  readonly byRow: readonly string[]
  /** The number of rows that are removed, by the path of the file. */
  readonly removed: ReadonlyMap<string, number>
  /** The files that remove rows, by the path of the file that has the rows. */
  readonly removedBy: ReadonlyMap<string, NonNullable<WrittenSplit['removedBy']>>
  /** `WrittenSplit.columns`, by the number of the schema of the file. */
  readonly columnsBySchema: ReadonlyMap<number, NonNullable<WrittenSplit['columns']>>
}

function removingFiles({ files, removals }: TableContent): ReadTable['removedBy'] {
  if (removals.length === 0) return new Map()
  const byPath = new Map(files.map((file) => [file.path, file]))
  return new Map(
    removals.map(({ file, by }) => [
      file,
      by.map(({ file: path, index }) => {
        const { bytes, footer } = byPath.get(path)!
        return { file: path, size: bytes, footer, index }
      }),
    ]),
  )
}

/** The columns that files of a schema do not have under the table's name and with the table's type. */
function otherColumns(
  columns: readonly TableColumn[],
  inFiles: TableContent['schemas'][number]['columns'],
): NonNullable<WrittenSplit['columns']> {
  const byId = new Map(inFiles.map((column) => [column.id, column]))
  return columns.flatMap(({ id, name, duckdbType }): NonNullable<WrittenSplit['columns']> => {
    const own = byId.get(id)
    if (!own) return [{ name, cast: duckdbType }]
    const isOther = own.duckdbType !== duckdbType
    if (own.physical === name && !isOther) return []
    return [{ name, source: own.physical, ...(isOther && { cast: duckdbType }) }]
  })
}

function wholeFile(table: ReadTable, file: TableFile, index: number): ConnectorSplit & { readonly data: WrittenSplit } {
  const { rows, bytes, footer, columnBytes, path, schema, live } = file
  const filters = table.byRow.length > 0 && !basename(path).startsWith(WITHOUT_BLOOM_FILTERS)
  const removedBy = table.removedBy.get(path)
  const columns = table.columnsBySchema.get(schema)
  if (!columns) throw new EngineError('HIVE_BAD_DATA', `The manifest has no schema ${schema}`, { retry: 'later' })
  const isPlain = live === undefined && removedBy === undefined && columns.length === 0
  const data: WrittenSplit = {
    written: isPlain ? true : 2,
    file: path,
    index,
    size: bytes,
    footer,
    firstRow: 0,
    rows,
    fileRows: rows,
    ...(filters && { byRow: [...table.byRow] }),
    ...(live !== undefined && { live: true }),
    ...(removedBy && { removedBy }),
    ...(columns.length > 0 && { columns }),
  }
  return {
    catalog: table.catalog,
    data,
    rows: liveRows(file) - (table.removed.get(path) ?? 0),
    bytes: storedBytes(file),
    ...(columnBytes && { columnBytes: columnBytesByName(table, file, columnBytes) }),
  }
}

/** @param columnBytes by the names in the file */
function columnBytesByName(
  { columnsBySchema }: ReadTable,
  { schema }: TableFile,
  columnBytes: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const other = columnsBySchema.get(schema)!
  if (other.length === 0) return columnBytes
  const named = other.map(({ name, source }) => [name, source === undefined ? 0 : (columnBytes[source] ?? 0)])
  return { ...columnBytes, ...(Object.fromEntries(named) as Record<string, number>) }
}

/** The ranges of large files, by path. */
async function rangesOfLarge(
  location: string,
  files: readonly TableFile[],
  cache: FileFactsCache,
): Promise<ReadonlyMap<string, readonly RowGroupRange[]>> {
  if (files.length === 0) return new Map()
  const lakeFiles = await Promise.all(
    files.map(async ({ path, bytes }) => {
      const { size, mtimeNs } = await stat(join(location, path), { bigint: true }).catch(() => {
        throw changed()
      })
      if (Number(size) !== bytes) throw changed()
      return { file: path, size: bytes, mtime: String(mtimeNs) }
    }),
  )
  const facts = await cache.facts('parquet', lakeFiles)
  return new Map(files.map(({ path }, index) => [path, joinRowGroups(facts[index]!.rowGroups, SPLIT_BYTES)]))
}

/** Compressed bytes of the columns; the footer's bytes are not read as data. */
function storedBytes({ bytes, columnBytes }: TableFile): number {
  return columnBytes ? Object.values(columnBytes).reduce((sum, each) => sum + each, 0) : bytes
}

export function changed(): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', 'A file of the table was changed while the query ran; run it again')
}
