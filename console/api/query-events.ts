import { useQuery, useQueryClient } from '@tanstack/react-query'
import { queryPath, read } from './request.ts'

/** An event of a query's stream without its data. */
export interface QueryEvent {
  /** The event's type with its version: `quipu.query.planned.v2`. */
  readonly type: string
  /** ISO UTC. */
  readonly time: string
  /** Its position in the stream, from 1. */
  readonly sequence: number
}

/** The event as the server sends it: a CloudEvent. */
interface SentEvent extends QueryEvent {
  readonly data: unknown
}

/** The most events of one request. */
const PAGE = 1000

/**
 * Reads all events of a query's stream, a thousand a request, without their data: a stream may have ten thousand.
 * Events never change, so a later look reads the new ones only.
 */
export function useQueryEvents(queryId: string) {
  const client = useQueryClient()
  const queryKey = ['query', queryId, 'events']
  return useQuery({
    queryKey,
    async queryFn({ signal }): Promise<readonly QueryEvent[]> {
      const events = [...(client.getQueryData<readonly QueryEvent[]>(queryKey) ?? [])]
      for (;;) {
        const more = await readEvents(queryId, events.at(-1)?.sequence ?? 0, PAGE, signal)
        events.push(...more.map(({ type, time, sequence }) => ({ type, time, sequence })))
        if (more.length < PAGE) return events
      }
    },
  })
}

/** Reads the data of one event. */
export function useEventData(queryId: string, sequence: number) {
  return useQuery({
    queryKey: ['event', queryId, sequence],
    staleTime: Infinity,
    async queryFn({ signal }): Promise<unknown> {
      const [event] = await readEvents(queryId, sequence - 1, 1, signal)
      return event?.data ?? null
    },
  })
}

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

function readEvents(queryId: string, after: number, limit: number, signal?: AbortSignal): Promise<SentEvent[]> {
  return read<SentEvent[]>(`${queryPath(queryId)}/events?limit=${limit}&after=${after}`, signal)
}
