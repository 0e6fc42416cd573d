import { isQueryId } from '../../../shared/ids.ts'
import { querySpans } from './query-spans.ts'
import { readQuery } from '../stream/read-query.ts'
import type { StreamReader } from '../../../events/event-log.ts'
import type { QueryRows } from '../../../events/projection.ts'
import type { SpanSink } from '../../../telemetry/span.ts'

/** Spans of ended queries wait in memory for up to a second before they are sent; this is twice that, and some more. */
const UNSENT = '3 seconds'
/** A coordinator that ended longer ago than this was not just killed. */
const LATELY = '60 seconds'
const MOST = 500

/**
 * Sends again the spans that a killed coordinator may not have sent: those of the queries that ended last. A trace
 * store that has them already gets the same ids again.
 * @param startedAt when this process took over, ISO
 */
export async function sendLastSpans(
  log: StreamReader,
  read: QueryRows,
  spans: SpanSink,
  startedAt: string,
): Promise<void> {
  if (!spans.enabled) return
  const rows = await read(
    `select query_id from queries
     where ended_at < $1::timestamptz and ended_at > $1::timestamptz - interval '${LATELY}'
       and ended_at >= (select max(ended_at) from queries where ended_at < $1::timestamptz) - interval '${UNSENT}'
     order by ended_at desc limit ${MOST}`,
    [startedAt],
  )
  for (const { query_id: queryId } of rows) {
    if (typeof queryId !== 'string' || !isQueryId(queryId)) continue
    const { state } = await readQuery(log, queryId)
    if (state.kind !== 'NONE' && state.created.sampled) spans.emit(querySpans(state, { withRequest: true }))
  }
}
