import type { FindingKind } from '../../events/audit/finding.ts'
import type { QueryRows } from '../../events/projection.ts'
import { readAuditRuns } from './audit-runs.ts'
import type { Meters } from '../../telemetry/meters.ts'

/**
 * Before each scrape: what audits, which are programs of their own, have found since.
 * @param counted what this process has counted already
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
