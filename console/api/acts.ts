import { useMutation, useQuery } from '@tanstack/react-query'
import type { ActInfo, ActPreview } from '../../src/protocol/acts/act-schemas.ts'
import { read, send } from './request.ts'

export type ActKind = ActInfo['act']

/** The queries of an act: parameters of `GET /v1/query`, or ids of queries. */
export type ActFilter = Readonly<Record<string, string | readonly string[]>>

/** Reads the queries that an act would change. */
export function useActPreview(act: ActKind, filter: ActFilter) {
  return useQuery<ActPreview>({
    queryKey: ['act-preview', act, filter],
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
    queryFn: ({ signal }) => post<ActPreview>('/v1/act/preview', { act, filter }, signal),
  })
}

/** Begins the act of a preview. */
export function useActBeginning(filter: ActFilter) {
  return useMutation({
    mutationFn: ({ act, token, reason }: { readonly reason: string } & Pick<ActPreview, 'act' | 'token'>) =>
      post<ActInfo>('/v1/act', { act, filter, reason, token }),
  })
}

/** Stops an act. */
export function useActStop({ actId }: ActInfo) {
  return useMutation({ mutationFn: () => send(`/v1/act/${actId}`, { method: 'DELETE' }) })
}

/** Follows an act to its end. */
export function useAct(begun: ActInfo) {
  return useQuery<ActInfo>({
    queryKey: ['act', begun.actId],
    initialData: begun,
    refetchInterval: ({ state }) => (state.data?.state === 'ENDED' ? false : 500),
    queryFn: ({ signal }) => read<ActInfo>(`/v1/act/${begun.actId}`, signal),
  })
}

async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await send(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })
  return (await answer.json()) as T
}
