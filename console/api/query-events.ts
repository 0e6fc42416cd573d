import { keepPreviousData, skipToken, useQuery, useQueryClient } from '@tanstack/react-query'
import { foldEvents, kindOf, NO_EVENTS, positionOf, type EventHead, type EventSummary } from './event-summary.ts'
import { queryPath, read } from './request.ts'

/** The event as the server sends it: a CloudEvent. */
interface SentEvent extends EventHead {
  readonly data: unknown
}

/** The most events of one request. */
const PAGE = 1000
/** Events of one request that searches for some kinds. */
const SEARCHED = 500
/** A request that the next move of a slider or of a list replaces within this time is not sent. */
const SETTLED_MS = 100

/**
 * Counts all events of a query's stream, which may be ten thousand: the page holds at most a thousand at once. Events
 * never change, so a later look reads the new ones only.
 */
export function useEventSummary(queryId: string) {
  const client = useQueryClient()
  const queryKey = ['query', queryId, 'events']
  return useQuery({
    queryKey,
    async queryFn({ signal }): Promise<EventSummary> {
      let summary = client.getQueryData<EventSummary>(queryKey) ?? NO_EVENTS
      for (;;) {
        const more = await readEvents(queryId, summary.last?.sequence ?? 0, PAGE, signal)
        summary = foldEvents(summary, more)
        if (more.length < PAGE) return summary
      }
    },
  })
}

/** Reads an event with its data. @param sequence undefined: reads nothing */
export function useEvent(queryId: string, sequence: number | undefined) {
  return useQuery({
    ...SMALL_CACHE,
    queryKey: ['event', queryId, sequence],
    queryFn:
      sequence === undefined
        ? skipToken
        : async ({ signal }): Promise<SentEvent | null> => {
            await settle(signal)
            const [event] = await readEvents(queryId, sequence - 1, 1, signal)
            return event ?? null
          },
  })
}

/** Rows of a list of events. */
export interface EventWindow {
  /** Chooses the kinds; the list with another text has other rows. */
  readonly search: string
  /** The kinds of the list. */
  readonly kinds: readonly string[]
  /** Number of the first row in the list, from 0. */
  readonly from: number
  readonly count: number
}

/** Reads some rows of a list of events, without their data, and the event of the list before them. */
export function useEventWindow(queryId: string, summary: EventSummary, { search, kinds, from, count }: EventWindow) {
  return useQuery({
    ...SMALL_CACHE,
    queryKey: ['event window', queryId, search, from, count],
    placeholderData: keepPreviousData,
    async queryFn({ signal }): Promise<EventRows> {
      await settle(signal)
      const begin = Math.max(0, from - 1)
      const rows = await readRows(
        queryId,
        positionOf(summary, kinds, begin),
        { kinds, count: from + count - begin },
        signal,
      )
      return from === begin ? { before: undefined, rows } : { before: rows[0], rows: rows.slice(1) }
    },
  })
}

interface EventRows {
  readonly before: EventHead | undefined
  readonly rows: readonly EventHead[]
}

async function readRows(
  queryId: string,
  position: ReturnType<typeof positionOf>,
  { kinds, count }: Pick<EventWindow, 'kinds' | 'count'>,
  signal: AbortSignal,
): Promise<readonly EventHead[]> {
  const rows: EventHead[] = []
  let { after, skip } = position
  // Where all events are of these kinds, one request has all rows.
  for (let limit = Math.min(count, SEARCHED); ; limit = SEARCHED) {
    const events = await readEvents(queryId, after, limit, signal)
    for (const { type, time, sequence } of events) {
      if (!kinds.includes(kindOf({ type }))) continue
      if (skip > 0) skip--
      else if (rows.length < count) rows.push({ type, time, sequence })
    }
    const end = events.at(-1)
    if (rows.length >= count || events.length < limit || !end) return rows
    after = end.sequence
  }
}

/** Events never change. An event that is not shown is read again: else the page would keep all that the user passes. */
const SMALL_CACHE = { staleTime: Infinity, gcTime: 0 } as const

/**
 * All events of a query as JSON, one a line. Each part is given to the browser as soon as it is read, so the page holds
 * no more than a thousand events.
 */
export async function eventsAsLines(queryId: string): Promise<Blob> {
  const parts: Blob[] = []
  let after = 0
  for (;;) {
    const events = await readEvents(queryId, after, PAGE)
    parts.push(new Blob(events.map((event) => `${JSON.stringify(event)}\n`)))
    if (events.length < PAGE) return new Blob(parts, { type: 'application/x-ndjson' })
    after = events.at(-1)?.sequence ?? after
  }
}

/** Waits a moment. @throws the reason of an abort meanwhile */
async function settle(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
  signal.throwIfAborted()
}

function readEvents(queryId: string, after: number, limit: number, signal?: AbortSignal): Promise<SentEvent[]> {
  return read<SentEvent[]>(`${queryPath(queryId)}/events?limit=${limit}&after=${after}`, signal)
}
