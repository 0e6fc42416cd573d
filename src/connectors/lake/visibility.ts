/**
 * Decides which name of a renamed object readers see, so that all readers see the rename at one instant. A rename first
 * writes the manifest of the new name. The manifest names the commit that makes it visible: that under the old name.
 */
import { join } from 'node:path'
import { committedVersion, REMEMBERED_COUNT, type Instant, type Manifest, type ManifestContent } from './manifest.ts'
import { readNewest } from './version-chain.ts'

/** The newest manifest of a folder that is given relative to the location. */
export type NewestOf = (folder: string) => Promise<Manifest | undefined>

export function newestIn(location: string): NewestOf {
  return (folder) => readNewest({ location, folder: join(location, folder) })
}

/** The content as readers see it: an object that is not there yet, or not any more, is `dropped`. */
export async function visibleContent(content: ManifestContent, newestOf: NewestOf): Promise<ManifestContent> {
  const since = 'since' in content ? content.since : undefined
  const until = 'until' in content ? content.until : undefined
  if (since && !(await isPassed(since, newestOf))) return { kind: 'dropped' }
  if (until && (await isPassed(until, newestOf))) return { kind: 'dropped' }
  return content
}

async function isPassed({ folder, version, queryId }: Instant, newestOf: NewestOf): Promise<boolean> {
  const newest = await newestOf(folder)
  // Somebody removed the folder of the old name.
  if (!newest) return version > 0
  // A manifest lists its last commits. If the query is not among them, it has not committed, or did so long ago: then
  // the version is much higher.
  return committedVersion(newest, queryId) !== undefined || newest.version > version + REMEMBERED_COUNT
}
