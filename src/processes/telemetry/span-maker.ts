import { gunzipSync } from 'node:zlib'
import type { QueryEvent } from '../../coordinator/query/stream/events.ts'
import { evolve } from '../../coordinator/query/stream/evolve.ts'
import { queryOfStream } from '../../shared/ids.ts'
import { querySpans, type QueryEnded } from '../../coordinator/query/telemetry/query-spans.ts'
import { initialQueryState, type QueryState } from '../../coordinator/query/stream/state.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { SpanRecord } from '../../telemetry/span.ts'
import { commitSpans, type TracedCommit } from '../../events/telemetry/commit-spans.ts'
import { appendSpan, type TracedAppend } from '../../events/telemetry/append-span.ts'

/** The source data of a process's spans: messages that it makes anyway. */
export type SpanSource = TracedAppend | TracedCommit | QueryEnded

/** How many queries are followed at once. Beyond that, the one that was silent longest is dropped. */
const MOST_QUERIES = 10_000

export interface SpanMaker {
  take(source: SpanSource): void
}

/**
 * Follows the appends of traced queries and makes their spans when the queries have ended. A query whose first event it
 * has not seen gets no spans here: the coordinator that takes the query over reads its stream.
 */
export function createSpanMaker(emit: (spans: readonly SpanRecord[]) => void): SpanMaker {
  const queries = new Map<string, QueryState>()

  function follow({ stream, events }: TracedAppend): void {
    const known = queries.get(stream)
    if (!known && events[0]?.type !== 'QueryCreated') return
    queries.delete(stream)
    let state: QueryState = known ?? initialQueryState
    for (const { type, time, enc, stored } of events) {
      const text = enc === 'gzip' ? gunzipSync(Buffer.from(stored, 'base64')).toString() : stored
      // This process itself made the event, so it has the current shape.
      state = evolve(queryOfStream(stream), state, { type, time, data: JSON.parse(text) } as QueryEvent)
    }
    queries.set(stream, state)
    const [oldest] = queries.size > MOST_QUERIES ? queries.keys() : []
    if (oldest !== undefined) queries.delete(oldest)
  }

  return {
    take(source) {
      switch (source.kind) {
        case 'append':
          follow(source)
          return emit([appendSpan(source)])
        case 'commit':
          return emit(commitSpans(source))
        case 'queryEnded': {
          const state = queries.get(source.queryId)
          queries.delete(source.queryId)
          return state && state.kind !== 'NONE' ? emit(querySpans(state, source.options)) : undefined
        }
        default:
          return unreachable(source)
      }
    },
  }
}
