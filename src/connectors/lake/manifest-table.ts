import { basename, join, relative } from 'node:path'
import { stat } from 'node:fs/promises'
import { EngineError } from '../../shared/engine-error.ts'
import { columnType } from '../spi/column-type.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import type { FiledColumn } from '../spi/parquet-statistics.ts'
import type { ConnectorSplit, TableStatistics } from '../spi/connector.ts'
import { bloomFilterMisleads, joinRowGroups, WITHOUT_BLOOM_FILTERS } from '../spi/parquet-scan.ts'
import type { WrittenFile } from '../spi/table-writer.ts'
import type { FileFactsCache } from './file-facts.ts'
import type { EmptySplit, WrittenSplit } from './lake-split.ts'
import { ADOPTED_ID, type Adopted, type TableContent } from './manifest.ts'
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
    columns: tableColumns(found).map(({ name, type }) => ({
      name,
      type,
      nullable: true,
      duckdbType: duckdbType(type),
    })),
    files: [],
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
  readonly folder: string
  readonly content: TableContent
}

/**
 * All splits of one version of a table.
 * @param held gives DuckDB's type for values of a type of Trino
 */
export async function manifestSplits(
  { catalog, settings, location, folder, content }: TableVersion,
  cache: FileFactsCache,
  read: ReadPart,
  held: (type: string) => string,
): Promise<readonly ConnectorSplit[]> {
  const byRow = columnsRead(content.columns, read.columns)
    .filter(({ duckdbType }) => bloomFilterMisleads(duckdbType))
    .map(({ name }) => name)
  const version = { catalog, location, folder, byRow }
  const large = content.files.filter((file) => storedBytes(file) > SPLIT_BYTES)
  const largeSplits = await splitsOfLarge(version, large, cache)
  const splits: ConnectorSplit[] = []
  for (const file of content.files) {
    const cut = largeSplits.get(file.path)
    if (cut) splits.push(...cut)
    else splits.push(wholeFile(version, file))
  }
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

/** Statistics from the manifest's own figures, for a table with only files that Quipu wrote. */
export function manifestStatistics({ files }: TableContent): Required<TableStatistics> {
  return {
    rows: files.reduce((sum, { rows }) => sum + rows, 0),
    bytes: files.reduce((sum, file) => sum + storedBytes(file), 0),
  }
}

/** All files of one version of a table, absolute. */
export function manifestPaths(location: string, folder: string, { files, adopted }: TableContent): readonly string[] {
  return [
    ...files.map(({ path }) => join(folder, path)),
    ...(adopted?.files ?? []).map(({ file }) => join(location, file)),
  ]
}

/** The table's columns with their names in the files: files that Quipu wrote use the table's names. */
export function storedColumns({ columns, adopted }: TableContent): readonly FiledColumn[] {
  const sources = new Map(adopted?.columns.map(({ name, source }) => [name, source]))
  // The footers of files have no partition keys; a column that a key hides is not read.
  const keys = new Set(adopted?.keys?.map(({ name }) => name))
  return columns
    .filter(({ name }) => !keys.has(name))
    .map(({ name, type }) => ({ name, type, source: sources.get(name) ?? name }))
}

interface WrittenTable extends Omit<TableVersion, 'content' | 'settings'> {
  /** Columns for which a bloom filter, if there is one, gives wrong answers. */
  readonly byRow: readonly string[]
}

function wholeFile({ catalog, location, folder, byRow }: WrittenTable, file: WrittenFile): ConnectorSplit {
  const { rows, bytes, footer, columnBytes } = file
  const filters = byRow.length > 0 && !basename(file.path).startsWith(WITHOUT_BLOOM_FILTERS)
  const data: WrittenSplit = {
    written: true,
    file: relative(location, join(folder, file.path)),
    size: bytes,
    footer,
    firstRow: 0,
    rows,
    fileRows: rows,
    ...(filters && { byRow: [...byRow] }),
  }
  return { catalog, data, rows, bytes: storedBytes(file), ...(columnBytes && { columnBytes }) }
}

async function splitsOfLarge(
  table: WrittenTable,
  files: readonly WrittenFile[],
  cache: FileFactsCache,
): Promise<ReadonlyMap<string, readonly ConnectorSplit[]>> {
  const { location, folder } = table
  const lakeFiles = await Promise.all(
    files.map(async ({ path, bytes }) => {
      const { size, mtimeNs } = await stat(join(folder, path), { bigint: true }).catch(() => {
        throw changed()
      })
      if (Number(size) !== bytes) throw changed()
      return { file: relative(location, join(folder, path)), size: bytes, mtime: String(mtimeNs) }
    }),
  )
  const facts = lakeFiles.length > 0 ? await cache.facts('parquet', lakeFiles) : []
  return new Map(
    files.map((file, index) => [
      file.path,
      joinRowGroups(facts[index]!.rowGroups, SPLIT_BYTES).map(({ firstRow, rows, bytes, columnBytes }) => {
        const whole = wholeFile(table, file)
        return { ...whole, data: { ...whole.data, firstRow, rows }, rows, bytes, columnBytes }
      }),
    ]),
  )
}

/** Compressed bytes of the columns; the footer's bytes are not read as data. */
function storedBytes({ bytes, columnBytes }: WrittenFile): number {
  return columnBytes ? Object.values(columnBytes).reduce((sum, each) => sum + each, 0) : bytes
}

export function changed(): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', 'A file of the table was changed while the query ran; run it again')
}
