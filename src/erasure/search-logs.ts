import { decodeQueryEvent } from '../coordinator/query/stream/decode-event.ts'
import {
  beginning,
  type Checkpoint,
  type EventReader,
  type LogEnd,
  type Recorded,
  type ResultPages,
} from '../events/event-log.ts'
import { queryOfStream } from '../shared/ids.ts'
import { classify, type ErasureScope, type SubjectFinding } from './classify.ts'
import type { SearchProgress } from './erasure-store.ts'
import { createPauses } from './pauses.ts'
import type { SubjectSearch } from './subject.ts'

/** The logs that an erasure searches. The archive of a log is part of it. */
export interface SearchedLogs {
  readonly log: EventReader & LogEnd & Pick<ResultPages, 'readPage'>
  /** The logs that this one continues, the oldest first. */
  readonly before: () => Promise<readonly (EventReader & LogEnd)[]>
  /**
   * Selects the events that can lose their data. A topic cannot change its records: there, only encrypted events and
   * archived events can.
   */
  readonly selectForgettable: (events: readonly Recorded[], isInNewestLog: boolean) => Promise<readonly Recorded[]>
}

/** An event that contains the subject. */
export interface FoundEvent {
  readonly event: Recorded
  readonly finding: SubjectFinding
}

/** A part of a search: the events that were read, those that contain the subject, and the position that was reached. */
export interface SearchStep {
  readonly events: readonly Recorded[]
  readonly found: readonly FoundEvent[]
  readonly reached: SearchProgress
  /** False for a log that is completely in its archive, and that a later log continues. */
  readonly isInNewestLog: boolean
}

/** Most events in memory at once. */
const STEP_EVENTS = 2000
/** How many result pages are read at the same time. */
const PAGES_AT_ONCE = 4
/** Small pages of results are dropped after this time, milliseconds. */
export const PAGES_KEPT_MS = 25 * 3_600_000

/**
 * Searches all events up to the end of the log at the call, and the small result pages that are still kept. Memory is
 * bounded by one step.
 * @param from where an earlier search stopped
 */
export async function* searchLogs(
  { log, before }: SearchedLogs,
  scope: ErasureScope,
  from?: SearchProgress,
): AsyncGenerator<SearchStep> {
  const pause = createPauses()
  const until = await log.tip()
  const logs = [...(await before()), log]
  for (let number = from?.log ?? 0; number < logs.length; number++) {
    const searched = logs[number]!
    const isNewest = number === logs.length - 1
    let next: Checkpoint =
      from?.log === number ? from.next : beginning((isNewest ? until : await searched.tip()).at.length)
    for (;;) {
      const step = await searched.read(next, STEP_EVENTS, ...(isNewest ? [until] : []))
      if (step.events.length === 0) break
      next = step.next
      const found: FoundEvent[] = []
      const others: Recorded[] = []
      for (const event of step.events) {
        await pause()
        const finding = classify(event, scope)
        if (finding) found.push({ event, finding })
        else others.push(event)
      }
      if (isNewest) found.push(...(await findInPages(log, others, scope)))
      yield { events: step.events, found, reached: { log: number, next }, isInNewestLog: isNewest }
    }
  }
}

function readable(event: Recorded): ReturnType<typeof decodeQueryEvent> {
  try {
    return decodeQueryEvent(event)
  } catch {
    // An event that does not fit its type names no pages.
    return undefined
  }
}

/** Searches the small result pages that events name. A user's name in rows is data of a table, and is not searched. */
async function findInPages(
  log: Pick<ResultPages, 'readPage'>,
  events: readonly Recorded[],
  { search }: ErasureScope,
): Promise<readonly FoundEvent[]> {
  if ('user' in search.subject) return []
  const since = Date.now() - PAGES_KEPT_MS
  const left = events.filter(({ type, time }) => type === 'ResultPagesPublished' && Date.parse(time) >= since)
  const found: FoundEvent[] = []
  const searchNext = async (): Promise<void> => {
    for (let event = left.pop(); event; event = left.pop())
      if (await isInPages(log, event, search))
        found.push({ event, finding: { kind: 'query', queryId: queryOfStream(event.stream) } })
  }
  await Promise.all(Array.from({ length: PAGES_AT_ONCE }, searchNext))
  return found
}

async function isInPages(log: Pick<ResultPages, 'readPage'>, event: Recorded, search: SubjectSearch): Promise<boolean> {
  const published = readable(event)
  if (published?.type !== 'ResultPagesPublished') return false
  const { firstToken, pages } = published.data
  for (const [index, page] of pages.entries()) {
    const bytes = page.kept === 'log' ? await log.readPage(event.stream, firstToken + index, page.place) : undefined
    if (bytes && search.isIn(Buffer.from(bytes).toString())) return true
  }
  return false
}
