import { stateOf } from '../node/node-info.ts'
import { groupPath } from '../../coordinator/dispatch/groups/group-path.ts'
import type { Membership } from '../../coordinator/nodes/membership.ts'
import type { Recorded } from '../../events/event-log.ts'
import { enderSeenBy } from '../../coordinator/query/stream/ending.ts'
import { shownData } from '../../coordinator/query/stream/shown-event.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { readStreamHeads, readStreams } from '../../readmodels/query-events/queries.ts'
import { cursorOf, NEWEST_FIRST, sortedRows } from '../../readmodels/queries/query-order.ts'
import {
  readQueries,
  readQueryIds,
  WHOLE_TEXTS,
  type QueryFilter,
  type QueryListRow,
} from '../../readmodels/queries/queries.ts'
import { taskRow } from '../../readmodels/queries/rows.ts'
import { readOperators, readTasks, taskListRow, type TaskListRow } from '../../readmodels/queries/task-queries.ts'
import type { Authorize } from '../../security/authorization.ts'
import type { Clock } from '../../shared/clock.ts'
import type { NodeId, QueryId } from '../../shared/ids.ts'
import type { Asker } from '../../connectors/spi/connector.ts'
import { seenBy } from '../access/seen-queries.ts'
import type { LiveQueries, LiveQueryView } from './live-queries.ts'
import { liveRow, overlay } from './query-list.ts'
import { readFailure } from './read-failure.ts'
import type { HistoryReadQueue } from './history-read-queue.ts'

export interface RuntimeSourceDeps {
  readonly live: LiveQueries
  readonly read: QueryRows
  readonly projection: Pick<ProjectionRunner, 'barrier'>
  readonly membership: Pick<Membership, 'nodes'>
  readonly clock: Clock
  /** This process. */
  readonly self: { readonly nodeId: NodeId; readonly url: string; readonly version: string }
  readonly ownWritesWaitMs: number
  readonly authorize: Authorize
  readonly queue: HistoryReadQueue
  /** Called with the reason why the database could not be read; the statement gets another message. */
  readonly onError?: (error: unknown) => void
}

type Row = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

/**
 * Queries shown in `system.runtime` are those of the query resource's list: open ones, and those that ended in the last
 * 15 minutes.
 */
const RECENT_MS = 15 * 60_000
const MAX_QUERIES = 1000
/** The most queries whose events are shown. */
const MAX_EVENT_QUERIES = 100
/** The most memory for texts, or for data of events, since both may be long. Older queries are left out beyond it. */
const MAX_BYTES = 24 * 1024 * 1024
/** Queries that are read at once. With their texts only a few, since each may be a megabyte. */
const PAGE_QUERIES = 100
const PAGE_TEXTS = 20
const PAGE_EVENT_QUERIES = 4

/**
 * The rows of `system.runtime` that a user may see. Rows in memory replace those of the read models; the process's own
 * writes are included.
 */
export function createRuntimeSources(deps: RuntimeSourceDeps) {
  const reads = new RuntimeReads(deps)

  /** Runs the reads of one statement when the queue lets it: users who read much wait for their own reads. */
  async function queued<T>(asker: Asker, reading: () => Promise<T>): Promise<T> {
    const end = await deps.queue.take(asker.owner)
    try {
      await deps.projection.barrier(deps.ownWritesWaitMs)
      return await reading()
    } finally {
      end()
    }
  }

  return {
    queries: (asker: Asker, columns: readonly string[]): Promise<Row[]> =>
      queued(asker, async () => {
        const rows = await reads.queries(asker, columns.includes('query') ? 'texts' : 'no texts')
        return rows.map(queryRowOf)
      }),
    tasks: (asker: Asker): Promise<Row[]> => queued(asker, async () => (await reads.tasks(asker)).map(taskRowOf)),
    operators: (asker: Asker): Promise<Row[]> => queued(asker, () => reads.operators(asker)),
    events: (asker: Asker, columns: readonly string[]): Promise<Row[]> =>
      queued(asker, () => reads.events(asker, columns.includes('data'))),
    nodes: async (): Promise<Row[]> => nodeRows(deps),
    /** A statement outside an explicit transaction has no transaction to list. */
    transactions: async (): Promise<Row[]> => [],
    /** The engine optimizes fragments, and does not count rules. */
    optimizer_rule_stats: async (): Promise<Row[]> => [],
  }
}

/** Reads queries, tasks and events, in memory and in the read models. */
class RuntimeReads {
  readonly #deps: RuntimeSourceDeps

  constructor(deps: RuntimeSourceDeps) {
    this.#deps = deps
  }

  async queries(asker: Asker, texts: 'texts' | 'no texts'): Promise<QueryListRow[]> {
    const [most, characters] = texts === 'texts' ? [PAGE_TEXTS, WHOLE_TEXTS] : [PAGE_QUERIES, 0]
    const shown = await this.#shownTo(asker)
    const { without, ...filter } = shown.filter
    const inMemory = shown.inMemory.map((view) => liveRow(view, this.#deps.clock.now()))
    const rows: QueryListRow[] = []
    for (let bytes = 0; rows.length < MAX_QUERIES;) {
      const last = rows.at(-1)
      const after = last ? { ...filter, cursor: cursorOf(last, NEWEST_FIRST) } : filter
      const stored = await readQueries(this.#read, { ...after, ...(without && { without }) }, most, characters)
      const page = overlay(stored, inMemory, after, most)
      for (const row of page) {
        if (texts === 'texts') bytes += row.sql_text.length
        if (bytes > MAX_BYTES) return rows
        rows.push(row)
      }
      if (page.length < most) break
    }
    return rows
  }

  /** Events of the newest queries. */
  async events(asker: Asker, withData: boolean): Promise<Row[]> {
    const ids = (await this.#queryIds(asker)).slice(0, MAX_EVENT_QUERIES)
    if (!withData) return readStreamHeads(this.#read, ids)
    const seesEnder = enderSeenBy(asker, this.#deps.authorize)
    const rows: Row[] = []
    for (let bytes = 0; ids.length > 0 && bytes < MAX_BYTES;) {
      for (const event of await readStreams(this.#read, ids.splice(0, PAGE_EVENT_QUERIES))) {
        const data = event.forgotten ? null : JSON.stringify(shownData(event, seesEnder))
        bytes += data?.length ?? 0
        rows.push(eventRowOf(event, data))
      }
    }
    return rows
  }

  async tasks(asker: Asker): Promise<TaskListRow[]> {
    const ids = await this.#queryIds(asker)
    const inMemory = ids.flatMap((queryId) => this.#deps.live.get(queryId) ?? [])
    const known = new Set(inMemory.map((view) => view.query.queryId))
    const fresh = inMemory.flatMap(({ query, liveStats }) =>
      [...query.tasks.values()].map((task) => {
        const stats = liveStats.get(task.taskId)
        return taskListRow.parse(
          taskRow(query.queryId, task.endedAt === undefined && stats ? { ...task, stats } : task),
        )
      }),
    )
    const others = ids.filter((queryId) => !known.has(queryId))
    return [...fresh, ...(await readTasks(this.#read, others))]
  }

  async operators(asker: Asker): Promise<Row[]> {
    const rows = await readOperators(this.#read, await this.#queryIds(asker))
    return rows.map((row) => ({ ...row, stage_id: `${row.query_id}.${row.stage_id}` }))
  }

  readonly #read: QueryRows = async (text, values) => {
    try {
      return await this.#deps.read(text, values)
    } catch (error) {
      this.#deps.onError?.(error)
      throw readFailure(error, 'The list of queries')
    }
  }

  /** The queries that a user may see: those in memory, and the filter that finds the others. */
  async #shownTo(asker: Asker): Promise<{ inMemory: LiveQueryView[]; filter: QueryFilter }> {
    const { live, clock, authorize } = this.#deps
    const seen = await seenBy(asker, authorize, this.#read)
    const inMemory = live.list().filter((view) => seen.has(view.query.created.session))
    const endedSince = new Date(clock.now() - RECENT_MS).toISOString()
    return { inMemory, filter: { ...seen.filter, endedSince, without: inMemory.map(({ query }) => query.queryId) } }
  }

  /** The ids of the queries that a user may see, newest first. */
  async #queryIds(asker: Asker): Promise<QueryId[]> {
    const { inMemory, filter } = await this.#shownTo(asker)
    const rows = inMemory.map((view) => liveRow(view, this.#deps.clock.now()))
    const newest = sortedRows(rows, NEWEST_FIRST).map((row) => row.query_id)
    return [...newest, ...(await readQueryIds(this.#read, filter, MAX_QUERIES))].slice(0, MAX_QUERIES)
  }
}

function nodeRows({ self, membership }: Pick<RuntimeSourceDeps, 'self' | 'membership'>): Row[] {
  const { nodeId, url, version } = self
  return [
    { node_id: nodeId, http_uri: url, node_version: version, coordinator: true, state: 'active' },
    ...membership.nodes().map((node) => ({
      node_id: node.nodeId,
      http_uri: node.url,
      node_version: node.version,
      coordinator: false,
      state: stateOf(node),
    })),
  ]
}

function eventRowOf({ stream, sequence, epoch, type, v, time, hash }: Recorded, data: string | null): Row {
  return { stream, sequence, epoch, type, version: v, time, hash, data }
}

function queryRowOf(row: QueryListRow): Row {
  return {
    query_id: row.query_id,
    state: row.state,
    user: row.user_name,
    source: row.source,
    query: row.sql_text,
    resource_group_id: groupPath(row.resource_group),
    queued_time_ms: wholeMillis(row.queued_ms),
    analysis_time_ms: wholeMillis(row.analysis_ms),
    planning_time_ms: wholeMillis(row.planning_ms),
    created: row.created_at,
    started: row.execution_started_at,
    last_heartbeat: row.last_event_at,
    end: row.ended_at,
    error_type: row.error_type,
    error_code: row.error_name,
  }
}

function taskRowOf(row: TaskListRow): Row {
  return {
    node_id: row.node_id,
    task_id: row.task_id,
    stage_id: `${row.query_id}.${row.stage_id}`,
    query_id: row.query_id,
    state: row.state,
    splits: row.splits,
    queued_splits: row.queued_splits,
    running_splits: row.running_splits,
    completed_splits: row.completed_splits,
    split_scheduled_time_ms: wholeMillis(row.scheduled_ms),
    split_cpu_time_ms: wholeMillis(row.cpu_ms),
    split_blocked_time_ms: wholeMillis(row.blocked_ms),
    raw_input_bytes: row.raw_input_bytes,
    raw_input_rows: row.raw_input_rows,
    processed_input_bytes: row.processed_input_bytes,
    processed_input_rows: row.processed_input_rows,
    output_bytes: row.output_bytes,
    output_rows: row.output_rows,
    physical_input_bytes: row.raw_input_bytes,
    physical_written_bytes: 0,
    created: row.created_at,
    start: row.started_at,
    last_heartbeat: row.last_heartbeat_at,
    end: row.ended_at,
  }
}

function wholeMillis(millis: number | null): number | null {
  return millis === null ? null : Math.round(millis)
}
