import { z } from 'zod'
import { systemEventSchemas } from '../../coordinator/system/events.ts'
import type { AuditRecord } from '../../readmodels/audit/audit-record.ts'

/** The most kinds of findings in a report. */
const MOST_KINDS = 100

/** The result of an audit, as the command that ran it reports it. */
export const auditReportSchema = systemEventSchemas.LogVerified.omit({ remoteAddress: true }).extend({
  by: z.string().min(1).max(200),
  findings: systemEventSchemas.LogVerified.shape.findings.refine(
    (findings) => Object.keys(findings).length <= MOST_KINDS,
    `Has more than ${MOST_KINDS} kinds`,
  ),
})
export type AuditReport = Readonly<z.infer<typeof auditReportSchema>>

const time = z.iso.datetime({ offset: true })

/** The body of `GET /v1/audit`. */
export const auditInfoSchema = z.looseObject({
  logId: z.string().describe('Id of the event log'),
  audits: z
    .array(systemEventSchemas.LogVerified.extend({ time }))
    .describe('Audits that ran while a coordinator wrote the log, the last one first; at most 20'),
  anchors: z
    .array(
      z.looseObject({
        number: z.int().min(1).describe('Number of the anchor in this log'),
        time,
        heads: z.int().min(0).describe('Streams that changed since the anchor before'),
        events: z.int().min(0).describe('Valid events below the anchor'),
        key: z.string().describe('Fingerprint of the key that signed it'),
      }),
    )
    .describe('The last anchors of this log, the newest first; at most 20'),
  keys: z
    .array(
      z.looseObject({
        key: z.string().describe('Fingerprint of the key'),
        signedBy: z.string().describe('Fingerprint of the key that introduced it; equal to `key` for the first'),
      }),
    )
    .describe('Keys that the log introduces, in the order of the log'),
})
export type AuditInfo = z.infer<typeof auditInfoSchema>

/** Makes the body of `GET /v1/audit`. */
export function auditInfo({ audits, anchors, keys }: AuditRecord, logId: string): AuditInfo {
  return {
    logId,
    audits: audits.map(({ time: at, report }) => ({ time: at, ...report })),
    anchors: anchors.map(({ time: at, anchor: { number, heads, key, at: positions } }) => ({
      number,
      time: at,
      heads,
      events: positions.reduce((sum, { count }) => sum + count, 0),
      key,
    })),
    keys: keys.map(({ key, signedBy }) => ({ key, signedBy })),
  }
}
