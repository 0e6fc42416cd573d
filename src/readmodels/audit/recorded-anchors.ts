import { systemDataStored } from '../../coordinator/system/decode-event.ts'
import { systemStream, type SystemEvent } from '../../coordinator/system/events.ts'
import { auditLog } from '../../events/audit/audit-log.ts'
import type { Anchor } from '../../events/audit/anchor.ts'
import type { RecordStore } from '../../events/record-store.ts'

export interface RecordedAnchors {
  readonly anchors: readonly { readonly sequence: number; readonly anchor: Anchor }[]
  /** Name of the log, as its first claim says; '' where there is none. */
  readonly logId: string
  /** What it says of the log that it goes on from. */
  readonly continued: Continued | undefined
}

type Continued = Extract<SystemEvent, { type: 'LogContinued' }>['data']

/** The anchors that a log holds. What is wrong with the log is not told here. */
export async function recordedAnchors(
  store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag'>,
  partitions: number,
): Promise<RecordedAnchors> {
  const anchors: { sequence: number; anchor: Anchor }[] = []
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
      const anchor = type === 'LogAnchored' ? systemDataStored('LogAnchored', envelope) : undefined
      if (anchor) anchors.push({ sequence, anchor })
    },
  })
  return { anchors, logId, continued }
}
