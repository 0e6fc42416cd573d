import { setTimeout as sleep } from 'node:timers/promises'
import { Fenced, type StreamReader } from '../../events/event-log.ts'
import { queryOfStream, type QueryId } from '../../shared/ids.ts'
import { howToRetry } from '../../shared/quipu-error.ts'
import type { RelayedPage } from '../clusters/relay/sealed-address.ts'
import { preparedStatement, type PrepareStatementDeps } from '../query/results/prepare-statement.ts'
import type { StatementService } from '../query/results/statement-service.ts'
import type { QueryRegistry } from '../query/registry/query-registry.ts'
import { canceledByClient } from '../query/stream/ending.ts'
import type { QuerySession } from '../query/stream/events.ts'
import { readQuery } from '../query/stream/read-query.ts'
import { isTerminal, type KnownQuery } from '../query/stream/state.ts'
import type { TargetResult } from './act-state.ts'
import type { StartedAct } from './acts.ts'

export interface RerunDeps {
  /** Reads streams of queries, wherever they are stored. */
  readonly log: StreamReader
  readonly registry: Pick<QueryRegistry, 'get' | 'list'>
  readonly service: Pick<StatementService, 'submit' | 'poll' | 'cancel'>
  readonly prepare: PrepareStatementDeps
  /** The base of the addresses of the query. */
  readonly baseUri: string
  /** Why the user of the session may not run statements without a new log-in; undefined: they may. */
  readonly notAsBefore: (session: QuerySession) => string | undefined
  /** The query that runs a query again for an act, if there is one in the record. */
  readonly recordedRerun: (queryId: QueryId, act: StartedAct) => Promise<QueryId | undefined>
}

const POLL_MS = 1000
const PAUSE_MS = 500

/**
 * Runs the statement of an ended query again, as the same user and with the same session, like a statement that a
 * client posts: rules and limits in force now decide. Reads the result to its end and drops it. Once the act is stopped,
 * it cancels the new query.
 * @param run `again`: whether an earlier coordinator may have begun with it; `stopped`: aborted once the act is stopped
 */
export async function rerunQuery(
  deps: RerunDeps,
  queryId: QueryId,
  act: StartedAct,
  { again, stopped }: { readonly again: boolean; readonly stopped: AbortSignal },
): Promise<TargetResult> {
  const begun = again ? await begunRerun(deps, queryId, act) : undefined
  if (begun) return resultOf(deps, begun, stopped)
  const { state: query } = await readQuery(deps.log, queryId)
  if (query.kind === 'NONE') return { outcome: 'unknown' }
  if (!isTerminal(query.kind)) return { outcome: 'unchanged' }
  const refusal = refusalOf(deps, query)
  if (refusal !== undefined) return { outcome: 'refused', why: refusal }
  return resultOf(deps, await submit(deps, query, act), stopped)
}

/** The query that an earlier coordinator began for this act. */
async function begunRerun({ registry, recordedRerun }: RerunDeps, queryId: QueryId, act: StartedAct) {
  const open = registry.list().find(({ aggregate: { state } }) => {
    const rerun = state.kind === 'NONE' ? undefined : state.created.rerun
    return rerun?.act === act.actId && rerun.queryId === queryId
  })
  return open?.queryId ?? recordedRerun(queryId, act)
}

/** Why the statement may not run again. */
function refusalOf({ notAsBefore }: RerunDeps, { created }: KnownQuery): string | undefined {
  const { session, redacted } = created
  if (redacted) return 'Its text had secrets, which the record does not have'
  if (session.transactionId !== undefined && session.transactionId !== 'NONE') return 'It was part of a transaction'
  return notAsBefore(session)
}

/** @throws QuipuError as `StatementService.submit` does; with `later` when the server takes no statement now */
async function submit(deps: RerunDeps, { queryId, created }: KnownQuery, act: StartedAct): Promise<QueryId> {
  const { sql, session, headerFamily } = created
  const rerun = { queryId, act: act.actId }
  const rest = { baseUri: deps.baseUri, headerFamily, sampled: false, rerun }
  const prepared = await preparedStatement(deps.prepare, sql, asSent(session), rest)
  return (await deps.service.submit(prepared)).queryId
}

/** The session as the client sent it, before the rules in force then set properties. */
function asSent({ propertyRules, ...session }: QuerySession): QuerySession {
  if (!propertyRules) return session
  const given = new Set(propertyRules.given)
  const sent = Object.entries(session.properties).filter(([name]) => !given.has(name))
  return { ...session, properties: { ...Object.fromEntries(sent), ...propertyRules.overridden } }
}

/**
 * Follows a query to its end, as its client would. The reason of a failure has no message: a message may contain values
 * of the statement, and the events of the act outlive the query.
 */
async function resultOf(deps: RerunDeps, queryId: QueryId, stopped: AbortSignal): Promise<TargetResult> {
  const errorName = await followed(deps, queryId, stopped)
  return errorName === undefined
    ? { outcome: 'done' }
    : { outcome: 'failed', why: `Query ${queryId} failed: ${errorName}` }
}

/** @returns the name of the query's error; undefined if it finished */
async function followed(deps: RerunDeps, queryId: QueryId, stopped: AbortSignal): Promise<string | undefined> {
  const { registry } = deps
  let page: Page = { token: registry.get(queryId)?.firstToken ?? 0 }
  while (registry.get(queryId)) {
    if (stopped.aborted) await repeated(() => deps.service.cancel(queryId, canceledByClient, POLL_MS))
    const answer = await repeated(() => readPage(deps, queryId, page))
    if (answer === 'gone') break
    if (answer.next === undefined) return answer.errorName
    page = answer.next
  }
  const { state } = await repeated(() => readQuery(deps.log, queryOfStream(queryId)))
  if (state.kind === 'FAILED') return state.failure.errorName
  return state.kind === 'FINISHED' ? undefined : 'it is not known any more'
}

interface Page {
  readonly token: number
  readonly relayed?: RelayedPage
}

/** The page that follows, or the end of the query. */
type PageAnswer =
  | { readonly next: Page }
  | { readonly next: undefined; readonly errorName: string | undefined }
  | 'gone'

/** Reads the rows of a page and drops them. */
async function readPage({ service }: RerunDeps, queryId: QueryId, { token, relayed }: Page): Promise<PageAnswer> {
  const answer = await service.poll(queryId, token, POLL_MS, relayed)
  switch (answer.kind) {
    case 'relayed': {
      if (answer.data) for await (const _ of answer.data);
      const { error } = await answer.tail
      const isLast = error !== undefined || answer.next === undefined
      return isLast
        ? { next: undefined, errorName: error?.errorName }
        : { next: { token: token + 1, relayed: answer.next } }
    }
    case 'answer': {
      const { failure, nextToken } = answer
      if (failure || nextToken === undefined) return { next: undefined, errorName: failure?.errorName }
      return { next: { token: nextToken, ...(relayed && { relayed }) } }
    }
    case 'gone':
    case 'unknown':
      return 'gone'
  }
}

/**
 * Repeats a read until it does not fail with `later`. The caller of `rerunQuery` must not get such an error once the
 * query has begun, because it would run the statement a second time.
 */
async function repeated<T>(read: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await read()
    } catch (error) {
      if (error instanceof Fenced || howToRetry(error) !== 'later') throw error
      await sleep(PAUSE_MS, undefined, { ref: false })
    }
  }
}
