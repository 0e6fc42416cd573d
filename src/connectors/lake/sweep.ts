import { readdir, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import type { SweepOptions, SweepReport } from '../spi/table-writer.ts'
import { DATA_FOLDER } from './attempts.ts'
import { makerOfFolder, nameOfFolder } from './folder-names.ts'
import { listFolders } from './lake-files.ts'
import { isWorthRewriting } from './removals.ts'
import { resolveInside } from './resolve-inside.ts'
import { rowsOf, type Manifest } from './manifest.ts'
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
    await sweepManifests(schema, await loadVersions({ location, folder: schema }), options)
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
      for (const manifest of split(await loadVersions(chain), options).kept)
        for (const file of [...dataFiles(manifest), ...adoptedFiles(manifest)])
          if (!file.startsWith(own)) found.add(file)
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
  const { location, folder } = chain
  const { mtimeMs } = await stat(folder)
  const hadAttempts = (await stat(join(folder, DATA_FOLDER)).catch(() => undefined)) !== undefined
  // Read before the manifests: if a query has ended by now and committed files, the manifests name them.
  const queries = (await names(join(folder, DATA_FOLDER))).filter((name) => !(isQueryId(name) && options.isOpen(name)))
  const versions = await loadVersions(chain)
  const { kept, swept } = split(versions, options)
  const named = new Set([...elsewhere, ...kept.flatMap(dataFiles)])
  for (const queryId of queries) await sweepQuery(chain, queryId, named, options, report)
  await rmdir(join(folder, DATA_FOLDER)).catch(() => {})

  const adopted = new Set([...elsewhere, ...kept.flatMap(adoptedFiles)])
  for (const manifest of swept) {
    const home = adoptedFolder(chain, manifest)
    for (const file of adoptedFiles(manifest)) {
      const path = join(location, file)
      // Only files in the folder and its partitions are removed: a link may lead elsewhere.
      if (adopted.has(file) || !isOwnFile(home, path)) continue
      await remove(path, report)
      // Removes empty folders of partitions.
      for (let parent = dirname(path); parent !== home; parent = dirname(parent)) {
        if (!(await rmdir(parent).then(() => true, () => false))) break // prettier-ignore
      }
    }
  }
  await sweepManifests(folder, versions, options)
  const newest = versions.at(-1)?.content
  if (newest?.kind === 'table' && !newest.until && isWorthRewriting(newest)) {
    report.worthRewriting.push({
      schema: nameOfFolder(basename(dirname(folder))),
      table: nameOfFolder(basename(folder)),
    })
  }
  // No change was ever committed: attempts left an empty folder.
  if (versions.length === 0 && hadAttempts && mtimeMs < options.now - UNNAMED_MILLIS)
    await rmdir(folder).catch(() => {})
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
  named: ReadonlySet<string>,
  options: LakeSweep,
  report: Report,
): Promise<void> {
  const queryFolder = join(chain.folder, DATA_FOLDER, queryId)
  for (const attempt of await names(queryFolder)) {
    for (const file of await names(join(queryFolder, attempt))) {
      const path = join(queryFolder, attempt, file)
      if (named.has(relative(chain.location, path))) continue
      const { mtimeMs } = await stat(path)
      if (mtimeMs < options.now - UNNAMED_MILLIS) await remove(path, report)
    }
    await rmdir(join(queryFolder, attempt)).catch(() => {})
  }
  await rmdir(queryFolder).catch(() => {})
}

/** Removes old versions, after the files that only they name, so that an interrupted sweep can be repeated. */
async function sweepManifests(folder: string, versions: readonly Manifest[], options: LakeSweep): Promise<void> {
  for (const { version } of split(versions, options).swept) await rm(versionPath(folder, version), { force: true })
  for (const name of await names(join(folder, MANIFEST_FOLDER))) {
    if (!name.startsWith('.')) continue
    const path = join(folder, MANIFEST_FOLDER, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }))
    if (mtimeMs < options.now - UNNAMED_MILLIS) await rm(path, { force: true })
  }
}

/**
 * Splits versions into kept and swept. A query that begins within `keptMillis` after the next version was made may read
 * a version. The sweep keeps the version until neither an open query nor a new query may read it.
 */
function split(
  versions: readonly Manifest[],
  { now, oldestOpenQuery = Infinity, keptMillis }: LakeSweep,
): { readonly kept: readonly Manifest[]; readonly swept: readonly Manifest[] } {
  const before = Math.min(now, oldestOpenQuery) - keptMillis - CLOCKS_MILLIS
  const isKept = (index: number): boolean => (versions[index + 1]?.time ?? Infinity) >= before
  return {
    kept: versions.filter((_, index) => isKept(index)),
    swept: versions.filter((_, index) => !isKept(index)),
  }
}

async function loadVersions(chain: Chain): Promise<readonly Manifest[]> {
  const manifests: Manifest[] = []
  for (const version of await listVersions(chain.folder)) {
    const manifest = await readVersion(chain, version)
    if (manifest) manifests.push(manifest)
  }
  return manifests
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
