import type { VerifyOptions } from './verify-options.ts'
import { AnchorChecks } from '../../events/audit/anchor-checks.ts'
import { auditLog } from '../../events/audit/audit-log.ts'
import { EncryptedData } from '../../events/audit/encrypted-data.ts'
import type { Finding } from '../../events/audit/finding.ts'
import { LogChanged } from '../../events/event-log.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import { compareReadModels, readModelCheckpoint } from './compare-read-models.ts'
import { hasOlderTables } from '../older-tables.ts'
import { QueryEndings } from './query-endings.ts'
import { recordedAnchors } from './recorded-anchors.ts'
import { archivedPeriods, verifyBefore } from './verify-before.ts'

/** The result of an audit. */
export interface AuditSummary {
  readonly findings: number
  readonly records: number
  /** Number of events that count. */
  readonly events: number
  readonly queries: number
  /** Queries with events of the newest epoch and without an end. */
  readonly open: number
  /** Number of tables compared with the log. */
  readonly tables: number
  readonly anchors: number
  /** Number of archived periods whose files were read. */
  readonly periods: number
  /** Number of anchors whose signature was verified; 0 without a key. */
  readonly signatures: number
}

/**
 * Checks that the log is unaltered, that each query ended once, and that the read models match the log.
 * @throws LogUnavailable
 */
export async function verifyLog(options: VerifyOptions): Promise<AuditSummary> {
  const { store, partitions, database, compareWith } = options
  let findings = 0
  const onFinding = (finding: Finding): void => {
    findings++
    options.onFinding(finding)
  }
  // Read before the log's end, so that it cannot be beyond that end.
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
    // When a damaged file was already reported, the failure to read it is no error of the audit.
    if (findings === 0) throw unreadable
    onFinding({ kind: 'archive', what: 'The archive cannot be read: the log and the read models were not checked' })
    return { findings, records: 0, events: 0, queries: 0, open: 0, tables: 0, periods, anchors: 0, signatures: 0 }
  }
  const { anchors: recorded, keys: keyRecords, logId, continued } = found
  const endings = new QueryEndings(onFinding)
  const before = await verifyBefore({ ...withFindings, endings }, continued)
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
      endings.take(event, data.take(event))
      anchors.event(event.partition, event)
    },
    onPosition: (partition, offset, state) => anchors.checkPosition(partition, offset, state),
  })
  anchors.finish()
  const { queries, open } = endings.finish(epoch)
  let tables = 0
  // Rows of an earlier version are about to be rebuilt: they need not match this version.
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
