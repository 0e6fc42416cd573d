import { setImmediate as nextLoopPass, setTimeout as sleep } from 'node:timers/promises'
import {
  Fenced,
  LogChanged,
  LogUnavailable,
  LogWentBackwards,
  NotTaken,
  SequenceConflict,
  type EventAppender,
  type StreamReader,
} from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import { failureOf, type ErrorName, type Failure } from '../../shared/engine-error.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import type { LimitOwnerOf } from '../../shared/limit-owner.ts'
import type { StatementMemory } from '../dispatch/statement-memory.ts'
import { queryBytes } from '../query/registry/held-bytes.ts'
import { personOf } from '../query/session/session-identity.ts'
import { createQueryAggregate, type QueryAggregate } from '../query/stream/query-aggregate.ts'
import type { Resumption } from '../query/registry/query-handle.ts'
import { querySpanContext } from '../query/telemetry/query-spans.ts'
import { foldReadable } from '../query/stream/read-query.ts'
import { isDecided, isTerminal, type KnownQuery, type LiveQuery, type QueryState } from '../query/stream/state.ts'
import { queryTotals, stagesAtEnd } from '../query/statistics/totals.ts'

export interface RecoveredQueries {
  readonly resumed: number
  readonly failed: number
  /** Queries that their last coordinator had ended without the caller's knowledge. */
  readonly ended: number
  /** Neither resumed nor failed: the log cannot be read, or refuses the events. The next coordinator tries again. */
  readonly givenUp: number
}

export interface RecoveryDeps {
  readonly log: EventAppender & StreamReader
  readonly clock: Clock
  readonly epoch: number
  /**
   * Whether the earlier coordinator is known to have died. A coordinator that was only replaced was not killed by a
   * query, so a query without events since then is not suspect.
   */
  readonly writerDied: boolean
  /**
   * Folded streams of many queries at once, as far as available; for the others the log is read.
   * @default none
   */
  readonly readMany?: (queryIds: readonly QueryId[]) => Promise<ReadonlyMap<QueryId, QueryStream>>
  /** The memory for open statements. */
  readonly memory: Pick<StatementMemory, 'holdRecovered'>
  readonly ownerOf: LimitOwnerOf
  /**
   * Continues a query; QueryRecovered is valid, unless the query is at rest. Called in the order of the queries'
   * creation, except for those that were put off.
   */
  readonly resume: (queryId: QueryId, resumption: Resumption) => void
  /** Called for a query that was failed, not resumed. */
  readonly onFailed?: (query: KnownQuery) => void
  /** Called for a query that stays as it is, with the reason. */
  readonly onGivenUp?: (queryId: QueryId, error: unknown) => void
  /** Called when all queries were tried; those whose streams could not be read are tried again from now on. */
  readonly onPutOff?: (queryIds: readonly QueryId[]) => void
  /** The pause between two rounds for queries that were put off, milliseconds. @default 500 */
  readonly againMs?: number
}

/** The state of a query's stream. */
export interface QueryStream {
  readonly state: QueryState
  readonly sequence: number
}

/** How many queries are read and appended together: few, so that new queries get turns in between. */
const CHUNK = 25

/** A coordinator that lived this long after it took a query over was not killed by the query. */
const SUSPECT_MS = 120_000

/**
 * Takes over every query that the earlier coordinator left open, in the given order. QueryRecovered is valid before a
 * query is carried out. A query that was recovered a short while ago, and has no event since, is failed if the earlier
 * coordinator died: no statement may kill coordinators for ever. A query at rest gets no event, and is never failed for
 * that reason. Queries are independent: one that cannot continue is failed or given up, one whose stream cannot be read
 * now is put off, and the others continue.
 * @throws Fenced and the like: this process may not answer clients any more
 */
export async function recoverQueries(deps: RecoveryDeps, open: readonly QueryId[]): Promise<RecoveredQueries> {
  const counts = { resumed: 0, failed: 0, ended: 0, givenUp: 0 }
  let left = await recoverRound(deps, open, counts)
  if (left.length > 0) deps.onPutOff?.(left)
  while (left.length > 0) {
    await sleep(deps.againMs ?? 500)
    left = await recoverRound(deps, left, counts)
  }
  return counts
}

/** @returns the queries that were put off */
async function recoverRound(
  deps: RecoveryDeps,
  open: readonly QueryId[],
  counts: Record<keyof RecoveredQueries, number>,
): Promise<readonly QueryId[]> {
  const putOff: QueryId[] = []
  for (let from = 0; from < open.length; from += CHUNK) {
    const ids = open.slice(from, from + CHUNK)
    const streams = (await deps.readMany?.(ids).catch(() => undefined)) ?? new Map<QueryId, QueryStream>()
    // In parallel, so that their appends share a commit.
    const outcomes = await Promise.all(ids.map((queryId) => recoverAlone(deps, queryId, streams.get(queryId))))
    // In order, so that queries that waited keep the order in which they came.
    for (const outcome of outcomes) {
      if (outcome.kind === 'putOff') putOff.push(outcome.queryId)
      else counts[outcome.kind === 'resumed' ? await resume(deps, outcome) : outcome.kind]++
    }
    await nextLoopPass()
  }
  return putOff
}

type Outcome =
  | {
      readonly kind: 'resumed'
      readonly queryId: QueryId
      readonly aggregate: QueryAggregate
      readonly resumption: Resumption
    }
  | { readonly kind: 'putOff'; readonly queryId: QueryId }
  | { readonly kind: 'failed' | 'ended' | 'givenUp' }

/** The outcome of one query, whatever is wrong with it. @throws Fenced and the like */
async function recoverAlone(deps: RecoveryDeps, queryId: QueryId, stream: QueryStream | undefined): Promise<Outcome> {
  if (!isQueryId(queryId)) return { kind: 'ended' }
  try {
    return await recoverOne(deps, queryId, stream)
  } catch (error) {
    if (isFatal(error)) throw error
    if (error instanceof LogUnavailable) return { kind: 'putOff', queryId }
    deps.onGivenUp?.(queryId, error)
    return { kind: 'givenUp' }
  }
}

async function recoverOne(deps: RecoveryDeps, queryId: QueryId, known: QueryStream | undefined): Promise<Outcome> {
  const stream = known ?? (await foldReadable(deps.log, queryId))
  const { state, sequence } = stream
  const unreadable = 'unreadable' in stream ? stream.unreadable : undefined
  if (isTerminal(state.kind) || (state.kind === 'NONE' && unreadable === undefined)) return { kind: 'ended' }
  if (state.kind === 'NONE') throw unreadable
  const live = state as LiveQuery
  const context = (): string | undefined => querySpanContext(live)
  const aggregate = createQueryAggregate(queryId, deps.log, deps.clock, context, { state, sequence })
  if (unreadable !== undefined) return failOrThrow(deps, aggregate, UNREADABLE, unreadable)
  const refusal = reasonNotToTouch(live, deps)
  const held = refusal
    ? undefined
    : deps.memory.holdRecovered(deps.ownerOf(personOf(live.created)), queryBytes(live), isDecided(live))
  if (!held) return failOrThrow(deps, aggregate, refusal ?? TOO_MUCH, undefined)
  if (isAtRest(live)) return { kind: 'resumed', queryId, aggregate, resumption: { state: live, sequence, held } }
  const data = { count: live.recoveries + 1, phase: live.kind, epoch: deps.epoch }
  try {
    const events = await aggregate.execute([{ type: 'RecoverQuery', data }])
    const resumption = { state: aggregate.state as LiveQuery, sequence: sequence + events, held }
    return { kind: 'resumed', queryId, aggregate, resumption }
  } catch (error) {
    held.release()
    // The stream that was read elsewhere differs from the log: the log itself is read.
    if (error instanceof SequenceConflict && known) return recoverOne(deps, queryId, undefined)
    if (error instanceof NotTaken) return failOrThrow(deps, aggregate, NOT_TAKEN, error)
    throw error
  }
}

/** @returns the final outcome */
async function resume(
  deps: RecoveryDeps,
  { queryId, aggregate, resumption }: Extract<Outcome, { kind: 'resumed' }>,
): Promise<'resumed' | 'failed' | 'givenUp'> {
  try {
    deps.resume(queryId, resumption)
    return 'resumed'
  } catch (error) {
    resumption.held.release()
    const outcome = await failOrThrow(deps, aggregate, NOT_RESUMED, error).catch((failing: unknown) => {
      if (isFatal(failing)) throw failing
      deps.onGivenUp?.(queryId, error)
      return { kind: 'givenUp' } as const
    })
    return outcome.kind
  }
}

/** Whether the error ends the recovery of all queries, since this process may not answer any more. */
function isFatal(error: unknown): boolean {
  return error instanceof Fenced || error instanceof LogWentBackwards || error instanceof LogChanged
}

const restarted: ErrorName = 'COORDINATOR_RESTARTED'

const TOO_MUCH = failureOf(
  restarted,
  'The coordinator was restarted, and the open statements need more memory than allowed; submit the statement again',
)
const UNREADABLE = failureOf(
  restarted,
  'The coordinator was restarted, and the recorded events of the query cannot be read; submit the statement again',
)
const NOT_TAKEN = failureOf(
  restarted,
  'The coordinator was restarted, and the event log refuses to record that the query continues; submit the statement again',
)
const NOT_RESUMED = failureOf(
  restarted,
  'The coordinator was restarted and cannot continue the query; submit the statement again',
)

/**
 * Whether a take-over carries out nothing of the query: its result is complete and its client fetches the pages, or it
 * waits for its slot, and QueryAdmitted is valid before it begins.
 */
function isAtRest(query: LiveQuery): boolean {
  return query.kind === 'FINISHING' || (query.kind === 'QUEUED' && query.queued !== undefined)
}

function reasonNotToTouch(query: LiveQuery, { writerDied, clock }: RecoveryDeps): Failure | undefined {
  // It cannot fail any more, and the work that is left does not run the statement.
  if (isDecided(query)) return undefined
  // A cluster runs a delegated statement, so it cannot be what ends coordinators.
  const untouched = query.recoveries > 0 && query.eventsSinceRecovery === 0 && query.planned?.route !== 'delegated'
  const lately = clock.now() - Date.parse(query.updatedAt) < SUSPECT_MS
  if (writerDied && untouched && lately && !isAtRest(query))
    return failureOf(
      restarted,
      'The coordinator was restarted again while it recovered the query, so it does not try again; submit the statement again',
    )
  if (query.created.redacted && !query.planned)
    return failureOf(
      restarted,
      'The coordinator was restarted before the statement was planned, and secrets in statements are not stored; submit the statement again',
    )
  return undefined
}

/** @throws `cause` when the query can neither continue nor fail: its change is decided */
async function failOrThrow(
  deps: RecoveryDeps,
  aggregate: QueryAggregate,
  failure: Failure,
  cause: unknown,
): Promise<{ readonly kind: 'failed' }> {
  await failQuery(aggregate, deps.clock, failure)
  const { state } = aggregate
  if (state.kind !== 'FAILED') throw cause ?? new Error(`Query ${aggregate.queryId} cannot fail any more`)
  deps.onFailed?.(state)
  return { kind: 'failed' }
}

async function failQuery(aggregate: QueryAggregate, clock: Clock, failure: Failure): Promise<void> {
  const fail = (whole: boolean): Promise<number> =>
    aggregate.execute([
      (query) =>
        query.kind === 'NONE' || !whole
          ? []
          : [...query.tasks.keys()].map((taskId) => ({ type: 'CancelTask', data: { taskId, reason: 'aborted' } })),
      (query) => {
        if (query.kind === 'NONE') return []
        const now = clock.now()
        const figures = {
          stages: whole ? [...stagesAtEnd(query, 'FAILED', new Date(now).toISOString())] : [],
          totals: queryTotals(query, new Map(), now),
        }
        return [{ type: 'FailQuery', failure, figures }]
      },
    ])
  await fail(true).catch((error: unknown) => {
    if (!(error instanceof NotTaken)) throw error
    // The end itself always fits into the log.
    return fail(false)
  })
}
