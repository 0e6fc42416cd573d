import { steadyWall, type Clock } from '../../shared/clock.ts'
import { withDeadline } from '../../shared/deadline.ts'
import { EngineError, failureOf, type Failure } from '../../shared/engine-error.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import type { TaskStats } from '../../execution/api/task.ts'
import { Fenced, LogUnavailable as LogOverloaded, type EventLog } from '../../events/event-log.ts'
import type { StatementMemory } from '../dispatch/statement-memory.ts'
import { ownerOf, statementBytes } from './held-bytes.ts'
import type { PostedStatement, QueryExecution, Submission } from './query-handle.ts'
import type { QueryRegistry } from './query-registry.ts'
import type { ResultPageSource } from './result-page-source.ts'
import { readQuery } from './read-query.ts'
import { isTerminal, type KnownQuery } from './state.ts'
import { secretsAreGone } from './execution/worker-stage.ts'

/** What a client is told of a query at one token. */
export type StatementAnswer =
  | {
      readonly kind: 'answer'
      readonly query: KnownQuery
      readonly liveStats: ReadonlyMap<string, TaskStats>
      readonly queuedReason: string | undefined
      /** What the answer's nextUri counts to; absent on the last one. */
      readonly nextToken: number | undefined
      readonly page: { readonly token: number; readonly bytes: Buffer; readonly rows: number } | undefined
      /** The query's failure, or that of a page that is lost. */
      readonly failure: Failure | undefined
      /** No such answer may change any more: asked again, it is the same to the byte. */
      readonly settled: boolean
    }
  | { readonly kind: 'gone' }
  | { readonly kind: 'unknown' }

export interface StatementService {
  /**
   * Starts a query. Resolves when its id may be told and its plan is known, or a moment after the former.
   * @throws EngineError TOO_MANY_REQUESTS_FAILED too many open queries, or too much memory for them; SERVER_SHUTTING_DOWN; LogUnavailable after its wait, or with a full disk
   */
  submit(statement: PostedStatement): Promise<QueryExecution>
  /** What token n has to say now; waits for something new at most `waitMs`. */
  poll(queryId: string, token: number, waitMs: number): Promise<StatementAnswer>
  /** @returns 'done' when the cancel (or an earlier end) is valid, 'unknown' for no such query, 'waiting' after `waitMs` */
  cancel(queryId: string, failure: Failure, waitMs: number): Promise<'done' | 'unknown' | 'waiting'>
  /** Ends a stage early; the query goes on with what it has. `unknown`: no such open query; `writes`: refused, it writes. */
  cancelStage(queryId: string, stage: number): Promise<'done' | 'unknown' | 'writes'>
  /** Is there such a query, open or ended a while ago? Counts as a sign of life of its client. */
  heartbeat(queryId: string): Promise<boolean>
}

/** The event log did not answer in time; nothing is known to have happened. */
export class LogUnavailable extends Error {
  override readonly name = 'LogUnavailable'
}

export interface StatementServiceDeps {
  readonly clock: Clock
  readonly log: Pick<EventLog, 'readStream' | 'tip'>
  readonly registry: QueryRegistry
  readonly pages: ResultPageSource
  readonly memory: StatementMemory
  readonly start: (submission: Submission) => QueryExecution
  readonly limits: {
    readonly openQueries: number
    readonly postLogWaitMs: number
    readonly postPlanWaitMs: number
    readonly answersKeptMs: number
  }
  readonly accepting: () => boolean
  /** Of this coordinator: a higher one in the log is another's, who decides what a client is told. */
  readonly epoch: number
  /** False when the disk is too full for more of the event log. */
  readonly hasDiskRoom: () => boolean
}

export function createStatementService(deps: StatementServiceDeps): StatementService {
  const { clock, registry } = deps
  /** The highest token each query's client asked for: it has all pages before. */
  const asked = new WeakMap<QueryExecution, number>()
  const delivered = new WeakMap<QueryExecution, number>()

  const wall = steadyWall(clock)
  const begunMs = clock.monotonicMs()
  /** Counted from this process's start at the earliest: the wall clock may have jumped between the end and that. */
  const isForgotten = (endedAt: string): boolean =>
    Math.min(wall() - Date.parse(endedAt), clock.monotonicMs() - begunMs) > deps.limits.answersKeptMs

  async function pollLive(execution: QueryExecution, token: number, waitMs: number): Promise<StatementAnswer> {
    registry.touch(execution.queryId)
    execution.follow()
    const highest = asked.get(execution) ?? execution.firstToken
    if (token < highest) return confirmed({ kind: 'gone' }, waitMs)
    if (token > highest) {
      asked.set(execution, token)
      execution.acknowledge(token)
    }
    const deadline = clock.monotonicMs() + waitMs
    for (;;) {
      const left = deadline - clock.monotonicMs()
      const { revision } = execution
      const query = execution.aggregate.state
      const answer = query.kind === 'NONE' ? undefined : await tellLive(execution, query, token, left)
      if (answer) return answer
      if (left <= 0) return status(execution, token)
      await execution.news(revision, left)
    }
  }

  /** What the valid state says about a token; undefined when only waiting helps. */
  async function tellLive(
    execution: QueryExecution,
    query: KnownQuery,
    token: number,
    leftMs: number,
  ): Promise<StatementAnswer | undefined> {
    const { liveStats, queuedReason } = execution
    const base = { kind: 'answer', query, liveStats, queuedReason } as const
    if (query.kind === 'FAILED')
      return { ...base, nextToken: undefined, page: undefined, failure: query.failure, settled: true }
    const complete = query.resultComplete || (query.kind === 'FINISHED' && query.pages.length === 0)
    const last = complete && token >= query.pages.length - 1
    if (token < query.pages.length) {
      const record = query.pages[token]!
      let bytes: Buffer | 'lost'
      try {
        const reading = deps.pages.read(query, token, execution.pageInMemory(token))
        // A worker may take its time with a large page; what is beside the log comes at once, or the log is away.
        bytes = await (record.kept === 'log' ? timely(reading, Math.max(leftMs, PAGE_WAIT_MS)) : reading)
      } catch {
        // The worker or the log is away: a page that is published will be there again, or is lost; status until then.
        return leftMs <= 0 ? status(execution, token) : undefined
      }
      if (bytes === 'lost') return pageLost(execution, query, token)
      const page = { token, bytes, rows: record.rows }
      if (!last) {
        recordDelivery(execution, token, record.rows, bytes.length)
        return { ...base, nextToken: token + 1, page, failure: undefined, settled: true }
      }
      if (query.kind === 'FINISHED')
        return {
          ...base,
          query: forClient(execution, query),
          nextToken: undefined,
          page,
          failure: undefined,
          settled: true,
        }
      await within(execution.finish(), leftMs)
      const ended = execution.aggregate.state
      if (ended.kind !== 'FINISHED') return undefined
      return {
        ...base,
        query: forClient(execution, ended),
        nextToken: undefined,
        page,
        failure: undefined,
        settled: true,
      }
    }
    if (complete && token === query.pages.length) {
      if (query.kind !== 'FINISHED') await within(execution.finish(), leftMs)
      const ended = execution.aggregate.state
      if (ended.kind !== 'FINISHED') return undefined
      return {
        ...base,
        query: forClient(execution, ended),
        nextToken: undefined,
        page: undefined,
        failure: undefined,
        settled: true,
      }
    }
    if (query.kind === 'FINISHED') return confirmed({ kind: 'unknown' }, Math.max(leftMs, PAGE_WAIT_MS))
    return undefined
  }

  function status(execution: QueryExecution, token: number): StatementAnswer {
    const intended = execution.aggregate.intended
    const query = intended.kind === 'NONE' || isTerminal(intended.kind) ? execution.aggregate.state : intended
    if (query.kind === 'NONE') throw new LogUnavailable('the query is not in the log yet')
    const { liveStats, queuedReason } = execution
    return {
      kind: 'answer',
      query,
      liveStats,
      queuedReason,
      nextToken: token,
      page: undefined,
      failure: undefined,
      settled: false,
    }
  }

  async function pageLost(execution: QueryExecution, query: KnownQuery, token: number): Promise<StatementAnswer> {
    const failure = await confirmed(lostFailure(token), CONFIRM_LOSS_MS)
    execution.recordLoss(token, failure.message)
    if (!isTerminal(query.kind)) await execution.fail(failure)
    const { liveStats, queuedReason } = execution
    return {
      kind: 'answer',
      query,
      liveStats,
      queuedReason,
      nextToken: undefined,
      page: undefined,
      failure,
      settled: true,
    }
  }

  /** Not waited for, at most one a second a query, and only where a restart could otherwise not know. */
  function recordDelivery(execution: QueryExecution, token: number, rows: number, bytes: number): void {
    const now = clock.monotonicMs()
    if (now - (delivered.get(execution) ?? -Infinity) < 1000) return
    delivered.set(execution, now)
    execution.recordDelivery(token, rows, bytes)
  }

  /** Queries that ended before this process, or that it has forgotten: the log knows them. */
  async function pollPast(queryId: QueryId, token: number, waitMs: number): Promise<StatementAnswer> {
    const query = (await timely(readQuery(deps.log, queryId), waitMs)).state
    if (query.kind === 'NONE') return confirmed({ kind: 'unknown' }, Math.max(waitMs, PAGE_WAIT_MS))
    if (query.kind !== 'FINISHED' && query.kind !== 'FAILED') return pollUnclaimed(queryId, token, waitMs, query)
    if (isForgotten(query.endedAt)) return { kind: 'unknown' }
    const base = { kind: 'answer', query, liveStats: new Map(), queuedReason: undefined, settled: true } as const
    if (query.kind === 'FAILED') return { ...base, nextToken: undefined, page: undefined, failure: query.failure }
    if (token < query.delivered) return { kind: 'gone' }
    if (token > query.pages.length || (token === query.pages.length && token > 0)) return { kind: 'unknown' }
    // Without them the client would go on with half a session.
    if (query.created.redacted && query.finished.responseHeaders.length > 0)
      return {
        ...base,
        query: { ...query, finished: { ...query.finished, responseHeaders: [] } },
        nextToken: undefined,
        page: undefined,
        failure: secretsAreGone().toFailure(),
        settled: false,
      }
    const record = query.pages[token]
    if (!record) return { ...base, nextToken: undefined, page: undefined, failure: undefined }
    const reading = deps.pages.read(query, token, undefined).catch((cause: unknown) => {
      // Not to be had now is not lost: that the page source says by itself, in time.
      throw new LogUnavailable('The page cannot be had now', { cause })
    })
    const bytes = await (record.kept === 'log' ? timely(reading, Math.max(waitMs, PAGE_WAIT_MS)) : reading)
    if (bytes === 'lost') return { ...base, nextToken: undefined, page: undefined, failure: lostFailure(token) }
    return {
      ...base,
      nextToken: token === query.pages.length - 1 ? undefined : token + 1,
      page: { token, bytes, rows: record.rows },
      failure: undefined,
    }
  }

  /**
   * A negative answer, and one that makes an end, speaks about the whole log: this process may have been fenced in its
   * sleep. @throws Fenced then: who writes now decides; LogUnavailable when the log does not say in time
   */
  async function confirmed<T>(answer: T, waitMs: number): Promise<T> {
    const tip = await timely(deps.log.tip(), waitMs)
    if (tip.at.some(({ state }) => state.epoch > deps.epoch)) throw new Fenced('Another coordinator writes the log')
    return answer
  }

  /** Open in the log, yet not here: recovery comes to it, or another coordinator has it. */
  async function pollUnclaimed(
    queryId: QueryId,
    token: number,
    waitMs: number,
    query: KnownQuery,
  ): Promise<StatementAnswer> {
    const until = clock.monotonicMs() + waitMs
    for (let left = waitMs; left > 0; left = until - clock.monotonicMs()) {
      const execution = registry.get(queryId)
      if (execution) return pollLive(execution, token, left)
      await registry.added(left)
    }
    const unknown = { liveStats: new Map(), queuedReason: undefined, page: undefined, failure: undefined }
    return { kind: 'answer', query, ...unknown, nextToken: token, settled: false }
  }

  return {
    async submit(statement) {
      if (!deps.accepting()) throw new EngineError('SERVER_SHUTTING_DOWN', 'The server is shutting down')
      if (registry.open >= deps.limits.openQueries)
        throw new EngineError(
          'TOO_MANY_REQUESTS_FAILED',
          `Too many open queries: ${deps.limits.openQueries} are allowed`,
        )
      if (!deps.hasDiskRoom())
        throw new LogUnavailable('The disk of the data folder is almost full: no statement is accepted')
      const { sql, created } = statement
      const execution = deps.start({
        ...statement,
        held: deps.memory.hold(ownerOf(created), statementBytes(sql, created)),
      })
      registry.add(execution)
      const accepted = await within(execution.created, deps.limits.postLogWaitMs).catch((error: unknown) => {
        // Too much waits for a log that is away: it says so at once.
        if (error instanceof LogOverloaded) return false
        throw error
      })
      if (!accepted) {
        const message = 'The event log did not answer in time; the client was told that the statement was not accepted'
        // It may become valid yet: then it ends at once, and nobody waits for it.
        void execution.fail(failureOf('ABANDONED_QUERY', message)).catch(() => {})
        throw new LogUnavailable('The event log does not answer; the statement was not accepted')
      }
      await within(execution.planKnown, deps.limits.postPlanWaitMs)
      return execution
    },
    async poll(queryId, token, waitMs) {
      if (!isQueryId(queryId)) return { kind: 'unknown' }
      const execution = registry.get(queryId)
      return execution ? pollLive(execution, token, waitMs) : pollPast(queryId, token, waitMs)
    },
    async cancel(queryId, failure, waitMs) {
      if (!isQueryId(queryId)) return 'unknown'
      const deadline = clock.monotonicMs() + waitMs
      let execution = registry.get(queryId)
      while (!execution) {
        const { state } = await readQuery(deps.log, queryId)
        if (state.kind === 'NONE')
          return confirmed('unknown' as const, Math.max(deadline - clock.monotonicMs(), PAGE_WAIT_MS))
        if (isTerminal(state.kind)) return 'done'
        // Recovery may have come to it while its stream was read; who waits then is told of no addition.
        execution = registry.get(queryId)
        if (execution) break
        const left = deadline - clock.monotonicMs()
        if (left <= 0) return 'waiting'
        await registry.added(left)
        execution = registry.get(queryId)
      }
      void execution.fail(failure).catch(() => {})
      while (!isTerminal(execution.aggregate.state.kind)) {
        const left = deadline - clock.monotonicMs()
        if (left <= 0) return 'waiting'
        await execution.news(execution.revision, left)
      }
      return 'done'
    },
    async cancelStage(queryId, stage) {
      const execution = registry.get(queryId)
      if (!execution) return 'unknown'
      registry.touch(queryId)
      const { intended } = execution.aggregate
      // A part of its rows in the table would be neither the old table nor the new one.
      if (intended.kind !== 'NONE' && intended.planned?.write) return 'writes'
      await execution.cancelStage(stage)
      return 'done'
    },
    async heartbeat(queryId) {
      if (!isQueryId(queryId)) return false
      if (registry.get(queryId)) {
        registry.touch(queryId)
        return true
      }
      return (await readQuery(deps.log, queryId)).state.kind !== 'NONE'
    },
  }
}

/** The log has what the client is to remember without its secrets. */
function forClient(execution: QueryExecution, query: Finished): Finished {
  const { responseHeaders } = execution
  return responseHeaders ? { ...query, finished: { ...query.finished, responseHeaders: [...responseHeaders] } } : query
}

type Finished = Extract<KnownQuery, { kind: 'FINISHED' }>

function lostFailure(token: number): Failure {
  return failureOf('PAGE_TRANSPORT_ERROR', `Page ${token} of the result is lost`)
}

/** That a page is lost is the end of its query: better later than wrong. */
const CONFIRM_LOSS_MS = 2000

/** A page whose look-up has begun gets so long, whatever is left of the poll's time. */
const PAGE_WAIT_MS = 200

/** @throws LogUnavailable when it takes longer; what was asked goes on */
function timely<T>(asked: Promise<T>, ms: number): Promise<T> {
  return withDeadline(asked, ms, () => new LogUnavailable('The event log does not answer'))
}

/** True when the promise settled well within `ms`; its rejection passes through. */
async function within(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms))
  })
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
