import type { KeyObject } from 'node:crypto'
import type pg from 'pg'
import type { ExportedAnchor } from '../../events/audit/anchor.ts'
import type { Archive } from '../../events/archive/archive.ts'
import { AnchorChecks } from '../../events/audit/anchor-checks.ts'
import { auditLog } from '../../events/audit/audit-log.ts'
import { EncryptedData, type AuditedKeys } from '../../events/audit/encrypted-data.ts'
import type { Finding } from '../../events/audit/finding.ts'
import { LogChanged, type EventReader } from '../../events/event-log.ts'
import type { RecordStore } from '../../events/record-store.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import { compareReadModels, readModelCheckpoint } from './compare-read-models.ts'
import { hasOlderTables } from '../older-tables.ts'
import { QueryEnds } from './query-ends.ts'
import { recordedAnchors } from './recorded-anchors.ts'
import { archivedPeriods, verifyBefore } from './verify-before.ts'

export interface VerifyOptions {
  /** Opened. */
  readonly store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag' | 'start'>
  readonly partitions: number
  /** Where the read models are; migrated. */
  readonly database: pg.ClientConfig
  /** Anchors that left the system: the log must be what they signed. */
  readonly exported?: readonly ExportedAnchor[]
  /** Keys that are trusted; without them those of the exported anchors, else the log's first. */
  readonly keys?: readonly KeyObject[]
  /** Of data that is encrypted; without them it is not looked into. */
  readonly dataKeys?: AuditedKeys
  /** To compare the read models with; they are not, without it. */
  readonly compareWith?: EventReader
  /** Where records lie that have left the log, by the log's id. */
  readonly archiveOf?: (logId: string) => Archive
  /** Where queries lie that have left the read models, by the log's id. */
  readonly queriesFolderOf?: (logId: string) => string
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
  /** Periods of the archive whose files were read. */
  readonly periods: number
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
  const { exported, keys } = options
  const withFindings = { ...options, onFinding }
  const begun = (await store.start?.())?.logId
  let unreadable: QuipuError | undefined
  const found = await recordedAnchors(store, partitions).catch((error: unknown) => {
    if (!(error instanceof QuipuError)) throw error
    unreadable = error
    return undefined
  })
  const archived = begun ?? found?.logId ?? ''
  const periods = archived === '' ? 0 : await archivedPeriods(withFindings, archived, found?.keys ?? [])
  if (!found) {
    // Whoever cannot read a damaged file has found something all the same.
    if (findings === 0) throw unreadable
    onFinding({ kind: 'archive', what: 'What it should hold cannot be read: log and read models were not looked at' })
    return { findings, records: 0, events: 0, queries: 0, open: 0, tables: 0, periods, anchors: 0, signatures: 0 }
  }
  const { anchors: recorded, keys: keyRecords, logId, continued } = found
  const ends = new QueryEnds(onFinding)
  const before = await verifyBefore({ ...withFindings, queryEnds: ends }, continued)
  const anchors = new AnchorChecks({
    logId,
    partitions,
    recorded,
    keyRecords,
    ...(exported && { exported: exported.filter((anchor) => !before.logIds.has(anchor.logId)) }),
    ...(keys && { keys }),
    onFinding,
  })
  const data = new EncryptedData(options.dataKeys, onFinding)
  const { records, events, epoch } = await auditLog({
    store,
    partitions,
    heads: before.heads,
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
  // Rows of an earlier version are about to be made anew: they need not be what this version makes of the log.
  if (compareWith && checkpoint && !(await hasOlderTables(database))) {
    try {
      tables = await compareReadModels(compareWith, database, {
        onFinding,
        before: before.logs,
        queriesFolder: options.queriesFolderOf?.(logId),
      })
    } catch (error) {
      if (!(error instanceof LogChanged)) throw error
      onFinding({ kind: 'read-model', what: `The log cannot be folded to compare: ${error.message}` })
    }
  }
  const { count, signed } = anchors
  return {
    findings,
    records: before.records + records,
    events: before.events + events,
    queries,
    open,
    tables,
    periods: periods + before.periods,
    anchors: before.anchors + count,
    signatures: before.signatures + signed,
  }
}
