import { randomBytes } from 'node:crypto'
import type { Request, Router } from 'express'
import { z } from 'zod'
import { MOST_ACTS, type Acts, type StartedAct } from '../../coordinator/acts/acts.ts'
import type { KnownAct } from '../../coordinator/acts/act-state.ts'
import { withoutSecrets } from '../../coordinator/query/stream/ending.ts'
import type { ActKind } from '../../coordinator/system/events.ts'
import type { QueryListRow } from '../../readmodels/queries/queries.ts'
import { readActs } from '../../readmodels/audit/acts.ts'
import { groupPath } from '../../coordinator/dispatch/groups/group-path.ts'
import { posterOf, type Identity } from '../../security/authorization.ts'
import { withDeadline } from '../../shared/deadline.ts'
import type { AdministratorDeps } from '../access/administrator.ts'
import { callerOf } from '../access/caller.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { createQueryFinder, type FindQueryDeps } from '../query/find-query.ts'
import type { ListingBounds } from '../query/listing-bounds.ts'
import { queryStates } from '../query/query-states.ts'
import { actBody, actPreviewBody, type ActInfo, type ActPreview } from './act-schemas.ts'
import {
  matchQueries,
  PREVIEWED_CHARACTERS,
  type MatchedQueries,
  type MatchedQueriesDeps,
  type WantedAct,
} from './matched-queries.ts'
import { openPreview, sealPreview } from './preview-token.ts'

export interface ActRoutesDeps
  extends Omit<MatchedQueriesDeps, 'ask' | 'stored'>, FindQueryDeps, Pick<AdministratorDeps, 'isInternal'> {
  readonly acts: Pick<Acts, 'start' | 'stopAct' | 'get' | 'list' | 'running'>
  /** Seals previews. */
  readonly key: Buffer
  /** How long an answer waits for the event log, milliseconds. */
  readonly logWaitMs: number
  /** How long the answer to a stop waits for the end of the act, milliseconds. */
  readonly stopWaitMs: number
}

export const MAX_ACT_BYTES = 64 * 1024
/** How long a preview is valid. */
const VALID_MS = 10 * 60_000
const MOST_SHOWN = 100
const MOST_USERS = 20
const MOST_LISTED = 100

const listParameters = z.object({ limit: z.coerce.number().int().min(1).max(MOST_LISTED).default(MOST_LISTED) })

/** Routes of `/v1/act`, at the coordinator that writes: acts of administrators on many queries. */
export function createActRoutes(deps: ActRoutesDeps): Router {
  const { acts, clock, key } = deps
  const { ask, look } = createQueryFinder(deps)
  const router = resourceRouter()

  async function match(request: Request, wanted: WantedAct): Promise<MatchedQueries> {
    return matchQueries(request, wanted, { ...deps, ask })
  }

  /** @throws HttpProblem 404; 503 when it cannot be known whether there is such an act */
  async function actOf(request: Request): Promise<KnownAct> {
    const actId = String(request.params['actId'])
    const act = await look('act', async () => acts.get(actId) ?? (await ask(() => readActs(deps.read, 1, actId))).at(0))
    if (!act) throw new HttpProblem(404, 'There is no such act')
    return act
  }

  resource(router, '/v1/act/preview', {
    async POST(request, response) {
      const { user } = actorOf(request, deps)
      const { parsed, posted } = await bodyOf(request, actPreviewBody)
      const { act, filter } = parsed
      checkKey(request, act, deps)
      const before = new Date(clock.now()).toISOString()
      const matched = await match(request, { act, filter, before })
      const expiresAt = clock.now() + VALID_MS
      const token = sealPreview(
        key,
        { act, filter: posted.filter, user },
        { before, matched: matched.rows.length, bounds: matched.bounds, expiresAt },
      )
      sendJson(response, { ...previewInfo(act, matched), token, expires: new Date(expiresAt).toISOString() })
    },
  })

  resource(router, '/v1/act', {
    async GET(request, response) {
      const actor = actorOf(request, deps)
      const parsed = listParameters.safeParse(request.query)
      if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
      const { limit } = parsed.data
      const stored = await ask(() => readActs(deps.read, limit))
      const known = new Map([...stored, ...acts.list()].map((act) => [act.started.actId, act]))
      const newest = [...known.values()].sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1)).slice(0, limit)
      sendJson(
        response,
        newest.map((act) => actInfo(act, isOpenTo(actor, act, deps))),
      )
    },
    async POST(request, response) {
      const actor = actorOf(request, deps)
      const { parsed, posted } = await bodyOf(request, actBody)
      const { act, filter, reason, token } = parsed
      checkKey(request, act, deps)
      const seen = openPreview(key, { act, filter: posted.filter, user: actor.user }, token)
      if (!seen) throw new HttpProblem(400, 'The token is not from a preview of this act and filter: preview it again')
      if (seen.expiresAt < clock.now()) throw new HttpProblem(409, 'The preview is too old: preview the act again')
      if (acts.running >= MOST_ACTS)
        throw new HttpProblem(429, `${MOST_ACTS} acts run already: wait until one has ended`, { 'retry-after': '10' })
      const { before, bounds } = seen
      const { rows } = await match(request, { act, filter, before, bounds })
      if (rows.length > seen.matched) {
        const message = `${rows.length} queries match now, and the preview showed ${seen.matched}: preview the act again`
        throw new HttpProblem(409, message)
      }
      const asked = { act, reason, filter: posted.filter, before, ...searched(bounds) }
      const started = acts.start(startedAct(actor, asked, rows))
      sendJson(response, actInfo(await withDeadline(started, deps.logWaitMs, logIsAway), true))
    },
  })

  resource(router, '/v1/act/{actId}', {
    async GET(request, response) {
      const actor = actorOf(request, deps)
      const act = await actOf(request)
      sendJson(response, actInfo(act, isOpenTo(actor, act, deps)))
    },
    async DELETE(request, response) {
      const actor = actorOf(request, deps)
      const act = await actOf(request)
      if (!isOpenTo(actor, act, deps)) throw new HttpProblem(403, 'Access Denied: Cannot stop the act of another user')
      const stopped = await acts.stopAct(act.started.actId, actor.user, deps.stopWaitMs)
      // An earlier coordinator left the act, and this one has not continued it yet.
      if (!stopped && act.kind === 'RUNNING') throw notContinued()
      sendJson(response, actInfo(stopped ?? act, true))
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}

/** The user of a request about acts. @throws HttpProblem 401; 403 for a user without the right to write system information */
function actorOf(request: Request, { identify, authorize }: Pick<ActRoutesDeps, 'identify' | 'authorize'>): Identity {
  const identity = identify(request)
  if (authorize(identity, { action: 'writeSystem' })) return identity
  throw new HttpProblem(403, 'Access Denied: Cannot write system information')
}

/**
 * Whether the user may see the ids of the act's queries and stop it: it is their own act, or they may see all queries.
 */
function isOpenTo(identity: Identity, { started }: KnownAct, { authorize }: Pick<ActRoutesDeps, 'authorize'>): boolean {
  const { by, originalUser = by } = started
  const isOwn = identity.user === by && posterOf(identity) === originalUser
  return isOwn || authorize(identity, { action: 'viewAll' })
}

/**
 * Without authentication anybody may end queries, but only a caller with the cluster's key may forget them, as for one
 * query.
 * @throws HttpProblem 401
 */
function checkKey(request: Request, act: ActKind, { isInternal }: Pick<ActRoutesDeps, 'isInternal'>): void {
  if (act === 'forget' && callerOf(request).kind !== 'principal' && !isInternal(request))
    throw new HttpProblem(
      401,
      'Without authentication only callers with the key of the cluster may forget queries: use `quipu act`',
      { 'www-authenticate': 'Bearer' },
    )
}

async function bodyOf<T extends z.ZodType>(
  request: Request,
  schema: T,
): Promise<{ readonly parsed: z.output<T>; readonly posted: { readonly filter: unknown } }> {
  const posted = await readJson(request, MAX_ACT_BYTES)
  const result = schema.safeParse(posted)
  if (!result.success) throw new HttpProblem(400, z.prettifyError(result.error).replaceAll('\n', ' '))
  return { parsed: result.data, posted: posted as { readonly filter: unknown } }
}

function startedAct(
  { user: by, originalUser, remoteAddress }: Identity,
  {
    filter,
    reason,
    ...act
  }: Pick<StartedAct, 'act' | 'reason' | 'before' | 'searchedSince'> & { readonly filter: unknown },
  rows: readonly QueryListRow[],
): StartedAct {
  return {
    actId: randomBytes(16).toString('hex'),
    ...act,
    by,
    ...(originalUser !== undefined && originalUser !== by && { originalUser }),
    ...(remoteAddress !== undefined && { remoteAddress }),
    reason: withoutSecrets(reason),
    filter: recordedFilter(filter as Readonly<Record<string, string | readonly string[]>>),
    matched: rows.length,
    queries: rows.map((row) => row.query_id),
  }
}

/** The time since when queries were searched for the text of the filter, if not all were. */
function searched({ searchedSince }: ListingBounds): { readonly searchedSince?: string } {
  return searchedSince === undefined ? {} : { searchedSince }
}

/** The filter for the record. Ids are left out: the event lists all queries of the act. */
function recordedFilter(filter: Readonly<Record<string, string | readonly string[]>>): Record<string, string> {
  const texts = Object.entries(filter).map(([name, value]) => [
    name,
    typeof value === 'string' ? withoutSecrets(value) : `${value.length} ids`,
  ])
  return Object.fromEntries(texts) as Record<string, string>
}

function previewInfo(act: ActKind, { rows, denied, bounds }: MatchedQueries): Omit<ActPreview, 'token' | 'expires'> {
  const users = [...counted(rows.map((row) => row.user_name))].map(([user, queries]) => ({ user, queries }))
  const states = counted(rows.map((row) => row.state))
  return {
    act,
    matched: rows.length,
    ...searched(bounds),
    denied,
    states: Object.fromEntries(queryStates.map((state) => [state, states.get(state) ?? 0])),
    users: users.sort((a, b) => b.queries - a.queries).slice(0, MOST_USERS),
    queries: rows.slice(0, MOST_SHOWN).map((row) => ({
      queryId: row.query_id,
      // The projection writes only the kinds of a query.
      state: row.state as ActPreview['queries'][number]['state'],
      user: row.user_name,
      ...(row.source !== null && { source: row.source }),
      resourceGroupId: [...groupPath(row.resource_group)],
      createTime: row.created_at,
      query: row.sql_text.slice(0, PREVIEWED_CHARACTERS),
    })),
  }
}

function counted(values: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

/** @param withProblems whether the reader may see the ids of the queries */
function actInfo(known: KnownAct, withProblems: boolean): ActInfo {
  const { started, startedAt, through, outcomes, problems } = known
  const { actId, act, by: user, originalUser, remoteAddress, reason, filter, before, searchedSince, matched } = started
  return {
    actId,
    act,
    state: known.kind,
    user,
    ...(originalUser !== undefined && { originalUser }),
    ...(remoteAddress !== undefined && { remoteAddress }),
    reason,
    filter,
    before,
    ...(searchedSince !== undefined && { searchedSince }),
    matched,
    done: through,
    outcomes,
    problems: withProblems ? problems.map((one) => ({ ...one })) : [],
    startTime: startedAt,
    ...(known.kind === 'ENDED' && { endTime: known.endedAt }),
  }
}

function notContinued(): HttpProblem {
  return new HttpProblem(503, 'The coordinator has not continued the act yet', { 'retry-after': '1' })
}

function logIsAway(): HttpProblem {
  return new HttpProblem(503, 'The event log does not answer: the act may start once it does', { 'retry-after': '1' })
}
