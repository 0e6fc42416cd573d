import type { QueryRows } from '../../events/projection.ts'
import { readStoredStream } from '../../readmodels/query-events/queries.ts'
import { foldQueryStream } from '../../readmodels/queries/projection.ts'
import { readQueries } from '../../readmodels/queries/queries.ts'
import type { Clock } from '../../shared/clock.ts'
import type { LiveQueries, LiveQueryView } from '../query/live-queries.ts'

const RECENT_MS = 15 * 60_000
const MOST = 10_000

export interface RecentQueries {
  recent(): AsyncIterable<LiveQueryView>
  find(queryId: string): Promise<LiveQueryView | undefined>
}

/** Queries that are open or ended lately: from memory where this process holds them, else folded from the read model. */
export function createRecentQueries(live: LiveQueries, read: QueryRows, clock: Clock): RecentQueries {
  async function stored(queryId: string): Promise<LiveQueryView | undefined> {
    const events = []
    for await (const event of readStoredStream(read, queryId)) events.push(event)
    const { state } = foldQueryStream(events)
    return state.kind === 'NONE' ? undefined : { query: state, liveStats: new Map() }
  }

  return {
    async *recent() {
      const told = new Set<string>()
      for (const view of live.list()) {
        told.add(view.query.queryId)
        yield view
      }
      const endedSince = new Date(clock.now() - RECENT_MS).toISOString()
      for (const { query_id: queryId } of await readQueries(read, { endedSince }, MOST)) {
        if (told.has(queryId)) continue
        const view = live.get(queryId) ?? (await stored(queryId))
        if (view) yield view
      }
    },
    find: async (queryId) => live.get(queryId) ?? (await stored(queryId)),
  }
}
