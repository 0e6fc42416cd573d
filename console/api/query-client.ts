import { QueryClient } from '@tanstack/react-query'
import { RequestRefused } from './request.ts'

/** The console's cache of answers. A refused request is not repeated; a lost connection is, twice. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        retry: (failures, error) => !(error instanceof RequestRefused) && failures < 2,
        staleTime: 1000,
        // At most a few pages of 100 queries stay in memory.
        gcTime: 30_000,
      },
    },
  })
}
