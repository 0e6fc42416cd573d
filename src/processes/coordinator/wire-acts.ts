import { Acts } from '../../coordinator/acts/acts.ts'
import { createActsOnQuery } from '../../coordinator/acts/act-on-query.ts'
import type { PrepareStatementDeps } from '../../coordinator/query/results/prepare-statement.ts'
import type { QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import type { TaskRecord } from '../../coordinator/query/stream/state.ts'
import { forgetWholeQuery } from '../../coordinator/system/forget-query.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { readOpenActs } from '../../readmodels/audit/acts.ts'
import { readRerun } from '../../readmodels/queries/queries.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { QueryId } from '../../shared/ids.ts'
import type { QueryHistory } from './query-history.ts'
import type { CoordinatorBase } from './wire-base.ts'
import type { WiredQueries } from './wire-queries.ts'

export interface WireActsDeps {
  readonly base: CoordinatorBase
  readonly history: QueryHistory
  readonly registry: QueryRegistry
  readonly queries: WiredQueries
  readonly journal: SystemJournal
  readonly projection: Pick<ProjectionRunner, 'barrier'>
  readonly prepare: PrepareStatementDeps
  /** Takes a forgotten query out of memory, and its tasks with their pages off the workers. */
  readonly remove: (queryId: QueryId, tasks: readonly TaskRecord[]) => void
  /** Removes forgotten queries from the files of the archive. */
  readonly forgetArchived: () => void
}

/** Puts together acts on many queries. */
export function wireActs(deps: WireActsDeps): Acts {
  const { base, history, registry, queries, journal, projection, remove } = deps
  const { telemetry } = base
  return new Acts({
    journal,
    clock,
    actOn: createActsOnQuery({
      log: history,
      registry,
      service: queries.service,
      prepare: deps.prepare,
      baseUri: base.address,
      notAsBefore: base.access.notAsBefore,
      recordedRerun: (queryId, act) => readRerun(base.ownRead, queryId, act),
      forget: (queryId, administrator) =>
        forgetWholeQuery({ log: base.log, history, journal, remove }, queryId, administrator),
    }),
    async afterLast({ act }) {
      if (act !== 'forget') return
      await projection.barrier(base.config.timeouts.ownWritesWaitMs)
      deps.forgetArchived()
    },
    onOutcome: (act, outcome) => telemetry.meters().count('actQueries', { act, outcome }),
    onStarted({ actId, act, by, matched }) {
      telemetry.meters().count('acts', { act })
      telemetry.logger.info('act.started', { actId, act, user: by, queries: matched }, 'An act on many queries begins')
    },
    onEnded({ started: { actId, act }, outcomes }) {
      telemetry.logger.info('act.ended', { actId, act, ...outcomes }, 'An act on many queries has ended')
    },
    onStopped: ({ actId, act }, user) =>
      telemetry.logger.info('act.stopped', { actId, act, user }, 'A user stops an act on many queries'),
    onError: (queryId, error) =>
      telemetry.logger.warn('act.trouble', { queryId, err: error }, 'An act could do nothing with a query'),
  })
}

/**
 * Continues the acts that an earlier coordinator left unfinished, once its queries are taken over and the read models
 * hold everything that it recorded.
 */
export async function resumeActs(
  acts: Acts,
  { base, recovered, caughtUp }: Pick<WireActsDeps, 'base'> & { recovered: Promise<void>; caughtUp: Promise<void> },
): Promise<void> {
  await recovered
  await caughtUp
  acts.resume(await readOpenActs(base.ownRead))
}
