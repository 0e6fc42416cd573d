import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { QueryInfo, QueryListItem, TotalsInfo } from '../../src/protocol/info/schemas/query.ts'
import { queryPath, read, send } from './request.ts'

/** Queries of one page of the list. */
export const PAGE = 100

/** The most queries of a page: what the console may hold in memory. */
export const MOST_QUERIES = 1000

/** One page of `GET /v1/query`. */
export interface QueryPage {
  readonly queries: readonly QueryListItem[]
  /** Parameter `cursor` of the next, older page; absent on the last page. */
  readonly older: string | undefined
  /** ISO UTC: only queries since then were searched for the text of the filter; absent: all were. */
  readonly searchedSince: string | undefined
}

/**
 * Reads a page of the list.
 * @param filter parameters of `GET /v1/query`, with `cursor`
 * @param options `everyMs`: reads again after so many milliseconds; `limit`: the most queries of the page
 */
export function useQueryList(
  filter: URLSearchParams,
  { everyMs, limit = PAGE }: { readonly everyMs?: number; readonly limit?: number } = {},
) {
  const asked = new URLSearchParams(filter)
  asked.set('limit', String(limit))
  return useQuery<QueryPage>({
    queryKey: ['queries', asked.toString()],
    placeholderData: keepPreviousData,
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
    async queryFn({ signal }): Promise<QueryPage> {
      const answer = await send(`/v1/query?${asked}`, { signal })
      const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
      return {
        queries: (await answer.json()) as QueryListItem[],
        older: next === undefined ? undefined : (new URL(next).searchParams.get('cursor') ?? undefined),
        searchedSince: answer.headers.get('x-engine-searched-since') ?? undefined,
      }
    },
  })
}

/** Reads totals of all queries that a filter chooses. @param filters parameters of `GET /v1/query` */
export function useQueryTotals(filters: URLSearchParams) {
  return useQuery<TotalsInfo>({
    queryKey: ['totals', filters.toString()],
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
    queryFn: ({ signal }) => read<TotalsInfo>(`/v1/query/totals?${filters}`, signal),
  })
}

/** Reads a query, now or as of an event. */
export function useQueryInfo(queryId: string, asOf: number | undefined) {
  return useQuery<QueryInfo>({
    queryKey: ['query', queryId, 'info', asOf ?? 'now'],
    placeholderData: keepPreviousData,
    // The cache keeps no past moments, because a slider passes many of them.
    ...(asOf !== undefined && { gcTime: 0 }),
    // The log has the figures of a running query only from time to time.
    refetchInterval: ({ state }) => (asOf !== undefined || isOver(state.data) ? false : 2000),
    queryFn: ({ signal }) =>
      read<QueryInfo>(`${queryPath(queryId)}${asOf === undefined ? '' : `?asOf=${asOf}`}`, signal),
  })
}

/** Whether a query has ended and its figures are final. */
export function isOver(query: QueryInfo | undefined): boolean {
  return query?.finalQueryInfo === true
}

/** The whole text of a listed query: the list cuts long texts. */
export async function readStatement(query: QueryListItem): Promise<string> {
  return query.queryTruncated ? (await read<QueryInfo>(queryPath(query.queryId))).query : query.query
}

/** Cancels a query. */
export async function cancelQuery(queryId: string): Promise<void> {
  await send(queryPath(queryId), { method: 'DELETE' })
}

/** Kills a query. @param reason the query's error shows it */
export async function killQuery(queryId: string, reason: string): Promise<void> {
  await send(`${queryPath(queryId)}/killed`, { method: 'PUT', body: reason })
}
