import { createHash } from 'node:crypto'
import type { ConnectorSplit } from '../spi/connector.ts'
import { joinRowGroups } from '../spi/parquet-scan.ts'
import type { FileFacts, FileFactsCache } from './file-facts.ts'
import { listDataFiles, type FileFormat, type LakeFile, type ListedFiles } from './lake-files.ts'
import type { FoundSplit } from './lake-split.ts'
import type { Adopted } from './manifest.ts'

/** Splits of large Parquet files are cut at row groups into about so many compressed bytes. */
export const SPLIT_BYTES = 16 * 1024 * 1024

/** Data files of a folder as they were found at one moment. */
export interface FoundFiles {
  readonly format: FileFormat
  readonly files: readonly LakeFile[]
  readonly facts: readonly FileFacts[]
  readonly columns: readonly {
    readonly name: string
    readonly source: string
    readonly duckdbType: string
    /** Trino's type text. */
    readonly type: string
  }[]
  readonly shapesDiffer: boolean
}

/** What lies in a folder now; undefined without data files. */
export async function findFiles(
  location: string,
  folder: string,
  cache: FileFactsCache,
): Promise<FoundFiles | undefined> {
  const listed = await listDataFiles(location, folder)
  return listed && factsOf(listed, cache)
}

/** What is known of files that were listed just now. */
export async function factsOf({ format, files }: ListedFiles, cache: FileFactsCache): Promise<FoundFiles> {
  const facts = await cache.facts(format, files)
  const shapesDiffer = facts.some(({ shape }) => shape !== facts[0]!.shape)
  return { format, files, facts, columns: await cache.columns(format, files, facts), shapesDiffer }
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

/** @param read names of the columns that will be read: a split of a wide table need not tell of the others */
export function foundSplits(
  catalog: string,
  {
    format,
    files,
    facts,
    columns,
    shapesDiffer,
  }: Omit<FoundFiles, 'columns'> & { readonly columns: readonly Adopted['columns'][number][] },
  read?: readonly string[],
): ConnectorSplit[] {
  // Text is read by what is in each line: all columns that it has are told.
  const told = format === 'parquet' ? columnsRead(columns, read) : columns
  return files.flatMap((file, index): ConnectorSplit[] => {
    const { footer, names, rowGroups } = facts[index]!
    const own = told.map(({ name, source, duckdbType }) => {
      // Where all files have the same columns each has those: one without a name, or with another's, DuckDB calls otherwise.
      return { name, source, duckdbType, present: !shapesDiffer || names.has(name) }
    })
    const data = { ...file, format, footer, unionByName: shapesDiffer, columns: own }
    const none = { firstRow: 0, rows: 0, fileRows: 0 }
    if (format !== 'parquet') return [{ catalog, data: { ...data, ...none } satisfies FoundSplit, bytes: file.size }]
    // A table has at least one split: an empty one says of which types the no rows are.
    if (rowGroups.length === 0) return [{ catalog, data: { ...data, ...none }, rows: 0, bytes: 0 }]
    const fileRows = rowGroups.reduce((sum, { rows }) => sum + rows, 0)
    return joinRowGroups(rowGroups, SPLIT_BYTES).map(({ firstRow, rows, bytes, columnBytes }) => ({
      catalog,
      data: { ...data, firstRow, rows, fileRows } satisfies FoundSplit,
      rows,
      bytes,
      columnBytes,
    }))
  })
}
