import type { FindingKind } from '../../events/audit/finding.ts'
import type { QueryRows } from '../../events/projection.ts'
import { readAuditRuns } from './audit-runs.ts'
import type { Meters } from '../../telemetry/meters.ts'

/**
 * Reports before each scrape the new findings of audits, which run as separate programs.
 * @param counted findings that this process has already counted
 */
export function observeAudits(read: QueryRows, meters: Meters, counted: Map<FindingKind, number>): void {
  meters.onScrape(async () => {
    const { cleanAt, findings } = await readAuditRuns(read)
    if (cleanAt !== undefined) meters.set('auditVerifiedTimestamp', {}, cleanAt)
    for (const { kind, count } of findings) {
      const more = count - (counted.get(kind) ?? 0)
      if (more > 0) meters.count('auditFindings', { kind }, more)
      counted.set(kind, count)
    }
  })
}
