import type pg from 'pg'
import { auditLog } from '../../events/audit/audit-log.ts'
import type { Finding } from '../../events/audit/finding.ts'
import { LogChanged, type EventLog } from '../../events/event-log.ts'
import type { RecordStore } from '../../events/record-store.ts'
import { compareReadModels, readModelCheckpoint } from './compare-read-models.ts'
import { QueryEnds } from './query-ends.ts'

export interface VerifyOptions {
  /** Opened. */
  readonly store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag'>
  readonly partitions: number
  /** Where the read models are; migrated. */
  readonly database: pg.ClientConfig
  /** To compare the read models with; they are not, without it. */
  readonly compareWith?: Pick<EventLog, 'read'>
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
  const ends = new QueryEnds(onFinding)
  const { records, events, epoch } = await auditLog({
    store,
    partitions,
    checkpoints: checkpoint ? [{ name: 'the projection', checkpoint }] : [],
    onFinding,
    onEvent: (event) => ends.take(event),
  })
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
  return { findings, records, events, queries, open, tables }
}
