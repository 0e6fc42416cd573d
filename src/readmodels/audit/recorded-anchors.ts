import { systemEventSchemas, systemStream } from '../../coordinator/system/events.ts'
import { auditLog } from '../../events/audit/audit-log.ts'
import type { Anchor } from '../../events/audit/anchor.ts'
import type { RecordStore } from '../../events/record-store.ts'

export interface RecordedAnchors {
  readonly anchors: readonly { readonly sequence: number; readonly anchor: Anchor }[]
  /** Name of the log, as its first claim says; '' where there is none. */
  readonly logId: string
}

/** The anchors that a log holds. What is wrong with the log is not told here. */
export async function recordedAnchors(
  store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag'>,
  partitions: number,
): Promise<RecordedAnchors> {
  const anchors: { sequence: number; anchor: Anchor }[] = []
  let logId = ''
  await auditLog({
    store,
    partitions,
    onFinding: () => {},
    onEvent: ({ stream, envelope: { type, sequence, data, forgotten } }) => {
      if (stream !== systemStream || forgotten) return
      if (type === 'EpochStarted' && logId === '') logId = parsed('EpochStarted', data)?.logId ?? ''
      const anchor = type === 'LogAnchored' ? parsed('LogAnchored', data) : undefined
      if (anchor) anchors.push({ sequence, anchor })
    },
  })
  return { anchors, logId }
}

function parsed<T extends 'EpochStarted' | 'LogAnchored'>(type: T, data: string) {
  // Stored small, so never compressed; what does not fit is told as altered data when the log is audited.
  try {
    return systemEventSchemas[type].safeParse(JSON.parse(data)).data as
      ReturnType<(typeof systemEventSchemas)[T]['parse']> | undefined
  } catch {
    return undefined
  }
}
