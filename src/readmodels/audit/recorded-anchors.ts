import { systemDataStored } from '../../coordinator/system/decode-event.ts'
import { systemStream, type SystemEvent } from '../../coordinator/system/events.ts'
import type { KeyObject } from 'node:crypto'
import type { Archive } from '../../events/archive/archive.ts'
import { archivedStore } from '../../events/archive/archived-history.ts'
import { auditLog } from '../../events/audit/audit-log.ts'
import { fingerprint, type Anchor } from '../../events/audit/anchor.ts'
import { followKeys, type AnchorKeyRecord } from '../../events/audit/anchor-keys.ts'
import type { RecordStore } from '../../events/record-store.ts'

export interface RecordedAnchors {
  readonly anchors: readonly { readonly sequence: number; readonly anchor: Anchor }[]
  /** In the order of the log. */
  readonly keys: readonly AnchorKeyRecord[]
  /** Id of the log from its first claim; '' when there is none. */
  readonly logId: string
  /** The log's event about the log that it continues. */
  readonly continued: Continued | undefined
}

type Continued = Extract<SystemEvent, { type: 'LogContinued' }>['data']

/**
 * The known keys of an archive: the trusted ones, and those that the archived records vouch for.
 * @throws ArchiveDamaged | LogUnavailable
 */
export async function keysOfArchive(archive: Archive, trusted: readonly KeyObject[]): Promise<readonly KeyObject[]> {
  const periods = await archive.reread()
  const last = periods.at(-1)
  const own = new Set(trusted.map(fingerprint))
  if (!last || periods.every(({ anchor }) => own.has(anchor.key))) return trusted
  const { keys } = await recordedAnchors(archivedStore(archive, last), last.to.length)
  return [...followKeys(trusted, last.logId, keys).known.values()]
}

/** Reads the anchors and keys of a log. Does not report faults of the log. */
export async function recordedAnchors(
  store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag'>,
  partitions: number,
): Promise<RecordedAnchors> {
  const anchors: { sequence: number; anchor: Anchor }[] = []
  const keys: AnchorKeyRecord[] = []
  let logId = ''
  let continued: Continued | undefined
  await auditLog({
    store,
    partitions,
    onFinding: () => {},
    onEvent: ({ stream, envelope }) => {
      const { type, sequence, forgotten } = envelope
      if (stream !== systemStream || forgotten) return
      if (type === 'EpochStarted' && logId === '') logId = systemDataStored('EpochStarted', envelope)?.logId ?? ''
      if (type === 'LogContinued') continued ??= systemDataStored('LogContinued', envelope)
      const key = type === 'AnchorKeyVouched' ? systemDataStored('AnchorKeyVouched', envelope) : undefined
      if (key) keys.push(key)
      const anchor = type === 'LogAnchored' ? systemDataStored('LogAnchored', envelope) : undefined
      if (anchor) anchors.push({ sequence, anchor })
    },
  })
  return { anchors, keys, logId, continued }
}
