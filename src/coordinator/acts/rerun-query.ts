import { LogUnavailable, type StreamReader } from '../../events/event-log.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { queryOfStream, type QueryId } from '../../shared/ids.ts'
import type { RelayedPage } from '../clusters/relay/sealed-address.ts'
import { preparedStatement, type PrepareStatementDeps } from '../query/results/prepare-statement.ts'
import type { StatementService } from '../query/results/statement-service.ts'
import type { QueryRegistry } from '../query/registry/query-registry.ts'
import type { QuerySession } from '../query/stream/events.ts'
import { readQuery } from '../query/stream/read-query.ts'
import { isTerminal, type KnownQuery } from '../query/stream/state.ts'
import type { TargetResult } from './act-state.ts'
import type { StartedAct } from './acts.ts'

export interface RerunDeps {
  /** Reads streams of queries, wherever they are stored. */
  readonly log: StreamReader
  readonly registry: Pick<QueryRegistry, 'get' | 'list'>
  readonly service: Pick<StatementService, 'submit' | 'poll'>
  readonly prepare: PrepareStatementDeps
  /** The base of the addresses of the query. */
  readonly baseUri: string
  /** Why the user of the session may not run statements without a new log-in; undefined: they may. */
  readonly notAsBefore: (session: QuerySession) => string | undefined
  /** The query that runs a query again for an act, if there is one in the record. */
  readonly recordedRerun: (queryId: QueryId, act: StartedAct) => Promise<QueryId | undefined>
}

const POLL_MS = 1000

/**
 * Runs the statement of an ended query again, as the same user and with the same session, like a statement that a
 * client posts: rules and limits in force now decide. Reads the result to its end and drops it.
 * @param again true if an earlier coordinator may have begun with it
 */
export async function rerunQuery(
  deps: RerunDeps,
  queryId: QueryId,
  act: StartedAct,
  again: boolean,
): Promise<TargetResult> {
  const begun = again ? await begunRerun(deps, queryId, act) : undefined
  if (begun) return resultOf(deps, begun)
  const { state: query } = await readQuery(deps.log, queryId)
  if (query.kind === 'NONE') return { outcome: 'unknown' }
  const refusal = isTerminal(query.kind) ? refusalOf(deps, query) : undefined
  if (refusal !== undefined) return { outcome: 'refused', why: refusal }
  if (!isTerminal(query.kind)) return { outcome: 'unchanged' }
  return resultOf(deps, await submit(deps, query, act))
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

/** @throws LogUnavailable when the server takes no statement now */
async function submit(deps: RerunDeps, { queryId, created }: KnownQuery, act: StartedAct): Promise<QueryId> {
  const { sql, session, headerFamily } = created
  const rerun = { queryId, act: act.actId }
  const rest = { baseUri: deps.baseUri, headerFamily, sampled: false, rerun }
  const prepared = await preparedStatement(deps.prepare, sql, asSent(session), rest)
  try {
    return (await deps.service.submit(prepared)).queryId
  } catch (error) {
    // Too many statements are open: the server takes it later.
    if (error instanceof EngineError) throw new LogUnavailable(error.message)
    throw error
  }
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
async function resultOf(deps: RerunDeps, queryId: QueryId): Promise<TargetResult> {
  const errorName = await followed(deps, queryId)
  return errorName === undefined
    ? { outcome: 'done' }
    : { outcome: 'failed', why: `Query ${queryId} failed: ${errorName}` }
}

/** @returns the name of the query's error; undefined if it finished */
async function followed(deps: RerunDeps, queryId: QueryId): Promise<string | undefined> {
  const { registry, service, log } = deps
  let relayed: RelayedPage | undefined
  for (let token = registry.get(queryId)?.firstToken ?? 0; registry.get(queryId);) {
    const answer = await service.poll(queryId, token, POLL_MS, relayed)
    if (answer.kind === 'relayed') {
      if (answer.data) for await (const _ of answer.data);
      const { error } = await answer.tail
      if (error) return error.errorName
      if (!answer.next) return undefined
      relayed = answer.next
      token++
      continue
    }
    if (answer.kind !== 'answer') break
    if (answer.failure) return answer.failure.errorName
    if (answer.nextToken === undefined) return undefined
    token = answer.nextToken
  }
  const { state } = await readQuery(log, queryOfStream(queryId))
  if (state.kind === 'FAILED') return state.failure.errorName
  return state.kind === 'FINISHED' ? undefined : 'it is not known any more'
}
