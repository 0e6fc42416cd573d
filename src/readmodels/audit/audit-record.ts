import type { z } from 'zod'
import { systemEventSchemas } from '../../coordinator/system/events.ts'
import type { AnchorKeyRecord } from '../../events/audit/anchor-keys.ts'
import type { QueryRows } from '../../events/projection.ts'
import { readAnchorKeys, readLastAnchors, type StoredAnchor } from './queries.ts'

/** The audits, anchors and keys that the log has. */
export interface AuditRecord {
  /** The last one first. */
  readonly audits: readonly { readonly time: string; readonly report: z.infer<typeof systemEventSchemas.LogVerified> }[]
  /** The newest first. */
  readonly anchors: readonly StoredAnchor[]
  readonly keys: readonly AnchorKeyRecord[]
}

/** The most audits and anchors of an answer. */
const MOST = 20

/** Reads the last audits, anchors and the keys of a log; wait for a barrier first. */
export async function readAuditRecord(query: QueryRows, logId: string): Promise<AuditRecord> {
  const audits = await query(
    `select at, details from audit_log where kind = 'LogVerified' order by at desc, sequence desc limit ${MOST}`,
    [],
  )
  return {
    audits: audits.map(({ at, details }) => ({
      time: (at as Date).toISOString(),
      report: systemEventSchemas.LogVerified.parse(details),
    })),
    anchors: await readLastAnchors(query, logId, MOST),
    keys: await readAnchorKeys(query, logId),
  }
}
