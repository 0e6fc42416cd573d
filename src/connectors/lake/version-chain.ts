import { randomUUID } from 'node:crypto'
import { closeSync, fstatSync, type BigIntStats } from 'node:fs'
import { link, readdir, stat, unlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileMode, makeFolderLikeParent } from './inherited-modes.ts'
import type { TextTest } from './column-search.ts'
import { unreadable, type Manifest } from './manifest.ts'
import { keepWritten, manifestAt } from './kept-manifests.ts'
import { openFile, setFileMode, syncFile, writeWhole } from './open-files.ts'
import { hasCode } from '../../shared/node-error.ts'

/** The folder of manifests, in the folder of a schema, table or view. */
export const MANIFEST_FOLDER = '_manifest'
const VERSION = /^v(\d{8,})\.json$/

/** The steps of a commit; tests stop and kill a committer at each. */
export type CommitStep =
  | 'read'
  | 'beforeWrite'
  | 'beforeSync'
  | 'beforeLink'
  | 'afterLink'
  | 'beforeFolderSync'
  | 'afterFolderSync'
export type OnStep = (step: CommitStep, version: number) => void | Promise<void>

/** The existing versions, ascending. */
export async function listVersions(folder: string): Promise<readonly number[]> {
  const names = await readdir(join(folder, MANIFEST_FOLDER)).catch((error: Error) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  })
  return names
    .map((name) => VERSION.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .sort((a, b) => a - b)
}

/** A folder of manifests: the folder of a schema, table or view, absolute, in the location of its catalog. */
export interface Chain {
  readonly location: string
  readonly folder: string
}

/**
 * The newest version; undefined for a folder without versions.
 * @param wanted a text that this rejects is not parsed: the result is 'refused'
 */
export async function readNewest(chain: Chain): Promise<Manifest | undefined>
export async function readNewest(chain: Chain, wanted?: TextTest): Promise<Manifest | 'refused' | undefined>
export async function readNewest(chain: Chain, wanted?: TextTest): Promise<Manifest | 'refused' | undefined> {
  for (let missed = 0; ;) {
    const newest = (await listVersions(chain.folder)).at(-1)
    if (newest === undefined) return undefined
    const path = versionPath(chain.folder, newest)
    // The path is a broken link, or the disk gives inconsistent answers.
    if (newest === missed) throw unreadable(path)
    const manifest = await manifestAt(path, relativeFolder(chain), wanted)
    if (manifest) return manifest
    // A sweep removed it after the listing, so there are newer versions.
    missed = newest
  }
}

/** One version; undefined when it never existed or was swept. */
export async function readVersion(chain: Chain, version: number): Promise<Manifest | undefined> {
  return manifestAt(versionPath(chain.folder, version), relativeFolder(chain))
}

/** The folder, relative to the location. */
export function relativeFolder({ location, folder }: Chain): string {
  return relative(location, folder)
}

/**
 * Creates a version, unless it exists. The file is written under another name, made durable, and then linked to its own
 * name. `link` fails if the name exists, so a version is complete or does not exist.
 * @param isFirst whether the folder may have no versions yet. The first version also makes its folders durable
 * @returns false when another committer has created the version
 */
export async function createVersion(
  chain: Chain,
  manifest: Manifest,
  { isFirst, onStep = () => {} }: { readonly isFirst: boolean; readonly onStep?: OnStep | undefined },
): Promise<boolean> {
  const { version } = manifest
  const manifests = join(chain.folder, MANIFEST_FOLDER)
  if (isFirst) await makeFolder(manifests)
  const temporary = join(manifests, `.v${version}-${randomUUID()}.tmp`)
  const path = versionPath(chain.folder, version)
  await onStep('beforeWrite', version)
  let written: BigIntStats
  try {
    const file = await openFile(temporary, 'wx', 0o600)
    try {
      await setFileMode(file, fileMode(await stat(manifests)))
      await writeWhole(file, `${JSON.stringify(manifest)}\n`)
      await onStep('beforeSync', version)
      await syncFile(file)
      written = fstatSync(file, { bigint: true })
    } finally {
      closeSync(file)
    }
    await onStep('beforeLink', version)
    try {
      await link(temporary, path)
    } catch (error) {
      if (hasCode(error, 'EEXIST')) return false
      throw error
    }
    await onStep('afterLink', version)
  } finally {
    await unlink(temporary).catch(() => {})
  }
  await onStep('beforeFolderSync', version)
  await syncFolder(manifests)
  await onStep('afterFolderSync', version)
  keepWritten(path, relativeFolder(chain), written, manifest)
  return true
}

export function versionPath(folder: string, version: number): string {
  return join(folder, MANIFEST_FOLDER, `v${String(version).padStart(8, '0')}.json`)
}

/** Makes a folder in an existing folder, durably. */
export async function makeFolder(folder: string): Promise<void> {
  await makeFolderLikeParent(folder)
  // Also if the folder existed: the process that made it may have died before syncing it, and its content must not be
  // lost with its name.
  await syncFolder(dirname(folder))
}

/** Makes a folder's entries durable. */
export async function syncFolder(folder: string): Promise<void> {
  const file = await openFile(folder, 'r')
  try {
    await syncFile(file)
  } finally {
    closeSync(file)
  }
}
