import { ArchivedHistory, archivedStore } from '../../events/archive/archived-history.ts'
import { auditArchive } from '../../events/archive/audit-archive.ts'
import { auditLog } from '../../events/audit/audit-log.ts'
import { AnchorChecks } from '../../events/audit/anchor-checks.ts'
import { anchorHash, type ExportedAnchor } from '../../events/audit/anchor.ts'
import { followKeys, trustedKeys, type AnchorKeyRecord } from '../../events/audit/anchor-keys.ts'
import type { Finding } from '../../events/audit/finding.ts'
import type { EventReader, LogEnd } from '../../events/event-log.ts'
import type { StreamHead } from '../../events/record-store.ts'
import { isQueryId } from '../../shared/ids.ts'
import type { QueryEndings } from './query-endings.ts'
import { recordedAnchors, type RecordedAnchors } from './recorded-anchors.ts'
import type { VerifyOptions } from './verify-options.ts'

export interface VerifiedBefore {
  /** Last events of streams that never end; the next log continues them. */
  readonly heads: ReadonlyMap<string, StreamHead>
  /** The logs, the oldest first. */
  readonly logs: readonly (EventReader & LogEnd)[]
  readonly records: number
  readonly events: number
  readonly anchors: number
  readonly signatures: number
  /** Number of periods of their archives whose files were read. */
  readonly periods: number
  /** Ids of the logs. */
  readonly logIds: ReadonlySet<string>
}

const NONE: VerifiedBefore = {
  heads: new Map(),
  logs: [],
  records: 0,
  events: 0,
  anchors: 0,
  signatures: 0,
  periods: 0,
  logIds: new Set(),
}

/** Options for the audit of an archived log. */
export interface BeforeOptions extends Pick<VerifyOptions, 'archiveOf' | 'exported' | 'keys' | 'onFinding'> {
  readonly endings: QueryEndings
}

/**
 * Audits the log that another one continues, in its archive, and all logs before it. Checks the records up to the
 * anchor that LogContinued names. The archive's files are checked separately.
 * @throws LogUnavailable
 */
export async function verifyBefore(
  options: BeforeOptions,
  continued: RecordedAnchors['continued'],
): Promise<VerifiedBefore> {
  const { archiveOf, onFinding, endings } = options
  if (!continued || !archiveOf) return NONE
  const { logId, periods, anchor } = continued
  const find = (what: string): void => onFinding({ kind: 'archive', what } satisfies Finding)
  const archive = archiveOf(logId)
  const last = (await archive.reread())[periods - 1]
  if (!last || last.logId !== logId || anchorHash(last.anchor) !== continued.anchorHash) {
    find(
      `The archive of the earlier log ${logId} does not end with anchor ${anchor}, which the event LogContinued names`,
    )
    return NONE
  }
  const store = archivedStore(archive, last)
  const partitions = last.to.length
  const { recorded, error } = await recordedAnchors(store, partitions).then(
    (found) => ({ recorded: found, error: undefined }),
    (failure: unknown) => ({ recorded: undefined, error: failure }),
  )
  const periodsRead = await archivedPeriods(options, logId, recorded?.keys ?? [])
  if (!recorded) throw error
  const before = await verifyBefore(options, recorded.continued)
  const checks = new AnchorChecks({
    logId,
    partitions,
    // The last anchor is only in the archive.
    recorded: [...recorded.anchors, { sequence: 0, anchor: last.anchor }],
    keyRecords: recorded.keys,
    ...known(options, logId),
    onFinding,
  })
  const { records, events } = await auditLog({
    store,
    partitions,
    heads: before.heads,
    onFinding,
    onEvent: (event) => {
      endings.take(event, event.envelope.forgotten ? 'forgotten' : 'there')
      checks.event(event.partition, event)
    },
    onPosition: (partition, offset, state) => checks.checkPosition(partition, offset, state),
  })
  checks.finish()
  return {
    heads: await archive.heads(last),
    logs: [...before.logs, new ArchivedHistory(archive, last)],
    records: before.records + records,
    events: before.events + events,
    anchors: before.anchors + checks.count,
    signatures: before.signatures + checks.signed,
    periods: before.periods + periodsRead,
    logIds: new Set([...before.logIds, logId]),
  }
}

/** Reads every file of a log's archive. Believes anchors of the keys that the log's records make known. */
export async function archivedPeriods(
  options: Pick<VerifyOptions, 'archiveOf' | 'exported' | 'keys' | 'onFinding'>,
  logId: string,
  records: readonly AnchorKeyRecord[],
): Promise<number> {
  const { archiveOf, onFinding } = options
  if (!archiveOf) return 0
  const known = [...followKeys(trustedKeys(options), logId, records).known.values()]
  const keys = known.length === 0 ? undefined : known
  return auditArchive({ archive: archiveOf(logId), canEnd: isQueryId, keys, onFinding })
}

function known(
  { exported, keys }: Pick<VerifyOptions, 'exported' | 'keys'>,
  logId: string,
): { readonly exported?: readonly ExportedAnchor[]; readonly keys?: NonNullable<VerifyOptions['keys']> } {
  return {
    ...(exported && { exported: exported.filter((one) => one.logId === logId) }),
    ...(keys && { keys }),
  }
}
