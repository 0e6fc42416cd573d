import { readdir, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import type { SweepOptions, SweepReport } from '../spi/table-writer.ts'
import { DATA_FOLDER } from './attempts.ts'
import { makerOfFolder, nameOfFolder } from './folder-names.ts'
import { listFolders } from './lake-files.ts'
import { isWorthRewriting } from './removals.ts'
import { resolveInside } from './resolve-inside.ts'
import { rowsOf, type Manifest, type ManifestContent } from './manifest.ts'
import { listVersions, MANIFEST_FOLDER, readVersion, relativeFolder, versionPath, type Chain } from './version-chain.ts'
import { hasCode } from '../../shared/node-error.ts'
import { isQueryId } from '../../shared/ids.ts'

/** How long files that no manifest names are kept, milliseconds: their writer may still be about to name them. */
const UNNAMED_MILLIS = 24 * 3600 * 1000
/** The greatest difference between clocks of coordinators, milliseconds. The clocks stamp versions and queries. */
const CLOCKS_MILLIS = 60_000

/** @property keptMillis how long a version can be read after the next one was made */
interface LakeSweep extends SweepOptions {
  readonly keptMillis: number
}

/**
 * Removes versions that were replaced long ago, the files that only these versions name, and files of attempts that
 * were never committed. The newest version of a name always stays, even if the object was dropped: it remembers its
 * commits, which a delayed committer may need.
 */
export async function sweepLake(location: string, keptMillis: number, given: SweepOptions): Promise<SweepReport> {
  const options = { ...given, keptMillis }
  const report: Report = { filesRemoved: 0, bytesRemoved: 0, worthRewriting: [] }
  await removeUnmadeSchemas(location, options)
  const schemas = await subfolders(location, location)
  const elsewhere = await filesElsewhere(location, schemas, options)
  for (const schema of schemas) {
    const { swept } = await lookThrough({ location, folder: schema }, options)
    await sweepManifests(schema, swept, options)
    for (const folder of await subfolders(location, schema))
      await sweepObject({ location, folder }, elsewhere, options, report)
  }
  return report
}

/** Removes the folders of schemas that a process was making when it was killed. The query has ended since. */
async function removeUnmadeSchemas(location: string, options: SweepOptions): Promise<void> {
  for (const name of await names(location)) {
    const queryId = makerOfFolder(name)
    if (queryId !== undefined && !options.isOpen(queryId))
      await rm(join(location, name), { recursive: true, force: true })
  }
}

/**
 * The files that kept versions name outside of their own folder, relative to the location: a table that got another name
 * keeps its files. A table that gets another name while this runs is found under its old name, whose last version with
 * the files is kept for a day.
 */
async function filesElsewhere(
  location: string,
  schemas: readonly string[],
  options: LakeSweep,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (const schema of schemas) {
    for (const folder of await subfolders(location, schema)) {
      const chain = { location, folder }
      const own = `${relativeFolder(chain)}/`
      for await (const { manifest, isKept } of eachVersion(chain, options)) {
        const files = isKept ? [...dataFiles(manifest), ...adoptedFiles(manifest)] : []
        for (const file of files) if (!file.startsWith(own)) found.add(file)
      }
    }
  }
  return found
}

type Report = Omit<{ -readonly [K in keyof SweepReport]: SweepReport[K] }, 'worthRewriting'> & {
  readonly worthRewriting: { readonly schema: string; readonly table: string }[]
}

async function sweepObject(
  chain: Chain,
  elsewhere: ReadonlySet<string>,
  options: LakeSweep,
  report: Report,
): Promise<void> {
  const { folder } = chain
  const { mtimeMs } = await stat(folder)
  const hadAttempts = (await stat(join(folder, DATA_FOLDER)).catch(() => undefined)) !== undefined
  // Read before the manifests: if a query has ended by now and committed files, the manifests name them.
  const queries = (await names(join(folder, DATA_FOLDER))).filter((name) => !(isQueryId(name) && options.isOpen(name)))
  const { newest, named, adopted, swept } = await lookThrough(chain, options)
  const isNamed = (file: string): boolean => named.has(file) || elsewhere.has(file)
  for (const queryId of queries) await sweepQuery(chain, queryId, isNamed, options, report)
  await rmdir(join(folder, DATA_FOLDER)).catch(() => {})

  const isAdopted = (file: string): boolean => adopted.has(file) || elsewhere.has(file)
  for (const version of swept) {
    const manifest = await readVersion(chain, version)
    if (manifest) await sweepAdopted(chain, manifest, isAdopted, report)
  }
  await sweepManifests(folder, swept, options)
  if (newest?.kind === 'table' && !newest.until && isWorthRewriting(newest)) {
    report.worthRewriting.push({
      schema: nameOfFolder(basename(dirname(folder))),
      table: nameOfFolder(basename(folder)),
    })
  }
  // No change was ever committed: attempts left an empty folder.
  if (newest === undefined && hadAttempts && mtimeMs < options.now - UNNAMED_MILLIS) await rmdir(folder).catch(() => {})
}

interface Versions {
  /** The content of the newest version. */
  readonly newest: ManifestContent | undefined
  /** The files that Quipu wrote and that kept versions name, relative to the location. */
  readonly named: ReadonlySet<string>
  /** The files that were there before and that kept versions name, relative to the location. */
  readonly adopted: ReadonlySet<string>
  /** The versions to remove, the oldest first. */
  readonly swept: readonly number[]
}

async function lookThrough(chain: Chain, options: LakeSweep): Promise<Versions> {
  const [named, adopted] = [new Set<string>(), new Set<string>()]
  const swept: number[] = []
  let newest: ManifestContent | undefined
  for await (const { manifest, isKept } of eachVersion(chain, options)) {
    newest ??= manifest.content
    if (isKept) {
      for (const file of dataFiles(manifest)) named.add(file)
      for (const file of adoptedFiles(manifest)) adopted.add(file)
    } else swept.push(manifest.version)
  }
  return { newest, named, adopted, swept: swept.reverse() }
}

/** Removes the files of a version that were there before it and that no kept version names. */
async function sweepAdopted(
  chain: Chain,
  manifest: Manifest,
  isKept: (file: string) => boolean,
  report: Report,
): Promise<void> {
  const home = adoptedFolder(chain, manifest)
  for (const file of adoptedFiles(manifest)) {
    const path = join(chain.location, file)
    // Only files in the folder and its partitions are removed: a link may lead elsewhere.
    if (isKept(file) || !isOwnFile(home, path)) continue
    await remove(path, report)
    // Removes empty folders of partitions.
    for (let parent = dirname(path); parent !== home; parent = dirname(parent)) {
      if (!(await rmdir(parent).then(() => true, () => false))) break // prettier-ignore
    }
  }
}

/** Whether a file is in a table's folder, or in folders of partitions below it. */
function isOwnFile(folder: string, path: string): boolean {
  if (!path.startsWith(`${folder}/`)) return false
  const between = path
    .slice(folder.length + 1)
    .split('/')
    .slice(0, -1)
  return between.every((name) => name.includes('='))
}

async function sweepQuery(
  chain: Chain,
  queryId: string,
  isNamed: (file: string) => boolean,
  options: LakeSweep,
  report: Report,
): Promise<void> {
  const queryFolder = join(chain.folder, DATA_FOLDER, queryId)
  for (const attempt of await names(queryFolder)) {
    for (const file of await names(join(queryFolder, attempt))) {
      const path = join(queryFolder, attempt, file)
      if (isNamed(relative(chain.location, path))) continue
      const { mtimeMs } = await stat(path)
      if (mtimeMs < options.now - UNNAMED_MILLIS) await remove(path, report)
    }
    await rmdir(join(queryFolder, attempt)).catch(() => {})
  }
  await rmdir(queryFolder).catch(() => {})
}

/**
 * Removes old versions, after the files that only they name, so that an interrupted sweep can be repeated.
 * @param swept the oldest first: a version that is left must not get a younger successor
 */
async function sweepManifests(folder: string, swept: readonly number[], options: LakeSweep): Promise<void> {
  for (const version of swept) await rm(versionPath(folder, version), { force: true })
  for (const name of await names(join(folder, MANIFEST_FOLDER))) {
    if (!name.startsWith('.')) continue
    const path = join(folder, MANIFEST_FOLDER, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }))
    if (mtimeMs < options.now - UNNAMED_MILLIS) await rm(path, { force: true })
  }
}

/**
 * Reads the versions of a chain, the newest first. A long chain of large manifests does not fit into memory: only one
 * and the newest are held at a time.
 */
async function* eachVersion(
  chain: Chain,
  options: LakeSweep,
): AsyncGenerator<{ readonly manifest: Manifest; readonly isKept: boolean }> {
  let newest: ManifestContent | undefined
  let replacedAt = Infinity
  for (const version of (await listVersions(chain.folder)).toReversed()) {
    const manifest = await readVersion(chain, version)
    if (!manifest) continue
    newest ??= manifest.content
    yield { manifest, isKept: isKept(manifest, { replacedAt, newest }, options) }
    replacedAt = manifest.time
  }
}

/**
 * Whether a version is kept: an open query or a new query may read it. A query may read a version if it begins within
 * `keptMillis` after the next version was made, unless EXECUTE expire_snapshots has ended this earlier.
 * @param replacedAt when the next version was made, milliseconds since the epoch; Infinity for the newest version
 */
function isKept(
  { content }: Manifest,
  { replacedAt, newest }: { readonly replacedAt: number; readonly newest: ManifestContent },
  { now, oldestOpenQuery = Infinity, keptMillis }: LakeSweep,
): boolean {
  if (replacedAt < Math.min(now, oldestOpenQuery) - keptMillis - CLOCKS_MILLIS) return false
  if (newest.kind !== 'table' || !newest.expired) return true
  // A chain also has versions of tables that had the name before.
  if (content.kind !== 'table' || content.id !== newest.id) return true
  return replacedAt >= newest.expired.before || oldestOpenQuery <= newest.expired.at + CLOCKS_MILLIS
}

/** The files that Quipu wrote, relative to the location. */
function dataFiles({ content }: Manifest): string[] {
  return rowsOf(content)?.files.map(({ path }) => path) ?? []
}

/** The files that were there before, relative to the location. */
function adoptedFiles({ content }: Manifest): string[] {
  return content.kind === 'table' ? (content.adopted?.files ?? []).map(({ file }) => file) : []
}

/** The folder, absolute, that the adopted files of a table were found in. */
function adoptedFolder({ location, folder }: Chain, { content }: Manifest): string {
  const home = content.kind === 'table' ? content.adopted?.folder : undefined
  return home === undefined ? folder : join(location, home)
}

async function subfolders(location: string, folder: string): Promise<string[]> {
  const found = [...(await listFolders(folder)).values()].flat()
  const resolved = await Promise.all(
    found.map((name) => resolveInside(location, join(folder, name)).catch(() => undefined)),
  )
  return resolved.filter((path) => path !== undefined)
}

async function names(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: Error) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  })
}

async function remove(path: string, report: Report): Promise<void> {
  const size = await stat(path).then(
    (stats) => stats.size,
    () => 0,
  )
  await unlink(path)
    .then(() => {
      report.filesRemoved++
      report.bytesRemoved += size
    })
    .catch((error: Error) => {
      if (!hasCode(error, 'ENOENT')) throw error
    })
}
