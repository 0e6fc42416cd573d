import { queryRow } from '../../readmodels/queries/rows.ts'
import { passesFilter, queryListRow, type QueryFilter, type QueryListRow } from '../../readmodels/queries/queries.ts'
import type { Prices } from '../../readmodels/history/prices.ts'
import {
  cursorOf,
  NEWEST_FIRST,
  sortedRows,
  type QueryCursor,
  type QueryOrder,
} from '../../readmodels/queries/query-order.ts'
import { groupPath } from '../../coordinator/dispatch/groups/group-path.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'
import type { QueryListItem } from '../info/schemas/query.ts'
import { withoutAbsent } from '../edge/without-absent.ts'
import { listingBounds, rowTime, type ListingBounds } from './listing-bounds.ts'
import type { LiveQueryView } from './live-queries.ts'
import { holdOf, totalsNow } from './query-info.ts'
import { costOfRow } from './totals-info.ts'
import { isQueryId } from '../../shared/ids.ts'

/**
 * The most characters of a statement, and of an error's message, in a list. A list has a thousand queries, and each
 * text may be a megabyte.
 */
export const LIST_CHARACTERS = 4096

export interface ListContext {
  /** Scheme, host and port that the client used. */
  readonly baseUri: string
  readonly prices?: Prices | undefined
  /** The query in memory, which knows what it waits for. */
  readonly live?: LiveQueryView | undefined
}

/**
 * An element of `GET /v1/query`: the query and its progress, without its stages. `queryTruncated` where the query's own
 * resource has more of the text.
 */
export function queryListItem(row: QueryListRow, { baseUri, prices, live }: ListContext): QueryListItem {
  return withoutAbsent({
    queryId: row.query_id,
    ...costOfRow(prices, row),
    session: withoutAbsent({
      user: row.user_name,
      source: row.source,
      catalog: row.catalog_name,
      schema: row.schema_name,
      groups: listOf(row.groups),
      clientTags: listOf(row.client_tags),
      clientInfo: row.client_info && beginningOf(row.client_info),
      userAgent: row.user_agent,
      remoteUserAddress: row.remote_address,
      startTime: Date.parse(row.created_at),
    }),
    resourceGroupId: groupPath(row.resource_group),
    held: live && holdOf(live.query),
    queuedReason: row.state === 'QUEUED' ? (live?.queuedReason ?? live?.query.queued?.reason) : undefined,
    // The projection writes only the kinds of a query.
    state: row.state as QueryListItem['state'],
    scheduled: (row.total_tasks ?? 0) > 0,
    self: `${baseUri}/v1/query/${row.query_id}`,
    query: beginningOf(row.sql_text),
    queryTruncated: row.sql_text.length > LIST_CHARACTERS || null,
    queryType: row.query_type,
    updateType: row.update_type,
    app: row.app,
    appObject: row.app_object,
    appUser: row.app_user,
    fingerprint: row.fingerprint,
    plan: row.route as QueryListItem['plan'],
    cluster: row.cluster,
    routingRule: row.routing_rule,
    queryStats: withoutAbsent({
      createTime: row.created_at,
      executionStartTime: row.execution_started_at,
      lastHeartbeat: row.last_event_at,
      endTime: row.ended_at,
      elapsedTime: duration(row.elapsed_ms),
      queuedTime: duration(row.queued_ms),
      analysisTime: duration(row.analysis_ms),
      planningTime: duration(row.planning_ms),
      totalScheduledTime: duration(row.scheduled_ms),
      totalCpuTime: duration(row.cpu_ms),
      totalBlockedTime: duration(row.blocked_ms),
      totalTasks: row.total_tasks ?? 0,
      totalDrivers: row.total_drivers ?? 0,
      completedDrivers: row.completed_drivers ?? 0,
      totalSplits: row.total_splits ?? 0,
      completedSplits: row.completed_splits ?? 0,
      peakTotalMemoryReservation: formatSize(row.peak_memory_bytes ?? 0),
      spilledDataSize: formatSize(row.spilled_bytes ?? 0),
      rawInputDataSize: formatSize(row.raw_input_bytes ?? 0),
      rawInputPositions: row.raw_input_rows ?? 0,
      processedInputDataSize: formatSize(row.processed_input_bytes ?? 0),
      processedInputPositions: row.processed_input_rows ?? 0,
      outputDataSize: formatSize(row.output_bytes ?? 0),
      outputPositions: row.output_rows ?? 0,
    }),
    errorType: row.error_type,
    errorCode: errorCodeOf(row),
    errorMessage: row.error_message && beginningOf(row.error_message),
    traceId: row.trace_id,
    partial: row.partial || null,
    resultLost: row.result_lost || null,
    incomplete: row.incomplete || null,
  })
}

/** A list of texts. Rows of earlier versions have none. */
function listOf(json: string | null): string[] | undefined {
  return json === null ? undefined : ((JSON.parse(json) as string[] | null) ?? undefined)
}

function errorCodeOf({
  error_code: code,
  error_name: name,
  error_type: type,
}: QueryListRow): QueryListItem['errorCode'] {
  return code === null || name === null || type === null ? undefined : { code, name, type }
}

/** The row of the read models that a query in memory will have. */
export function liveRow(view: LiveQueryView, now: number): QueryListRow {
  const row = queryRow(view.query, { sequence: 0, epoch: 0, incomplete: false })
  const totals = totalsNow(view, now)
  const { session } = view.query.created
  return queryListRow.parse({
    ...row,
    // The schema reads these as the driver returns them.
    groups: session.groups,
    client_tags: session.clientTags,
    elapsed_ms: totals.elapsedNanos / 1e6,
    queued_ms: totals.queuedNanos / 1e6,
    cpu_ms: totals.cpuNanos / 1e6,
    scheduled_ms: totals.scheduledNanos / 1e6,
    blocked_ms: totals.blockedNanos / 1e6,
    processed_input_rows: totals.processedInputPositions,
    processed_input_bytes: totals.processedInputBytes,
    raw_input_rows: totals.rawInputPositions,
    raw_input_bytes: totals.rawInputBytes,
    completed_splits: totals.completedSplits,
    total_splits: totals.totalSplits,
    completed_drivers: totals.completedDrivers,
    total_drivers: totals.totalDrivers,
  })
}

/**
 * Merges rows of the read models with rows of memory. The row in memory counts where both exist; the result is filtered
 * and sorted again.
 */
export function overlay(
  stored: readonly QueryListRow[],
  live: readonly QueryListRow[],
  filter: QueryFilter,
  limit: number,
): QueryListRow[] {
  const inMemory = new Set(live.map((row) => row.query_id))
  const rows = [
    ...stored.filter((row) => !inMemory.has(row.query_id)),
    ...live.filter((row) => passesFilter(row, filter)),
  ]
  return sortedRows(rows, filter.order ?? NEWEST_FIRST).slice(0, limit)
}

/** The position of a row in a listing, with the bounds of the listing, as a parameter. */
export function encodeCursor(row: QueryListRow, order: QueryOrder, bounds: ListingBounds): string {
  const { value, queryId } = cursorOf(row, order)
  return Buffer.from(JSON.stringify([value, queryId, bounds])).toString('base64url')
}

/** A position in a listing. `bounds` are absent in a cursor of an earlier version. */
export interface ListingCursor {
  readonly cursor: QueryCursor
  readonly bounds: ListingBounds | undefined
}

/** Reads a cursor. @returns undefined when the text is no cursor of this server in a list with this order */
export function decodeCursor(text: string, { by }: QueryOrder): ListingCursor | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (!Array.isArray(parsed) || parsed.length < 2 || parsed.length > 3) return undefined
    const [value, queryId, given] = parsed as unknown[]
    if (typeof queryId !== 'string' || !isQueryId(queryId)) return undefined
    const isPosition =
      by === 'created' ? typeof value === 'string' && rowTime.safeParse(value).success : typeof value === 'number'
    if (!isPosition) return undefined
    return { cursor: { value: value as string | number, queryId }, bounds: listingBounds.optional().parse(given) }
  } catch {
    return undefined
  }
}

export function beginningOf(text: string): string {
  if (text.length <= LIST_CHARACTERS) return text
  // Does not cut a surrogate pair.
  const last = text.codePointAt(LIST_CHARACTERS - 1)!
  return text.slice(0, last > 0xffff ? LIST_CHARACTERS - 1 : LIST_CHARACTERS)
}

function duration(millis: number | null): string {
  return formatDuration((millis ?? 0) * 1e6)
}
