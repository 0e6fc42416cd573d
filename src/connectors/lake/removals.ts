/**
 * Removed rows. A change of rows writes files whose rows name the rows that they remove: by the index of a file in the
 * table's list of files, and by the row's number in that file. Files are never changed.
 */
import type { WrittenFile } from '../spi/table-writer.ts'
import type { TableContent, TableFile } from './manifest.ts'

/** Files below this size are rewritten together, bytes. */
const SMALL_FILE_BYTES = 64 * 1024 * 1024
/** The part of a file's rows that may be removed before the sweep reports that the table should be rewritten. */
const MOST_REMOVED = 0.3
/** The number of files of changed rows before the sweep reports that the table should be rewritten. */
const MOST_CHANGE_FILES = 8

/** The number of rows that are removed from each file, by path. */
export function removedRows({ removals }: Pick<TableContent, 'removals'>): ReadonlyMap<string, number> {
  return new Map(removals.map(({ file, by }) => [file, by.reduce((sum, { rows }) => sum + rows, 0)]))
}

/** The number of rows that a file gives to the table, before removals. */
export function liveRows({ rows, live }: TableFile): number {
  return live ?? rows
}

/** The number of rows of the table. */
export function countRows(table: Pick<TableContent, 'files' | 'removals'>): number {
  const removed = removedRows(table)
  return table.files.reduce((sum, file) => sum + liveRows(file) - (removed.get(file.path) ?? 0), 0)
}

/**
 * The table with a change of its rows.
 * @param added the change's files as files of the table
 * @param written the same files, with the rows that they remove from the table's files
 */
export function withRemovals(
  table: TableContent,
  added: readonly TableFile[],
  written: readonly WrittenFile[],
): TableContent {
  const by = new Map(table.removals.map((removal) => [removal.file, [...removal.by]]))
  const changes = written.filter(({ rows }) => rows > 0)
  for (const [position, { change }] of changes.entries()) {
    for (const { file: index, rows } of change?.removed ?? []) {
      const removedFrom = table.files[index]
      if (!removedFrom) throw new Error(`The table has no file ${index}`)
      const known = by.get(removedFrom.path) ?? []
      known.push({ file: added[position]!.path, index, rows })
      by.set(removedFrom.path, known)
    }
  }
  const removals = [...by].map(([file, all]) => ({ file, by: all }))
  return withoutDeadFiles({ ...table, files: [...table.files, ...added], removals })
}

/**
 * Drops files without a row of the table. A file of changed rows stays while it removes rows of other files; none of its
 * own rows is `live` then.
 */
export function withoutDeadFiles(table: TableContent): TableContent {
  const removed = removedRows(table)
  const living = new Set(
    table.files.filter((file) => liveRows(file) > (removed.get(file.path) ?? 0)).map(({ path }) => path),
  )
  const removals = table.removals.filter(({ file }) => living.has(file))
  const needed = new Set(removals.flatMap((removal) => removal.by.map(({ file }) => file)))
  const files = table.files
    .filter(({ path }) => living.has(path) || needed.has(path))
    .map((file) => (living.has(file.path) ? file : { ...file, live: 0 }))
  return { ...table, removals, files }
}

/**
 * The paths of the files that a rewrite replaces: files with removed rows, files of changed rows, and small files when
 * there are several.
 * @param count only the first files of the table
 * @param smallBytes files below this size are small
 */
export function filesToRewrite(
  { files, removals }: Pick<TableContent, 'files' | 'removals'>,
  count: number,
  smallBytes: number = SMALL_FILE_BYTES,
): ReadonlySet<string> {
  const withRemovedRows = new Set(removals.map(({ file }) => file))
  const first = files.slice(0, count)
  const changed = first.filter(({ path, live }) => live !== undefined || withRemovedRows.has(path))
  const small = first.filter(({ bytes, path, live }) => bytes < smallBytes && live === undefined && !withRemovedRows.has(path)) // prettier-ignore
  return new Set([...changed, ...(small.length > 1 || changed.length > 0 ? small : [])].map(({ path }) => path))
}

/** Whether the table has so many changed rows that reading it has become slow. */
export function isWorthRewriting(table: Pick<TableContent, 'files' | 'removals'>): boolean {
  if (table.files.filter(({ live }) => live !== undefined).length > MOST_CHANGE_FILES) return true
  const removed = removedRows(table)
  return table.files.some((file) => (removed.get(file.path) ?? 0) > MOST_REMOVED * liveRows(file))
}
