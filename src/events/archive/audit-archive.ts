import type { KeyObject } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { believes, fingerprint, type ExportedAnchor } from '../audit/anchor.ts'
import type { Finding } from '../audit/finding.ts'
import { ArchiveDamaged } from './archived-records.ts'
import { checkArchived, type ArchivePeriods } from './archiver.ts'

import type { PeriodManifest } from './manifest.ts'

const DELETED_WITHIN_MS = 1000

export interface AuditArchiveOptions {
  readonly archive: ArchivePeriods
  readonly canEnd: (stream: string) => boolean
  /** Keys that are known; undefined: an anchor must be signed by the key that it names. */
  readonly keys: readonly KeyObject[] | undefined
  readonly onFinding: (finding: Finding) => void
}

/**
 * Reads every file of an archive, also files whose records are still in the log. The audit of the log checks the
 * records themselves.
 * @returns the number of periods
 * @throws LogUnavailable
 */
export async function auditArchive(options: AuditArchiveOptions): Promise<number> {
  const { archive, canEnd, onFinding } = options
  const known = options.keys && new Set(options.keys.map(fingerprint))
  const byKnown = believes(options.keys)
  const byAnyKey = believes(undefined)
  const unknown = new Set<string>()
  const isBelieved = (anchor: ExportedAnchor): boolean => {
    if (!known || known.has(anchor.key)) return byKnown(anchor)
    if (!unknown.has(anchor.key))
      onFinding({
        kind: 'unknown-key',
        what: `An archived period ends with anchor ${anchor.number}, which was signed with an unknown key: ${anchor.key}`,
      })
    unknown.add(anchor.key)
    return byAnyKey(anchor)
  }
  let checked = 0
  try {
    for (const manifest of await archive.reread()) {
      checked++
      await checkArchived(archive, manifest, { canEnd, isBelieved }).catch(report)
      for (const name of await left(archive, manifest))
        onFinding({
          kind: 'archive',
          what: `Period ${manifest.number}: ${name} was replaced, but the old file is still there`,
        })
    }
  } catch (error) {
    report(error)
  }
  return checked

  function report(error: unknown): void {
    if (!(error instanceof ArchiveDamaged)) throw error
    onFinding({ kind: 'archive', what: error.message })
  }
}

/** Replaced files that stay. A process may be about to delete such a file, so this looks twice. */
async function left(archive: ArchivePeriods, period: PeriodManifest): Promise<readonly string[]> {
  const seen = await archive.replacedIn(period)
  if (seen.length === 0) return []
  await sleep(DELETED_WITHIN_MS)
  const still = new Set(await archive.replacedIn(period))
  return seen.filter((name) => still.has(name))
}
