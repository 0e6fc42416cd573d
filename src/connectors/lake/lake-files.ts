import type { Dirent } from 'node:fs'
import { open, readdir, realpath, stat } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join, sep } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { checkReadable } from '../spi/readable-path.ts'
import { nameOfFolder, tableOfFolder } from './folder-names.ts'
import type { TableSettings } from './table-settings.ts'
import { hasCode } from '../../shared/node-error.ts'

export const fileFormats = ['parquet', 'csv', 'json'] as const
export type FileFormat = (typeof fileFormats)[number]

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
}

/** Data files of one folder, all of one format. */
export interface ListedFiles {
  readonly format: FileFormat
  readonly files: readonly LakeFile[]
  /** What the catalog file says of their table. */
  readonly settings?: TableSettings | undefined
}

/** A folder's entries by SQL name (`folder-names.ts`). Names that differ only in case have several and cannot be used. */
export type FolderNames = ReadonlyMap<string, readonly string[]>

/**
 * Folders below `folder`, by SQL name; what begins with `.` or `_` is not data.
 * @param linked is told of those that are links
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

/** Whether an entry of `folder` is a folder, or a link to one. */
async function isFolder(folder: string, entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory()
  return (await stat(join(folder, entry.name)).catch(() => undefined))?.isDirectory() ?? false
}

/**
 * The one entry a SQL name stands for.
 * @throws EngineError AMBIGUOUS_NAME when entries differ only in case
 */
export function pickName(names: FolderNames, name: string, what: string): string | undefined {
  const found = names.get(name)
  if (found && found.length > 1) {
    // Until somebody renames one of them.
    throw new EngineError('AMBIGUOUS_NAME', `${what} '${name}' is ambiguous: its folders differ only in case`, {
      retry: 'later',
    })
  }
  return found?.[0]
}

/**
 * A path below the location with its links followed.
 * @throws EngineError PERMISSION_DENIED when it leads out of the location, HIVE_BAD_DATA when it leads to itself
 */
export async function resolveInside(location: string, path: string): Promise<string> {
  const real = await realpath(path).catch((error: unknown) => {
    if (!hasCode(error, 'ELOOP')) throw error
    throw new EngineError('HIVE_BAD_DATA', 'A link in the catalog leads to itself', { cause: error, retry: 'later' })
  })
  if (real !== location && !real.startsWith(location.endsWith(sep) ? location : location + sep)) {
    throw new EngineError('PERMISSION_DENIED', 'A link in the catalog leads out of its location', { retry: 'later' })
  }
  return real
}

/**
 * The data files of a table's folder, sorted by name, links followed.
 * @param settings of the table: with a format, all its files are of that one, whatever they are called
 * @throws EngineError NOT_SUPPORTED when they are of several formats or lie in folders of partitions, PERMISSION_DENIED for links out of the location
 */
export async function listDataFiles(
  location: string,
  folder: string,
  settings?: TableSettings,
): Promise<ListedFiles | undefined> {
  const formats = new Set<FileFormat>()
  const found: string[] = []
  const entries = await readdir(folder, { withFileTypes: true })
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name } = entry
    if (name.startsWith('.') || name.startsWith('_')) continue
    // Its files would be missing from the result without a word.
    if (/^[^=]+=/.test(name) && (await isFolder(folder, entry))) {
      const message = `Table '${tableOfFolder(folder)}' has folders of partitions ('${name}'), which cannot be read`
      throw new EngineError('NOT_SUPPORTED', message, { retry: 'later' })
    }
    const format = settings?.format ?? EXTENSIONS.find(([pattern]) => pattern.test(name))?.[1]
    if (!format) continue
    formats.add(format)
    found.push(name)
  }
  const [format] = formats
  if (format === undefined) return undefined
  if (formats.size > 1) {
    throw new EngineError('NOT_SUPPORTED', `A table's files must be of one format, here are ${[...formats].join(', ')}`)
  }
  const files = await Promise.all(
    found.map(async (name): Promise<LakeFile | undefined> => {
      const what = `File '${name}' of table '${tableOfFolder(folder)}'`
      const path = await resolveInside(location, join(folder, name)).catch((error: unknown) => {
        throw refused(error, what)
      })
      checkReadable(path, what)
      const stats = await stat(path, { bigint: true })
      if (stats.isDirectory()) return undefined
      if (!stats.isFile()) throw new EngineError('HIVE_BAD_DATA', `${what} is a pipe or a device`, { retry: 'later' })
      return { file: path.slice(location.length + 1), size: Number(stats.size), mtime: String(stats.mtimeNs) }
    }),
  )
  return { format, files: files.filter((file) => file !== undefined), settings }
}

/** An error about a file of a table, naming it where it named none. */
function refused(error: unknown, what: string): unknown {
  if (error instanceof EngineError && error.errorName === 'HIVE_BAD_DATA')
    return new EngineError('HIVE_BAD_DATA', `${what} is a link that leads to itself`, { cause: error, retry: 'later' })
  if (!hasCode(error, 'ENOENT', 'ENOTDIR')) return error
  const message = `${what} does not exist any more, or is a link to nothing`
  return new EngineError('HIVE_CANNOT_OPEN_SPLIT', message, { cause: error, retry: 'later' })
}

/** The most of a file's end that the hash takes in: Parquet footers are mostly smaller, and it is read once a split. */
const FOOTER_BYTES = 64 * 1024

/** SHA-256 of a file's last bytes: in Parquet its footer, which names every column chunk. */
export async function hashFooter(path: string, size: number): Promise<string> {
  const file = await open(path)
  try {
    const length = Math.min(size, FOOTER_BYTES)
    const bytes = Buffer.alloc(length)
    await file.read(bytes, 0, length, size - length)
    return createHash('sha256').update(bytes).digest('hex')
  } finally {
    await file.close()
  }
}
