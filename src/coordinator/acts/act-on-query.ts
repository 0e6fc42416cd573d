import { LogUnavailable, Unforgettable, type StreamReader } from '../../events/event-log.ts'
import type { QueryId } from '../../shared/ids.ts'
import { endingByAct } from '../query/stream/ending.ts'
import { isOnHold, isTerminal, type KnownQuery } from '../query/stream/state.ts'
import { readQuery } from '../query/stream/read-query.ts'
import type { QueryRegistry } from '../query/registry/query-registry.ts'
import type { StatementService } from '../query/results/statement-service.ts'
import type { ForgetBy, ForgetOutcome } from '../system/forget-query.ts'
import type { ActKind } from '../system/events.ts'
import type { TargetResult } from './act-state.ts'
import type { ActOnQuery, StartedAct } from './acts.ts'
import { rerunQuery, type RerunDeps } from './rerun-query.ts'

export interface ActOnQueryDeps extends RerunDeps {
  readonly log: StreamReader
  readonly registry: Pick<QueryRegistry, 'get' | 'list'>
  readonly service: Pick<StatementService, 'submit' | 'poll' | 'cancel'>
  readonly forget: (queryId: QueryId, administrator: ForgetBy) => Promise<ForgetOutcome>
}

const KILL_WAIT_MS = 30_000

/** The work of each kind of act on one query. Each may be repeated after a crash. */
export function createActsOnQuery(deps: ActOnQueryDeps): Readonly<Record<ActKind, ActOnQuery>> {
  return {
    kill: (queryId, act) => kill(deps, queryId, act),
    hold: (queryId, act) => hold(deps, queryId, act),
    release: (queryId, act) => release(deps, queryId, act),
    rerun: (queryId, act, again, stopped) => rerunQuery(deps, queryId, act, { again, stopped }),
    forget: (queryId, act) => forget(deps, queryId, act),
  }
}

async function kill({ service }: ActOnQueryDeps, queryId: QueryId, act: StartedAct): Promise<TargetResult> {
  const outcome = await service.cancel(queryId, endingByAct(act), KILL_WAIT_MS)
  switch (outcome) {
    case 'done':
      return { outcome: 'done' }
    case 'ended':
      return { outcome: 'unchanged' }
    case 'unknown':
      return { outcome: 'unknown' }
    case 'refused':
      return { outcome: 'refused', why: 'The user may not end the query' }
    case 'waiting':
      return { outcome: 'failed', why: `The query has not ended within ${KILL_WAIT_MS / 1000} s` }
  }
}

async function hold(deps: ActOnQueryDeps, queryId: QueryId, act: StartedAct): Promise<TargetResult> {
  const query = await knownQuery(deps, queryId)
  if (!query) return { outcome: 'unknown' }
  if (query.hold?.act === act.actId) return { outcome: 'done' }
  if (isOnHold(query)) return { outcome: 'unchanged' }
  const held = await deps.registry.get(queryId)?.hold(dataOf(act))
  return { outcome: held ? 'done' : 'unchanged' }
}

async function release(deps: ActOnQueryDeps, queryId: QueryId, act: StartedAct): Promise<TargetResult> {
  const query = await knownQuery(deps, queryId)
  if (!query) return { outcome: 'unknown' }
  if (query.hold?.released?.act === act.actId) return { outcome: 'done' }
  if (!isOnHold(query)) return { outcome: 'unchanged' }
  const released = await deps.registry.get(queryId)?.release(dataOf(act))
  return { outcome: released ? 'done' : 'unchanged' }
}

function dataOf(act: StartedAct) {
  return { act: act.actId, reason: act.reason, by: { user: act.by, ...originOf(act) } }
}

/** The person behind the user of an act, and their address. */
function originOf({ originalUser, remoteAddress }: StartedAct) {
  return {
    ...(originalUser !== undefined && { originalUser }),
    ...(remoteAddress !== undefined && { remoteAddress }),
  }
}

async function forget(deps: ActOnQueryDeps, queryId: QueryId, act: StartedAct): Promise<TargetResult> {
  const administrator = { by: act.by, ...originOf(act), act: act.actId }
  try {
    const { kind } = await deps.forget(queryId, administrator)
    if (kind === 'forgotten') return { outcome: 'done' }
    return kind === 'open' ? { outcome: 'unchanged' } : { outcome: 'unknown' }
  } catch (error) {
    if (!(error instanceof Unforgettable)) throw error
    return { outcome: 'refused', why: error.message }
  }
}

/** The query in memory, or in the log. */
async function knownQuery(
  { log, registry }: Pick<ActOnQueryDeps, 'log' | 'registry'>,
  queryId: QueryId,
): Promise<KnownQuery | undefined> {
  const state = registry.get(queryId)?.aggregate.state ?? (await readQuery(log, queryId)).state
  if (state.kind === 'NONE') return undefined
  // Recovery has not reached the query yet.
  if (!isTerminal(state.kind) && !registry.get(queryId))
    throw new LogUnavailable(`Query ${queryId} is not taken over yet`)
  return state
}
