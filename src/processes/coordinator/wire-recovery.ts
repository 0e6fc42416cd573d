import type { Reservation } from '../../coordinator/dispatch/resource-groups.ts'
import type { QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import { releaseLeftTasks } from '../../coordinator/recovery/left-tasks.ts'
import type { EndedStreams } from '../../coordinator/recovery/ended-streams.ts'
import type { FreedBy } from '../../coordinator/recovery/writer-liveness.ts'
import type { StreamsOfLog } from '../../coordinator/recovery/streams-of-log.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { Tenure } from '../../coordinator/recovery/tenure.ts'
import { Fenced } from '../../events/event-log.ts'
import { deferred } from '../../shared/deferred.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { QueryHistory } from './query-history.ts'
import { runOwnStatement } from '../../coordinator/query/results/own-statement.ts'
import { startSweeping } from '../record/sweeping.ts'
import { takeOver } from './take-over.ts'
import type { CoordinatorBase } from './wire-base.ts'
import type { WiredQueries } from './wire-queries.ts'
import type { WiredWorkers } from './wire-workers.ts'

export interface WireRecoveryDeps {
  readonly base: CoordinatorBase
  readonly epoch: number
  /** Why the log could be claimed. */
  readonly freedBy: FreedBy
  readonly tenure: Tenure
  /** Reads streams of queries, wherever they are stored. */
  readonly history: QueryHistory
  readonly registry: QueryRegistry
  readonly workers: WiredWorkers
  readonly queries: WiredQueries
  /** The slots that queries of the previous coordinator hold. */
  readonly reservation: Reservation
  /** Called with the streams that were read from the log itself. After the call, `history` returns them. */
  readonly onStreams: (streams: StreamsOfLog) => void
  readonly endedStreams: EndedStreams
  readonly journal: Pick<SystemJournal, 'record'>
  /** Called on failure, but not if the log was lost meanwhile. */
  readonly onFailed: (error: unknown) => void
}

/** Takes over what the previous coordinator left, beside new statements. Then tidies tables and workers. */
export interface WiredRecovery {
  /** Resolves when all queries are taken over; stays pending when they cannot be. */
  readonly recovered: Promise<void>
  stop(): Promise<void>
}

export function wireRecovery(deps: WireRecoveryDeps): WiredRecovery {
  const { base, epoch, tenure, history, registry, workers, queries } = deps
  const { localCatalogs: catalogs, telemetry, config } = base
  const { client, cleaner, workers: members } = workers
  const { answersKeptMs } = config.timeouts
  const { logger } = telemetry
  let stopped = false
  const afterwards: (() => Promise<void> | void)[] = []
  const recovered = takeOver({
    base,
    log: history,
    epoch,
    journal: deps.journal,
    freedBy: deps.freedBy,
    client,
    reservation: deps.reservation,
    memory: queries.memory,
    ownerOf: base.access.ownerOf,
    onStreams: deps.onStreams,
    onLeftOut: (queryId, span) => deps.endedStreams.add(queryId, span),
    endedSince: new Date(clock.now() - answersKeptMs).toISOString(),
    isOwn: (queryId) => registry.get(queryId) !== undefined,
    resume: queries.resume,
    onFailed(query) {
      queries.telemetry.recovered(query)
      registry.failedInRecovery()
    },
  })
  const isOver = deferred()
  recovered
    .then(() => {
      if (stopped) return
      isOver.resolve()
      // All earlier decisions are being carried out now, so names may be checked again.
      queries.writeGuard.open()
      const { service, texts, groups } = queries
      const sweeper = startSweeping({
        catalogs,
        clock,
        registry,
        logger,
        active: () => tenure.open,
        runStatement: (sql) => runOwnStatement({ service, texts, groups, baseUri: base.address }, sql),
      })
      afterwards.push(sweeper.stop)
      const stopLeftTasks = releaseLeftTasks({
        client,
        workers: members,
        log: history,
        cleaner,
        held: (queryId) => registry.get(queryId)?.aggregate.intended,
        answersKeptMs,
        onError: (error) => logger.warn('request.failed', { err: error }, 'A worker did not list its tasks'),
      })
      afterwards.push(stopLeftTasks)
    })
    .catch((error: unknown) => {
      // The tenure ends by itself.
      if (tenure.open && !(error instanceof Fenced)) deps.onFailed(error)
    })
  return {
    recovered: isOver.promise,
    async stop() {
      stopped = true
      for (const end of afterwards) await end()
    },
  }
}
