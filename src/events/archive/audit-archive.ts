import type { KeyObject } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { believes } from '../audit/anchor.ts'
import type { Finding } from '../audit/finding.ts'
import { ArchiveDamaged } from './archived-records.ts'
import { checkArchived, type ArchivePeriods } from './archiver.ts'

import type { PeriodManifest } from './manifest.ts'

const DELETED_WITHIN_MS = 1000

export interface AuditArchiveOptions {
  readonly archive: ArchivePeriods
  readonly ends: (stream: string) => boolean
  /** Whose signatures are believed; undefined: any that is by the key it names. */
  readonly keys: readonly KeyObject[] | undefined
  readonly onFinding: (finding: Finding) => void
}

/**
 * Reads every file of an archive, those too whose records are still in the log. The walk of an audit goes over what is in them.
 * @returns the periods
 * @throws LogUnavailable
 */
export async function auditArchive(options: AuditArchiveOptions): Promise<number> {
  const { archive, ends, onFinding } = options
  const isBelieved = believes(options.keys)
  let checked = 0
  try {
    for (const manifest of await archive.reread()) {
      checked++
      await checkArchived(archive, manifest, { ends, isBelieved }).catch(tell)
      for (const name of await left(archive, manifest))
        onFinding({
          kind: 'archive',
          what: `Period ${manifest.number}: ${name} is a file that was replaced, and is there`,
        })
    }
  } catch (error) {
    tell(error)
  }
  return checked

  function tell(error: unknown): void {
    if (!(error instanceof ArchiveDamaged)) throw error
    onFinding({ kind: 'archive', what: error.message })
  }
}

/** Replaced files that stay: somebody may be about to delete one. */
async function left(archive: ArchivePeriods, period: PeriodManifest): Promise<readonly string[]> {
  const seen = await archive.replacedIn(period)
  if (seen.length === 0) return []
  await sleep(DELETED_WITHIN_MS)
  const still = new Set(await archive.replacedIn(period))
  return seen.filter((name) => still.has(name))
}
