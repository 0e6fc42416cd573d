import type { FileFormat } from './file-format.ts'
import { closeSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { checkReadable } from '../spi/readable-path.ts'
import { nameOfFolder, tableOfFolder } from './folder-names.ts'
import { isFolder, listFolderFiles, type FolderFile, type Partition } from './partition-folders.ts'
import { openFile, readInto } from './open-files.ts'
import { resolveInside } from './resolve-inside.ts'
import type { TableSettings } from './table-settings.ts'
import { hasCode } from '../../shared/node-error.ts'

const EXTENSIONS: readonly (readonly [pattern: RegExp, format: FileFormat])[] = [
  [/\.parquet$/i, 'parquet'],
  [/\.(csv|tsv)(\.gz)?$/i, 'csv'],
  [/\.(json|jsonl|ndjson)(\.gz)?$/i, 'json'],
]

export interface LakeFile {
  /** Relative to the location. */
  readonly file: string
  readonly size: number
  /** Nanoseconds since the epoch, decimal. */
  readonly mtime: string
  /** The folders `key=value` that contain the file; absent: none. Files of one folder share the array. */
  readonly partitions?: readonly Partition[]
}

/** Data files of one folder, all of one format. */
export interface ListedFiles {
  /** Schema and table, for errors. */
  readonly table: string
  readonly format: FileFormat
  readonly files: readonly LakeFile[]
  /** The settings of the table in the catalog file. */
  readonly settings?: TableSettings | undefined
}

/**
 * A folder's entries by SQL name (`folder-names.ts`). A name has several entries if they differ only in case; it cannot
 * be used.
 */
export type FolderNames = ReadonlyMap<string, readonly string[]>

/**
 * Folders in `folder`, by SQL name; folders that begin with `.` or `_` are not data.
 * @param linked called with the name of each folder that is a link
 */
export async function listFolders(folder: string, linked: (name: string) => void = () => {}): Promise<FolderNames> {
  const names = new Map<string, string[]>()
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: Error) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  })
  for (const entry of entries) {
    if (entry.name.startsWith('.') || entry.name.startsWith('_')) continue
    if (!(await isFolder(folder, entry))) continue
    if (entry.isSymbolicLink()) linked(entry.name)
    const name = nameOfFolder(entry.name)
    names.set(name, [...(names.get(name) ?? []), entry.name])
  }
  return names
}

/**
 * The only entry that a SQL name stands for.
 * @throws EngineError AMBIGUOUS_NAME when entries differ only in case
 */
export function pickName(names: FolderNames, name: string, what: string): string | undefined {
  const found = names.get(name)
  if (found && found.length > 1) {
    // Retriable: an entry may be renamed.
    throw new EngineError('AMBIGUOUS_NAME', `${what} '${name}' is ambiguous: its folders differ only in case`, {
      retry: 'later',
    })
  }
  return found?.[0]
}

/**
 * The data files of a table's folder and of its folders of partitions, sorted by path, links followed.
 * @param settings of the table: if they have a format, all files are of that format, whatever their names
 * @throws EngineError NOT_SUPPORTED when the files have several formats, PERMISSION_DENIED for links out of the
 * location, and the errors of `listFolderFiles`
 */
export async function listDataFiles(
  location: string,
  folder: string,
  settings?: TableSettings,
): Promise<ListedFiles | undefined> {
  const formatOf = (name: string): FileFormat | undefined =>
    settings?.format ?? EXTENSIONS.find(([pattern]) => pattern.test(name))?.[1]
  const table = tableOfFolder(folder)
  const found = await listFolderFiles(folder, { location, table, isData: (name) => formatOf(name) !== undefined })
  const formats = new Set(found.map(({ name }) => formatOf(name)!))
  const [format] = formats
  if (format === undefined) return undefined
  if (formats.size > 1) {
    throw new EngineError('NOT_SUPPORTED', `A table's files must be of one format, here are ${[...formats].join(', ')}`)
  }
  const files = await Promise.all(found.map((file) => lakeFile(location, table, file)))
  return { table, format, files, settings }
}

async function lakeFile(location: string, table: string, found: FolderFile): Promise<LakeFile> {
  const { folder, name, isLink, partitions } = found
  const what = `File '${[...partitions.map((one) => one.folder), name].join('/')}' of table '${table}'`
  const refuse = (error: unknown): never => {
    throw refused(error, what)
  }
  const named = join(folder, name)
  const path = isLink ? await resolveInside(location, named).catch(refuse) : named
  checkReadable(path, what)
  const stats = await stat(path, { bigint: true }).catch(refuse)
  if (!stats.isFile()) throw new EngineError('HIVE_BAD_DATA', `${what} is a pipe or a device`, { retry: 'later' })
  const known = { file: path.slice(location.length + 1), size: Number(stats.size), mtime: String(stats.mtimeNs) }
  return partitions.length === 0 ? known : { ...known, partitions }
}

/** Turns an error about a file of a table into one that names the file. */
function refused(error: unknown, what: string): unknown {
  if (error instanceof EngineError && error.errorName === 'HIVE_BAD_DATA')
    return new EngineError('HIVE_BAD_DATA', `${what} is a link that leads to itself`, { cause: error, retry: 'later' })
  if (!hasCode(error, 'ENOENT', 'ENOTDIR')) return error
  const message = `${what} no longer exists, or is a broken link`
  return new EngineError('HIVE_CANNOT_OPEN_SPLIT', message, { cause: error, retry: 'later' })
}

/**
 * The part of a file's end that is hashed, bytes: most Parquet footers are smaller, and it is read once for each split.
 */
const FOOTER_BYTES = 64 * 1024

/**
 * SHA-256 of a file's last bytes: in Parquet its footer, which names every column chunk.
 * @param use is called with the open file first
 */
export async function hashFooter(
  path: string,
  size: number,
  use: (file: number) => Promise<void> = async () => {},
): Promise<string> {
  const file = await openFile(path, 'r')
  try {
    await use(file)
    const length = Math.min(size, FOOTER_BYTES)
    const bytes = Buffer.alloc(length)
    await readInto(file, bytes, 0, length, size - length)
    return createHash('sha256').update(bytes).digest('hex')
  } finally {
    closeSync(file)
  }
}
