import { randomUUID } from 'node:crypto'
import { link, open, readdir, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileMode, makeFolderLikeParent } from './inherited-modes.ts'
import type { TextTest } from './column-search.ts'
import { unreadable, type Manifest } from './manifest.ts'
import { manifestAt } from './kept-manifests.ts'
import { hasCode } from '../../shared/node-error.ts'

/** Manifests of a schema, table or view lie here, below its folder. */
export const MANIFEST_FOLDER = '_manifest'
const VERSION = /^v(\d{8,})\.json$/

/** Where a committer is; tests stop and kill it there. */
export type CommitStep =
  'read' | 'beforeWrite' | 'beforeSync' | 'beforeLink' | 'afterLink' | 'beforeFolderSync' | 'afterFolderSync'
export type OnStep = (step: CommitStep, version: number) => void | Promise<void>

/** The versions that are there, ascending. */
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

/**
 * The newest version; undefined for a folder without any.
 * @param wanted a text that it refuses is not parsed: 'refused'
 */
export async function readNewest(folder: string): Promise<Manifest | undefined>
export async function readNewest(folder: string, wanted?: TextTest): Promise<Manifest | 'refused' | undefined>
export async function readNewest(folder: string, wanted?: TextTest): Promise<Manifest | 'refused' | undefined> {
  for (let missed = 0; ;) {
    const newest = (await listVersions(folder)).at(-1)
    if (newest === undefined) return undefined
    const path = versionPath(folder, newest)
    // A link that leads nowhere, or a disk that tells two things.
    if (newest === missed) throw unreadable(path)
    const manifest = await manifestAt(path, wanted)
    if (manifest) return manifest
    // Swept between the two: newer ones are there.
    missed = newest
  }
}

/** One version; undefined when it never was or is swept. */
export async function readVersion(folder: string, version: number): Promise<Manifest | undefined> {
  return manifestAt(versionPath(folder, version))
}

/**
 * Creates a version if nobody has: written under another name, made durable, then given its own name by `link`, which
 * fails when there is one; so a version is there whole or not at all. False when somebody else's is there.
 */
export async function createVersion(folder: string, manifest: Manifest, onStep: OnStep = () => {}): Promise<boolean> {
  const { version } = manifest
  const manifests = join(folder, MANIFEST_FOLDER)
  await makeFolder(manifests)
  const temporary = join(manifests, `.v${version}-${randomUUID()}.tmp`)
  await onStep('beforeWrite', version)
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.chmod(fileMode(await stat(manifests)))
      await file.writeFile(`${JSON.stringify(manifest)}\n`)
      await onStep('beforeSync', version)
      await file.sync()
    } finally {
      await file.close()
    }
    await onStep('beforeLink', version)
    try {
      await link(temporary, versionPath(folder, version))
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
  return true
}

export function versionPath(folder: string, version: number): string {
  return join(folder, MANIFEST_FOLDER, `v${String(version).padStart(8, '0')}.json`)
}

/** Makes one folder durable below a folder that is there. */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await makeFolderLikeParent(folder)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    // Whoever made it may have died before this: what is put into it must not be lost with its name.
  }
  await syncFolder(dirname(folder))
}

/** A folder's entries are durable once it is synced itself. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
