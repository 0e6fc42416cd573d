import type { Config } from '../../config/load-config.ts'
import { PERIOD_RECORDS } from '../../events/archive/manifest.ts'
import type { ArchivePolicy } from '../../readmodels/archive/period-end.ts'

const DAY_MS = 24 * 3_600_000

/** The policy that the settings ask for; undefined: nothing leaves the log. */
export function archivePolicyOf({ timeouts, limits }: Config): ((now: number) => ArchivePolicy) | undefined {
  const { archiveAfterMs } = timeouts
  const { logRecords } = limits
  if (archiveAfterMs === undefined && logRecords === undefined) return undefined
  const tenth = logRecords === undefined ? PERIOD_RECORDS : BigInt(Math.ceil(logRecords / 10))
  return (now) => ({
    before: archiveAfterMs === undefined ? undefined : new Date(now - archiveAfterMs).toISOString(),
    keepRecords: logRecords === undefined ? undefined : BigInt(logRecords),
    mostRecords: PERIOD_RECORDS,
    // Enough records, so that not every minute makes a new period.
    leastRecords: tenth < PERIOD_RECORDS ? tenth : PERIOD_RECORDS,
    leastMs: Math.min(DAY_MS, (archiveAfterMs ?? Infinity) / 4),
  })
}
