import { setTimeout as sleep } from 'node:timers/promises'
import type { QueryId } from '../../shared/ids.ts'
import type { Reservation } from '../../coordinator/dispatch/resource-groups.ts'
import type { KnownQuery } from '../../coordinator/query/stream/state.ts'
import type { Resumption } from '../../coordinator/query/registry/query-handle.ts'
import { querySpanContext } from '../../coordinator/query/telemetry/query-spans.ts'
import { recoverQueries, type RecoveryDeps } from '../../coordinator/recovery/recover-queries.ts'
import {
  readStreamsOfLog,
  type StreamsOfLog,
  type StreamsOfLogOptions,
} from '../../coordinator/recovery/streams-of-log.ts'
import type { FreedBy } from '../../coordinator/recovery/writer-liveness.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { WorkerClient } from '../../coordinator/scheduler/worker-client.ts'
import {
  LogChanged,
  LogUnavailable,
  type EventAppender,
  type EventHistory,
  type LogBeginning,
  type LogEnd,
} from '../../events/event-log.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { readKnownWorkers } from '../../readmodels/nodes/queries.ts'
import { findOpenQueries, type OpenQueries } from '../../readmodels/queries/open-queries.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { CoordinatorBase } from './wire-base.ts'
import { emitRecovery } from '../../coordinator/recovery/recovery-spans.ts'

export interface TakeOverDeps {
  readonly base: Pick<CoordinatorBase, 'telemetry' | 'ownRead' | 'databaseThere'>
  /** Reads streams of queries, wherever they are stored. */
  readonly log: EventAppender & EventHistory & LogBeginning & LogEnd
  readonly epoch: number
  readonly journal: Pick<SystemJournal, 'record'>
  /** Why the log could be claimed. */
  readonly freedBy: FreedBy
  readonly client: Pick<WorkerClient, 'taskNews'>
  readonly reservation: Reservation
  readonly memory: RecoveryDeps['memory']
  readonly ownerOf: RecoveryDeps['ownerOf']
  /**
   * Called with the streams that were read from the log itself, where the read models are not there. After the call,
   * `log` returns them.
   */
  readonly onStreams: (streams: StreamsOfLog) => void
  /** Called for such a stream that had no room in memory, with its position. */
  readonly onLeftOut: StreamsOfLogOptions['onLeftOut']
  /** Clients still ask for queries that ended since then. */
  readonly endedSince: string
  /** Whether this coordinator has created the query: it already serves new ones. */
  readonly isOwn: (queryId: QueryId) => boolean
  /** Resumes a query. */
  readonly resume: (queryId: QueryId, resumption: Resumption) => void
  /** Called for a query that was failed, not resumed. */
  readonly onFailed: (query: KnownQuery) => void
}

/**
 * Resolves when the read models hold everything that is in the log now.
 * @param ended once it is aborted nothing waits any more, and the promise stays pending
 */
export async function projected(
  log: LogEnd,
  projection: Pick<ProjectionRunner, 'barrier'>,
  ended?: AbortSignal,
): Promise<void> {
  while (!(await projection.barrier(10_000))) {
    if (ended?.aborted) return new Promise(() => {})
    await log.tip()
  }
}

/** New statements wait no longer than this until it is known how many queries come before them. */
const LONGEST_COUNT_MS = 10_000

/** Resumes the queries that the previous coordinator left open, while this one already serves. */
export async function takeOver(deps: TakeOverDeps): Promise<void> {
  const { base, log, epoch, client, reservation } = deps
  const { telemetry } = base
  const start = clock.monotonicMs()
  const known = base.databaseThere ? await readKnownWorkers(base.ownRead) : []
  // All workers learn this epoch before anything else happens: later requests of an old coordinator have no effect.
  const presented = Promise.allSettled(
    known.map(({ url }) => client.taskNews(url, undefined, AbortSignal.timeout(1000))),
  )
  const left = await untilLogAnswers(() => leftOpen(deps))
  await presented
  const open = left.open.filter((queryId) => !deps.isOwn(queryId))
  recordTakenOver(deps, open)
  const takenOver: (string | undefined)[] = []
  const recovered = await recoverQueries(
    {
      log,
      clock,
      epoch,
      writerDied: deps.freedBy === 'exit',
      memory: deps.memory,
      ownerOf: deps.ownerOf,
      ...(left.readMany ? { readMany: left.readMany } : {}),
      resume(queryId, resumption) {
        deps.resume(queryId, resumption)
        reservation.queryRecovered()
        takenOver.push(querySpanContext(resumption.state))
      },
      onFailed(query) {
        deps.onFailed(query)
        reservation.queryRecovered()
      },
      onGivenUp(queryId, error) {
        reservation.queryRecovered()
        telemetry.logger.error('recovery.given_up', { queryId, err: error }, 'An open query could not be taken over')
      },
      // New statements do not wait for queries that the log does not reveal now.
      onPutOff: () => reservation.end(),
    },
    open,
  ).finally(() => reservation.end())
  const milliseconds = clock.monotonicMs() - start
  const meters = telemetry.meters()
  meters.set('recoveryDuration', {}, milliseconds / 1000)
  meters.count('recoveredQueries', { outcome: 'resumed' }, recovered.resumed)
  meters.count('recoveredQueries', { outcome: 'failed' }, recovered.failed)
  meters.count('recoveredQueries', { outcome: 'finished' }, recovered.ended)
  meters.count('recoveredQueries', { outcome: 'given_up' }, recovered.givenUp)
  emitRecovery(telemetry.spans(), { epoch, milliseconds, queries: open.length, traceparents: takenOver })
  if (open.length > 0)
    telemetry.logger.info(
      'recovery',
      { ...recovered, milliseconds: Math.round(milliseconds) },
      'Open queries of the previous coordinator were taken over',
    )
}

/** An event with this many ids has 300 kB. */
const QUERIES_OF_ONE_EVENT = 10_000

/**
 * Records which queries were taken over. Nothing waits for these events: each query's stream has what the query needs.
 */
function recordTakenOver({ journal, epoch }: Pick<TakeOverDeps, 'journal' | 'epoch'>, open: readonly QueryId[]): void {
  for (let from = 0; from < open.length; from += QUERIES_OF_ONE_EVENT) {
    const queries = open.slice(from, from + QUERIES_OF_ONE_EVENT)
    journal.record('QueriesTakenOver', { epoch, queries }).catch(() => {})
  }
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000

/**
 * Asks again while the log does not answer. The end of this process would not help: its successor would find the log as
 * it is now, and queries whose recovery ends processes are failed.
 */
export async function untilLogAnswers<T>(
  ask: () => Promise<T>,
  pause: (milliseconds: number) => Promise<unknown> = sleep,
): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof LogUnavailable)) throw error
      await pause(pauseMs)
    }
  }
}

/** The queries that the previous coordinator left open, by the log. Never waits for a projection. */
async function leftOpen({
  base,
  log,
  reservation,
  endedSince,
  onStreams,
  onLeftOut,
}: TakeOverDeps): Promise<Pick<OpenQueries, 'open'> & Partial<OpenQueries>> {
  if (base.databaseThere) {
    const late = setTimeout(() => reservation.end(), LONGEST_COUNT_MS)
    try {
      const found = await findOpenQueries(log, base.ownRead)
      reservation.expect(found.open.length)
      return found
    } catch (error) {
      // The read models belong to another log: only this log knows its queries.
      if (!(error instanceof LogChanged)) throw error
    } finally {
      clearTimeout(late)
    }
  }
  // New statements do not wait until the whole log is read.
  reservation.end()
  const streams = await readStreamsOfLog(log, { endedSince, onLeftOut })
  onStreams(streams)
  return { open: streams.open }
}
