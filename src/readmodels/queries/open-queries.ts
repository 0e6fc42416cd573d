import { z } from 'zod'
import { isTerminal, type QueryState } from '../../coordinator/query/stream/state.ts'
import { beginning, checkpointFromJson, type Recorded, type EventReader, type LogEnd } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import { isQueryId, queryOfStream, type QueryId } from '../../shared/ids.ts'
import { READ_MODELS } from '../projection.ts'
import { readStreams } from '../query-events/queries.ts'
import { foldQueryStream } from './projection.ts'

/** Queries without an end, according to the log at the call, no matter how far the read models are behind. */
export interface OpenQueries {
  /** Ordered by creation. */
  readonly open: readonly QueryId[]
  /** Folds of whole streams. Leaves out a stream that the read models have only in part. */
  readMany(
    queryIds: readonly QueryId[],
  ): Promise<ReadonlyMap<QueryId, { readonly state: QueryState; readonly sequence: number }>>
}

const EVENTS_AT_ONCE = 5000
const END_EVENTS = ['QueryFinished', 'QueryFailed']

/**
 * One snapshot, so that the open queries match the checkpoint. Rows of a stream with a dead letter do not change any
 * more: its parked events show whether it ended.
 */
const SNAPSHOT = `with dead as (
    select stream, bool_or(type = any($3)) as ended from dead_letters
    where projection = $1 and resolved_at is null group by stream
  )
  select
    (select checkpoint from checkpoints where name = $1 and version = $2) as checkpoint,
    (select coalesce(json_agg(query_id order by created_at, query_id), '[]') from queries
     where ended_at is null and not exists (select from dead where stream = query_id and ended)) as open,
    (select coalesce(json_agg(stream order by stream), '[]') from dead
     where not ended and not exists (select from queries where query_id = stream)) as unlisted`

const snapshotRow = z.object({
  checkpoint: z.string().nullable(),
  open: z.array(z.string()),
  unlisted: z.array(z.string()),
})

/**
 * Finds open queries: takes them from the read models, and reads the log from their checkpoint to its end. So nothing
 * waits for the projection.
 * @throws LogChanged when the read models belong to another log
 */
export async function findOpenQueries(log: EventReader & LogEnd, query: QueryRows): Promise<OpenQueries> {
  const [row] = await query(SNAPSHOT, [READ_MODELS.name, READ_MODELS.version, END_EVENTS])
  const { checkpoint, open, unlisted } = snapshotRow.parse(row)
  const left = new Set([...open, ...unlisted].filter(isQueryId))
  const news = new Map<string, Recorded[]>()
  // Reads only up to this end: a busy log always has more.
  const tip = await log.tip()
  let from = checkpoint === null ? beginning(tip.at.length) : checkpointFromJson(checkpoint)
  for (;;) {
    const { events, next } = await log.read(from, EVENTS_AT_ONCE, tip)
    if (events.length === 0) break
    from = next
    for (const event of events) {
      const { stream, type } = event
      if (!isQueryId(stream)) continue
      if (event.sequence === 1) left.add(stream)
      if (END_EVENTS.includes(type)) {
        left.delete(stream)
        news.delete(stream)
      } else if (left.has(stream)) {
        const known = news.get(stream)
        if (known) known.push(event)
        else news.set(stream, [event])
      }
    }
  }
  return {
    open: [...left],
    async readMany(queryIds) {
      const streams = new Map<QueryId, Recorded[]>(queryIds.map((queryId) => [queryId, []]))
      for (const event of await readStreams(query, queryIds)) streams.get(queryOfStream(event.stream))?.push(event)
      const folded = new Map<QueryId, { readonly state: QueryState; readonly sequence: number }>()
      for (const [queryId, events] of streams) {
        // The projection may have moved on meanwhile.
        const last = events.at(-1)?.sequence ?? 0
        events.push(...(news.get(queryId) ?? []).filter(({ sequence }) => sequence > last))
        const { state, sequence, incomplete } = foldQueryStream(events)
        const whole = !incomplete && sequence > 0 && events.length === sequence
        if (whole && !isTerminal(state.kind)) folded.set(queryId, { state, sequence })
      }
      return folded
    },
  }
}
