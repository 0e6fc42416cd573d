import { believes, type ExportedAnchor } from '../audit/anchor.ts'
import type { RecordDropper, RecordStore } from '../record-store.ts'
import { manifestText, type Archive } from './archive.ts'
import { ArchiveDamaged } from './archived-records.ts'
import { checkPeriod, type PeriodBefore, type PeriodCheck } from './check-period.ts'
import { comparePeriod, dropPeriod } from './drop-period.ts'
import type { PeriodManifest } from './manifest.ts'
import { writePeriod } from './write-period.ts'

export interface ArchiverDeps {
  /** Must be open. */
  readonly store: Pick<RecordStore, 'fetch' | 'start' | 'forget' | 'cipher'>
  readonly archive: Archive
  /** Whether a stream can end: streams of queries do. */
  readonly canEnd: (stream: string) => boolean
}

export interface DropperDeps extends ArchiverDeps {
  readonly dropper: RecordDropper
  /** Epoch of this process, which writes the log. */
  readonly epoch: number
  /** Records an event about a period unless the log already has it; resolves when the event is valid. */
  readonly announce: (type: 'LogArchived' | 'LogDropped', period: PeriodManifest) => Promise<void>
}

/**
 * Archives the records between the last period and an anchor: copies them, reads the copy back, and only then publishes
 * it. When the process dies midway, the next attempt deletes the remains.
 * @throws ArchiveDamaged | LogUnavailable
 */
export async function archivePeriod(deps: ArchiverDeps, anchor: ExportedAnchor): Promise<PeriodManifest> {
  const { archive, canEnd } = deps
  const { folder, manifest } = await writePeriod({ ...deps, anchor })
  try {
    const before = await periodBefore(archive, manifest.number)
    await checkPeriod({ folder, manifest, before, canEnd, isBelieved })
    return await archive.publish(folder, manifest)
  } catch (error) {
    await archive.discard(folder)
    throw error
  }
}

/**
 * Drops archived records from the log, period by period. Reads each period back again and compares it with the log byte
 * for byte, then records this in the log, and only then drops the records. It may be interrupted anywhere: the next
 * call continues.
 * @returns the periods whose records left the log now
 * @throws ArchiveDamaged nothing more is dropped
 * @throws Fenced | LogUnavailable
 */
export async function dropArchived(deps: DropperDeps): Promise<readonly PeriodManifest[]> {
  const { store, archive, canEnd, announce } = deps
  const dropped: PeriodManifest[] = []
  const isDue = await dueIn(store)
  if (!(await archive.periods()).some(isDue)) return []
  // Reads the manifests from the disk: this process's memory may be outdated.
  for (const period of (await archive.reread()).filter(isDue)) {
    const manifest = await checkArchived(archive, period, { canEnd, isBelieved })
    await comparePeriod(deps, manifest)
    await announce('LogArchived', manifest)
    await announce('LogDropped', manifest)
    await dropPeriod(deps, manifest)
    dropped.push(manifest)
  }
  return dropped
}

/**
 * The log itself has the anchor, so a signature by the key that the anchor names is enough here. An audit knows which
 * keys to believe.
 */
const isBelieved = believes(undefined)

/** Whether a period has records that are still in the log. */
async function dueIn(store: ArchiverDeps['store']): Promise<(period: PeriodManifest) => boolean> {
  const start = await store.start?.()
  return ({ to }) => to.some(({ offset }, partition) => BigInt(offset) > (start?.at[partition]?.offset ?? 0n))
}

export type ArchivePeriods = Pick<Archive, 'periods' | 'reread' | 'heads' | 'folderOf' | 'replacedIn'>

/**
 * Runs `checkPeriod` on a published period. When data is forgotten meanwhile, checks the new files.
 * @returns the manifest as it is now
 * @throws ArchiveDamaged | LogUnavailable
 */
export async function checkArchived(
  archive: ArchivePeriods,
  period: PeriodManifest,
  known: Pick<PeriodCheck, 'canEnd' | 'isBelieved'>,
): Promise<PeriodManifest> {
  const { number } = period
  for (let manifest = period; ;) {
    try {
      const before = await periodBefore(archive, number)
      await checkPeriod({ folder: archive.folderOf(manifest), manifest, before, ...known })
      return manifest
    } catch (error) {
      const now = error instanceof ArchiveDamaged ? (await archive.reread())[number - 1] : undefined
      if (!now || manifestText(now) === manifestText(manifest)) throw error
      manifest = now
    }
  }
}

async function periodBefore(archive: ArchivePeriods, number: number): Promise<PeriodBefore | undefined> {
  const manifest = (await archive.periods())[number - 2]
  return manifest && { manifest, heads: await archive.heads(manifest) }
}
