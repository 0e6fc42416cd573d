import { believes, type ExportedAnchor } from '../audit/anchor.ts'
import type { RecordDropper, RecordStore } from '../record-store.ts'
import { manifestText, type Archive } from './archive.ts'
import { ArchiveDamaged } from './archived-records.ts'
import { checkPeriod, type PeriodBefore, type PeriodCheck } from './check-period.ts'
import { comparePeriod, dropPeriod } from './drop-period.ts'
import type { PeriodManifest } from './manifest.ts'
import { writePeriod } from './write-period.ts'

export interface ArchiverParts {
  /** Opened. */
  readonly store: Pick<RecordStore, 'fetch' | 'start' | 'forget' | 'cipher'>
  readonly archive: Archive
  /** Whether a stream ends some day: that of a query. */
  readonly canEnd: (stream: string) => boolean
}

export interface DropperParts extends ArchiverParts {
  readonly dropper: RecordDropper
  /** Of this process, which writes the log. */
  readonly epoch: number
  /** Tells the log of a period what has not been told of it; resolves when that is valid. */
  readonly announce: (type: 'LogArchived' | 'LogDropped', period: PeriodManifest) => Promise<void>
}

/**
 * Archives what lies between the last period and an anchor: copied, read back, and only then put into its place. A process
 * that ends on the way leaves what the next attempt throws away.
 * @throws ArchiveDamaged | LogUnavailable
 */
export async function archivePeriod(parts: ArchiverParts, anchor: ExportedAnchor): Promise<PeriodManifest> {
  const { archive, canEnd } = parts
  const { folder, manifest } = await writePeriod({ ...parts, anchor })
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
 * Lets go of what is archived, period by period: each is read back again and compared with the log byte for byte, then the
 * log tells of it, and only then do its records leave. It may be cut off anywhere: the next call goes on.
 * @returns the periods whose records left the log now
 * @throws ArchiveDamaged nothing more is dropped
 * @throws Fenced | LogUnavailable
 */
export async function dropArchived(parts: DropperParts): Promise<readonly PeriodManifest[]> {
  const { store, archive, canEnd, announce } = parts
  const dropped: PeriodManifest[] = []
  const isDue = await dueIn(store)
  if (!(await archive.periods()).some(isDue)) return []
  // What is on the disk counts, and not what this process remembers of it.
  for (const period of (await archive.reread()).filter(isDue)) {
    const manifest = await checkArchived(archive, period, { canEnd, isBelieved })
    await comparePeriod(parts, manifest)
    await announce('LogArchived', manifest)
    await announce('LogDropped', manifest)
    await dropPeriod(parts, manifest)
    dropped.push(manifest)
  }
  return dropped
}

/** The log itself has the anchor: that it is by the key it names is enough here. An audit knows whom to believe. */
const isBelieved = believes(undefined)

/** Whether a period has records that are still in the log. */
async function dueIn(store: ArchiverParts['store']): Promise<(period: PeriodManifest) => boolean> {
  const start = await store.start?.()
  return ({ to }) => to.some(({ offset }, partition) => BigInt(offset) > (start?.at[partition]?.offset ?? 0n))
}

export type ArchivePeriods = Pick<Archive, 'periods' | 'reread' | 'heads' | 'folderOf' | 'replacedIn'>

/**
 * `checkPeriod` of one that is in its place. Data may be forgotten meanwhile: other files count then.
 * @returns it as it is there now
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
