import { useQuery } from '@tanstack/react-query'
import { read } from './request.ts'

/** The user of the console; `user` is null where clients need not log in. */
export interface Viewer {
  readonly user: string | null
  readonly mayLogOut: boolean
}

/** Reads who is logged in. */
export function useViewer() {
  return useQuery({
    queryKey: ['viewer'],
    staleTime: 60_000,
    queryFn: ({ signal }) => read<Viewer>('/ui/session', signal),
  })
}
