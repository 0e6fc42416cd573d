import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { QueryInfo, QueryListItem } from '../../src/protocol/info/wire-schemas.ts'
import { read, send } from './request.ts'

/** Queries of one page of the list. */
export const PAGE = 100

/** One page of `GET /v1/query`. */
export interface QueryPage {
  readonly queries: readonly QueryListItem[]
  /** Parameter `cursor` of the next, older page; absent on the last page. */
  readonly older: string | undefined
}

/** Reads a page of the list. @param filter parameters of `GET /v1/query`, with `cursor` */
export function useQueryList(filter: URLSearchParams) {
  const asked = new URLSearchParams(filter)
  asked.set('limit', String(PAGE))
  return useQuery<QueryPage>({
    queryKey: ['queries', asked.toString()],
    placeholderData: keepPreviousData,
    async queryFn({ signal }): Promise<QueryPage> {
      const answer = await send(`/v1/query?${asked}`, { signal })
      const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
      return {
        queries: (await answer.json()) as QueryListItem[],
        older: next === undefined ? undefined : (new URL(next).searchParams.get('cursor') ?? undefined),
      }
    },
  })
}

/** A CloudEvent of a query's stream. */
export interface QueryEvent {
  readonly id: string
  readonly type: string
  readonly time: string
  readonly sequence: number
  readonly data: unknown
}

/** Reads a query, now or as of an event. */
export function useQueryInfo(queryId: string, asOf: number | undefined) {
  return useQuery<QueryInfo>({
    queryKey: ['query', queryId, 'info', asOf ?? 'now'],
    placeholderData: keepPreviousData,
    // The log has the figures of a running query only from time to time.
    refetchInterval: ({ state }) => (asOf !== undefined || isOver(state.data) ? false : 2000),
    queryFn: ({ signal }) => read<QueryInfo>(`${pathOf(queryId)}${asOf === undefined ? '' : `?asOf=${asOf}`}`, signal),
  })
}

/** Whether a query has ended and its figures are final. */
export function isOver(query: QueryInfo | undefined): boolean {
  return query?.finalQueryInfo === true
}

/** Reads all events of a query's stream, a thousand a request. */
export function useQueryEvents(queryId: string) {
  return useQuery({
    queryKey: ['query', queryId, 'events'],
    async queryFn({ signal }): Promise<readonly QueryEvent[]> {
      const events: QueryEvent[] = []
      for (;;) {
        const after = events.at(-1)?.sequence ?? 0
        const more = await read<QueryEvent[]>(`${pathOf(queryId)}/events?limit=1000&after=${after}`, signal)
        events.push(...more)
        if (more.length < 1000) return events
      }
    },
  })
}

/** Cancels a query. */
export async function cancelQuery(queryId: string): Promise<void> {
  await send(pathOf(queryId), { method: 'DELETE' })
}

/** Kills a query. @param reason the query's error shows it */
export async function killQuery(queryId: string, reason: string): Promise<void> {
  await send(`${pathOf(queryId)}/killed`, { method: 'PUT', body: reason })
}

function pathOf(queryId: string): string {
  return `/v1/query/${encodeURIComponent(queryId)}`
}
