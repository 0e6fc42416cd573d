import { readdir, stat } from 'node:fs/promises'
import type { Dirent } from 'node:fs'
import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { resolveInside } from './resolve-inside.ts'

/** A folder `key=value` that contains a file: its name, and the key and value that the name encodes as in Hive. */
export interface Partition {
  readonly folder: string
  /** Lower case. */
  readonly key: string
  /** Null for Hive's default partition. */
  readonly value: string | null
}

/** A file in a table's folder, or in folders of partitions below it. */
export interface FolderFile {
  /** The folder that contains the file, absolute, links followed. */
  readonly folder: string
  readonly name: string
  readonly isLink: boolean
  /** The folders of partitions, from the table's folder down; files of one folder share the array. */
  readonly partitions: readonly Partition[]
}

/** The number of entries of a folder that are examined at a time; a folder may have thousands. */
const AT_ONCE = 16
/** The most folders that a table may have: all are listed whenever the table is used. */
const MOST_FOLDERS = 100_000
/** The folder name that Hive, Spark and others use for rows with the value NULL. */
const NULL_VALUE = '__HIVE_DEFAULT_PARTITION__'

/** The files that a walk looks for, and the table's name for errors. */
interface Walk {
  readonly location: string
  /** Schema and table, for errors. */
  readonly table: string
  readonly isData: (name: string) => boolean
}

/**
 * Data files of a table's folder and of folders of partitions below it, sorted by their paths.
 * @param folder absolute, links followed
 * @throws EngineError HIVE_BAD_DATA for folders of partitions that do not fit together; NOT_SUPPORTED for data files in other
 *   folders, and for too many folders; PERMISSION_DENIED for links out of the location
 */
export async function listFolderFiles(folder: string, walk: Walk): Promise<readonly FolderFile[]> {
  const files: (FolderFile & { readonly path: string })[] = []
  let level: { readonly folder: string; readonly partitions: readonly Partition[] }[] = [{ folder, partitions: [] }]
  for (let folders = 1; level.length > 0; folders += level.length) {
    if (folders + level.length > MOST_FOLDERS + 1)
      throw refused('NOT_SUPPORTED', walk, `has more than ${MOST_FOLDERS} folders of partitions`)
    const next: typeof level = []
    for (let from = 0; from < level.length; from += AT_ONCE) {
      const some = level.slice(from, from + AT_ONCE)
      for (const { own, below } of await Promise.all(some.map((one) => lookInto(one.folder, one.partitions, walk)))) {
        for (const file of own) files.push({ ...file, path: join(pathOf(file.partitions), file.name) })
        next.push(...below)
      }
    }
    level = next
  }
  checkAlike(files, walk)
  return files.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

type Below = { readonly folder: string; readonly partitions: readonly Partition[] }

async function lookInto(
  folder: string,
  partitions: readonly Partition[],
  walk: Walk,
): Promise<{ readonly own: readonly FolderFile[]; readonly below: readonly Below[] }> {
  const own: FolderFile[] = []
  const below: Below[] = []
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const { name } = entry
    if (isHidden(name)) continue
    if (!(await isFolder(folder, entry))) {
      if (walk.isData(name)) own.push({ folder, name, isLink: entry.isSymbolicLink(), partitions })
      continue
    }
    const shown = [pathOf(partitions), name].filter((part) => part !== '').join('/')
    const real = entry.isSymbolicLink()
      ? await inside(walk, join(folder, name), `Folder '${shown}' of table '${walk.table}'`)
      : join(folder, name)
    if (name.includes('='))
      below.push({ folder: real, partitions: [...partitions, partitionOf(name, partitions, shown, walk)] }) // prettier-ignore
    else if (await holdsData(real, walk))
      throw refused(
        'NOT_SUPPORTED',
        walk,
        `has files in the folder '${shown}', which is none of a partition (key=value)`,
      )
  }
  return { own, below }
}

/** Whether a name is hidden. Spark and others name a folder after its key, so `_key=value` is not hidden. */
function isHidden(name: string): boolean {
  return name.startsWith('.') || (name.startsWith('_') && !name.includes('='))
}

/** Whether an entry of `folder` is a folder, or a link to one. */
export async function isFolder(folder: string, entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory()
  return (await stat(join(folder, entry.name)).catch(() => undefined))?.isDirectory() ?? false
}

async function inside({ location }: Walk, path: string, what: string): Promise<string> {
  return resolveInside(location, path).catch((error: unknown) => {
    if (!(error instanceof EngineError)) throw error
    throw new EngineError(error.errorName, `${what}: ${error.message}`, { cause: error, retry: 'later' })
  })
}

/** @param seen folders that were examined: links may lead back to them */
async function holdsData(folder: string, walk: Walk, seen = new Set<string>()): Promise<boolean> {
  if (seen.has(folder)) return false
  seen.add(folder)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (isHidden(entry.name)) continue
    const path = join(folder, entry.name)
    if (!(await isFolder(folder, entry))) {
      if (walk.isData(entry.name)) return true
      continue
    }
    const real = entry.isSymbolicLink() ? await inside(walk, path, `A folder of table '${walk.table}'`) : path
    if (await holdsData(real, walk, seen)) return true
  }
  return false
}

function partitionOf(folder: string, above: readonly Partition[], shown: string, walk: Walk): Partition {
  const at = folder.indexOf('=')
  const [key, text] = [decoded(folder.slice(0, at))?.toLowerCase(), folder.slice(at + 1)]
  const value = text === NULL_VALUE ? null : decoded(text)
  if (key === '') throw refused('HIVE_BAD_DATA', walk, `has the folder '${shown}' of a partition without a key`)
  if (key === undefined || value === undefined) {
    throw refused('HIVE_BAD_DATA', walk, `has the folder '${shown}' of a partition whose text is not valid: %XX must be UTF-8 without %00`) // prettier-ignore
  }
  if (above.some((one) => one.key === key))
    throw refused('HIVE_BAD_DATA', walk, `has the folder '${shown}', which names the key '${key}' twice`)
  return { folder, key, value }
}

/**
 * Decodes `%2F` and the like as UTF-8; a `%` without two digits behind it stays. Undefined for text that is not valid.
 */
function decoded(text: string): string | undefined {
  try {
    const plain = text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (bytes) => decodeURIComponent(bytes))
    return plain.includes('\0') ? undefined : plain
  } catch {
    return undefined
  }
}

/** Checks that all files of a table have the same keys in the same order. */
function checkAlike(files: readonly FolderFile[], walk: Walk): void {
  const [first] = files
  if (!first) return
  const keysOf = (partitions: readonly Partition[]): string => partitions.map(({ key }) => key).join('/')
  const seen = new Set<readonly Partition[]>()
  for (const { partitions } of files) {
    if (seen.has(partitions)) continue
    seen.add(partitions)
    if (keysOf(partitions) === keysOf(first.partitions)) continue
    const [one, other] = [described(first.partitions), described(partitions)]
    throw refused('HIVE_BAD_DATA', walk, `has files in folders of different partition keys: ${one}, and ${other}`)
  }
}

function described(partitions: readonly Partition[]): string {
  if (partitions.length === 0) return 'none in its own folder'
  return `${partitions.map(({ key }) => `'${key}'`).join(', ')} in '${pathOf(partitions)}'`
}

/** The path of a partition's folder in its table's folder. */
export function pathOf(partitions: readonly Partition[]): string {
  return partitions.map(({ folder }) => folder).join('/')
}

function refused(name: 'HIVE_BAD_DATA' | 'NOT_SUPPORTED', { table }: Walk, what: string): EngineError {
  // The table is readable once its folders are repaired.
  return new EngineError(name, `Table '${table}' ${what}`, { retry: 'later' })
}

/** The folder of the table of a file. @param file relative to the location */
export function tableFolderOf(file: string): string {
  const folders = file.split('/').slice(0, -1)
  // The folders of a schema and of a table may have any name.
  while (folders.length > 2 && folders.at(-1)!.includes('=')) folders.pop()
  return folders.join('/')
}
