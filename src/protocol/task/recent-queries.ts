import type { Recorded } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import { readStreams } from '../../readmodels/query-events/queries.ts'
import type { StoredQueries } from '../../readmodels/queries/stored-queries.ts'
import { readQueryIds } from '../../readmodels/queries/queries.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import type { Clock } from '../../shared/clock.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readAsOf, storedView, type AsOf } from '../query/as-of.ts'
import type { LiveQueries, LiveQueryView } from '../query/live-queries.ts'

const RECENT_MS = 15 * 60_000
const MOST = 10_000
/** The ended queries that are read at once, and the most events of each. Nearly all queries have fewer events. */
const BATCH = 50
const FEW_EVENTS = 100

export interface RecentQueries {
  recent(): AsyncIterable<LiveQueryView>
  find(queryId: QueryId): Promise<LiveQueryView | undefined>
  /** @throws HttpProblem 404 when the query did not exist then, 503 when that cannot be known */
  findAsOf(queryId: QueryId, asOf: AsOf): Promise<LiveQueryView | undefined>
}

export interface RecentQueriesDeps {
  readonly live: LiveQueries
  readonly read: QueryRows
  /** The same queries, and those that have left the read models. */
  readonly stored: StoredQueries
  readonly projection: Pick<ProjectionRunner, 'barrier'>
  readonly clock: Clock
  /** How long a read of the past waits for the read models, milliseconds. */
  readonly ownWritesWaitMs: number
}

/**
 * Queries that are open or ended lately: from memory where this process holds them, else folded from the read models.
 */
export function createRecentQueries(deps: RecentQueriesDeps): RecentQueries {
  const { live, read, clock } = deps

  async function ended(queryId: QueryId): Promise<LiveQueryView | undefined> {
    const events = []
    for await (const event of deps.stored.stream(queryId)) events.push(event)
    return storedView(events)
  }

  /**
   * Reads many queries by one statement, since thousands of single reads would take minutes. Queries with very many
   * events are left out here and read one by one.
   */
  async function storedViews(queryIds: readonly QueryId[]): Promise<ReadonlyMap<string, LiveQueryView | undefined>> {
    const streams = new Map<string, Recorded[]>()
    for (const event of await readStreams(read, queryIds, FEW_EVENTS)) {
      const known = streams.get(event.stream)
      if (known) known.push(event)
      else streams.set(event.stream, [event])
    }
    const whole = [...streams].filter(([, events]) => events.length < FEW_EVENTS)
    return new Map(whole.map(([queryId, events]) => [queryId, storedView(events)]))
  }

  return {
    async *recent() {
      const seen = new Set<QueryId>()
      for (const view of live.list()) {
        seen.add(view.query.queryId)
        yield view
      }
      const endedSince = new Date(clock.now() - RECENT_MS).toISOString()
      const left = (await readQueryIds(read, { endedSince, without: [...seen] }, MOST)).filter(isQueryId)
      for (let from = 0; from < left.length; from += BATCH) {
        const batch = left.slice(from, from + BATCH)
        const views = await storedViews(batch.filter((queryId) => !live.get(queryId)))
        for (const queryId of batch) {
          const view = live.get(queryId) ?? views.get(queryId) ?? (await ended(queryId))
          if (view) yield view
        }
      }
    },
    find: async (queryId) => live.get(queryId) ?? (await ended(queryId)),
    async findAsOf(queryId, asOf) {
      if (!(await deps.projection.barrier(deps.ownWritesWaitMs)))
        throw new HttpProblem(503, 'The history cannot be read now: try again later', { 'retry-after': '1' })
      return readAsOf(deps.stored, queryId, asOf)
    },
  }
}
