import type { KeyObject } from 'node:crypto'
import type pg from 'pg'
import type { ExportedAnchor } from '../../events/audit/anchor.ts'
import { AnchorChecks } from '../../events/audit/anchor-checks.ts'
import { auditLog } from '../../events/audit/audit-log.ts'
import { EncryptedData, type AuditedKeys } from '../../events/audit/encrypted-data.ts'
import type { Finding } from '../../events/audit/finding.ts'
import { LogChanged, type EventReader } from '../../events/event-log.ts'
import type { RecordStore } from '../../events/record-store.ts'
import { compareReadModels, readModelCheckpoint } from './compare-read-models.ts'
import { QueryEnds } from './query-ends.ts'
import { recordedAnchors } from './recorded-anchors.ts'

export interface VerifyOptions {
  /** Opened. */
  readonly store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag'>
  readonly partitions: number
  /** Where the read models are; migrated. */
  readonly database: pg.ClientConfig
  /** Anchors that left the system: the log must be what they signed. */
  readonly exported?: readonly ExportedAnchor[]
  /** Whose signatures are believed; without them those of the exported anchors. */
  readonly keys?: readonly KeyObject[]
  /** Of data that is encrypted; without them it is not looked into. */
  readonly dataKeys?: AuditedKeys
  /** To compare the read models with; they are not, without it. */
  readonly compareWith?: EventReader
  readonly onFinding: (finding: Finding) => void
}

/** What an audit came to. */
export interface AuditSummary {
  readonly findings: number
  readonly records: number
  /** Those that count. */
  readonly events: number
  readonly queries: number
  /** Queries that the newest epoch has written of and not ended. */
  readonly open: number
  /** Tables compared with the log. */
  readonly tables: number
  readonly anchors: number
  /** Anchors whose signature was verified: none without a key. */
  readonly signatures: number
}

/**
 * Whether the log is as it was written, each query ended once, and the read models what the log makes of them.
 * @throws LogUnavailable
 */
export async function verifyLog(options: VerifyOptions): Promise<AuditSummary> {
  const { store, partitions, database, compareWith } = options
  let findings = 0
  const onFinding = (finding: Finding): void => {
    findings++
    options.onFinding(finding)
  }
  // Read before the end of the log is: it cannot have read more than there is then.
  const checkpoint = await readModelCheckpoint(database)
  const { anchors: recorded, logId } = await recordedAnchors(store, partitions)
  const { exported, keys } = options
  const anchors = new AnchorChecks({
    logId,
    partitions,
    recorded,
    ...(exported && { exported }),
    ...(keys && { keys }),
    onFinding,
  })
  const ends = new QueryEnds(onFinding)
  const data = new EncryptedData(options.dataKeys, onFinding)
  const { records, events, epoch } = await auditLog({
    store,
    partitions,
    checkpoints: checkpoint ? [{ name: 'the projection', checkpoint }] : [],
    onFinding,
    onEvent: (event) => {
      ends.take(event, data.take(event))
      anchors.event(event.partition, event)
    },
    onPlace: (partition, offset, state) => anchors.place(partition, offset, state),
  })
  anchors.finish()
  const { queries, open } = ends.finish(epoch)
  let tables = 0
  if (compareWith && checkpoint) {
    try {
      tables = await compareReadModels(compareWith, database, onFinding)
    } catch (error) {
      if (!(error instanceof LogChanged)) throw error
      onFinding({ kind: 'read-model', what: `The log cannot be folded to compare: ${error.message}` })
    }
  }
  return { findings, records, events, queries, open, tables, anchors: anchors.count, signatures: anchors.signed }
}
