import type { QueryId } from '../shared/ids.ts'
import type { Reservation } from '../coordinator/dispatch/resource-groups.ts'
import type { KnownQuery } from '../coordinator/query/state.ts'
import type { Resumption } from '../coordinator/query/query-handle.ts'
import { querySpanContext } from '../coordinator/query/query-spans.ts'
import { recoverQueries, type QueryStream } from '../coordinator/recovery/recover-queries.ts'
import { readStreamsOfLog, type StreamsOfLog } from '../coordinator/recovery/streams-of-log.ts'
import type { WorkerClient } from '../coordinator/scheduler/worker-client.ts'
import type { EventLog, Recorded } from '../events/event-log.ts'
import type { QueryRows } from '../events/projection.ts'
import type { ProjectionRunner } from '../events/projection-runner.ts'
import { readKnownWorkers } from '../readmodels/nodes/queries.ts'
import { foldQueryStream } from '../readmodels/queries/projection.ts'
import { readStreams } from '../readmodels/query-events/queries.ts'
import { systemClock as clock } from '../shared/clock.ts'
import type { CoordinatorBase } from './coordinator-base.ts'
import { emitRecovery } from './link-spans.ts'

export interface TakeOverParts {
  readonly base: Pick<CoordinatorBase, 'telemetry' | 'read' | 'databaseThere'>
  readonly log: EventLog
  /** Resolves when the read models hold all that the coordinator before wrote. */
  readonly caughtUp: Promise<void>
  readonly epoch: number
  readonly client: Pick<WorkerClient, 'taskNews'>
  readonly reservation: Reservation
  /** Streams read from the log itself, where the read models are not there; `log` gives them by then. */
  readonly onStreams: (streams: StreamsOfLog) => void
  /** Ends of queries from then on are still asked for. */
  readonly endedSince: string
  /** Is the query one of this coordinator's own? It serves new ones already. */
  readonly isOwn: (queryId: string) => boolean
  /** Goes on with a query. */
  readonly resume: (queryId: QueryId, resumption: Resumption) => void
  /** Of a query that was ended, not resumed. */
  readonly onFailed: (query: KnownQuery) => void
}

/** Resolves when the read models hold all that is valid now. */
export async function projected(log: EventLog, projection: Pick<ProjectionRunner, 'barrier'>): Promise<void> {
  while (!(await projection.barrier(10_000))) await log.tip()
}

/** New statements wait no longer until it is known how many come before them. */
const LONGEST_COUNT_MS = 10_000

/** Goes on with what the coordinator before left open, while this one serves already. */
export async function takeOver(parts: TakeOverParts): Promise<void> {
  const { base, log, epoch, client, reservation } = parts
  const { telemetry } = base
  const start = clock.monotonicMs()
  const known = base.databaseThere ? await readKnownWorkers(base.read) : []
  // Every worker learns of this epoch before anything is told on: what an old coordinator still sends has no effect.
  const presented = Promise.allSettled(
    known.map(({ url }) => client.taskNews(url, undefined, AbortSignal.timeout(1000))),
  )
  let left: readonly string[]
  if (base.databaseThere) {
    const late = setTimeout(() => reservation.end(), LONGEST_COUNT_MS)
    await parts.caughtUp
    left = await openQueries(base.read)
    clearTimeout(late)
    reservation.expect(left.length)
  } else {
    // Nobody new waits for as long as the whole log takes.
    reservation.end()
    const streams = await readStreamsOfLog(log, parts.endedSince)
    parts.onStreams(streams)
    left = streams.open
  }
  await presented
  const open = left.filter((queryId) => !parts.isOwn(queryId))
  const takenOver: (string | undefined)[] = []
  const recovered = await recoverQueries(
    {
      log,
      clock,
      epoch,
      ...(base.databaseThere ? { readMany: (queryIds) => projectedStreams(base.read, queryIds) } : {}),
      resume(queryId, resumption) {
        parts.resume(queryId, resumption)
        reservation.came()
        takenOver.push(querySpanContext(resumption.state))
      },
      onFailed(query) {
        parts.onFailed(query)
        reservation.came()
      },
    },
    open,
  ).finally(() => reservation.end())
  const milliseconds = clock.monotonicMs() - start
  const meters = telemetry.meters()
  meters.set('recoveryDuration', {}, milliseconds / 1000)
  meters.count('recoveredQueries', { outcome: 'resumed' }, recovered.resumed)
  meters.count('recoveredQueries', { outcome: 'failed' }, recovered.failed)
  meters.count('recoveredQueries', { outcome: 'finished' }, recovered.ended)
  emitRecovery(telemetry.spans(), { epoch, milliseconds, queries: open.length, traceparents: takenOver })
  if (open.length > 0)
    telemetry.logger.info(
      'recovery',
      { ...recovered, milliseconds: Math.round(milliseconds) },
      'Queries of the coordinator before were taken over',
    )
}

/** The read models hold all that was written before: a hundred streams cost one question, not as many. */
async function projectedStreams(
  read: QueryRows,
  queryIds: readonly string[],
): Promise<ReadonlyMap<string, QueryStream>> {
  const streams = new Map<string, Recorded[]>()
  for (const event of await readStreams(read, queryIds)) {
    const events = streams.get(event.stream)
    if (events) events.push(event)
    else streams.set(event.stream, [event])
  }
  const folded = new Map<string, QueryStream>()
  for (const [queryId, events] of streams) {
    const { state, sequence, incomplete } = foldQueryStream(events)
    // An event that could not be projected: the log has it.
    if (!incomplete && events.length === sequence) folded.set(queryId, { state, sequence })
  }
  return folded
}

/** Streams of queries without an end, in the order of their creation. */
async function openQueries(read: QueryRows): Promise<readonly string[]> {
  const rows = await read(`select query_id from queries where ended_at is null order by created_at, query_id`, [])
  return rows.map((row) => String(row['query_id']))
}
