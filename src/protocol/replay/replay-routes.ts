import type { IncomingMessage } from 'node:http'
import type { Request, Router } from 'express'
import { z } from 'zod'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { Clock } from '../../shared/clock.ts'
import type { LimitedPerson, LimitOwnerOf } from '../../shared/limit-owner.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { isReplayOf, newReplayId } from './replay-id.ts'
import { replayBeginningSchema, replayReportSchema } from './replay-report.ts'

export interface ReplayRoutesDeps {
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
  readonly journal: Pick<SystemJournal, 'record'>
  /** Makes the ids of replays. */
  readonly key: Buffer
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly ownerOf: LimitOwnerOf
  readonly onError?: (error: unknown) => void
}

export const MAX_REPLAY_BYTES = 16 * 1024
/** Reports of one replay that come sooner than this are not recorded; its end always is. */
const LEAST_BETWEEN_MS = 2000
/** The most replays, and users, that are remembered. For others the next report is recorded. */
const MOST_REMEMBERED = 1000

/**
 * The most replays begun, and facts about them, in a minute: of one user or network, and of all. The log of the system
 * has no end, so it is kept small.
 */
const MOST_OF_ONE = { begun: 30, facts: 120 }
const MOST_OF_ALL = { begun: 120, facts: 480 }
/** One owner may use at most this many for each one left, so that some are left for a new owner. */
const OF_EACH_LEFT = 3
const MINUTE_MS = 60_000

/**
 * Routes of `/v1/replay`, at the coordinator that writes: record who replays which statements against which server, and
 * the outcome, as events of the system.
 */
export function createReplayRoutes(deps: ReplayRoutesDeps): Router {
  const { journal, key, clock } = deps
  const router = resourceRouter()
  const reportedAt = new Map<string, number>()
  /** Replays that accept no further report. */
  const ended = new Set<string>()
  const mayRecord = createMinutes(clock, deps.ownerOf)

  /** The user of a replay's request. @throws HttpProblem 403 for a user who may not run statements */
  function replayerOf(request: Request): Identity {
    const identity = deps.identify(request)
    if (deps.authorize(identity, { action: 'execute' })) return identity
    throw new HttpProblem(403, 'Access Denied: Cannot execute query')
  }

  async function bodyOf<T>(request: Request, schema: z.ZodType<T>): Promise<T> {
    const parsed = schema.safeParse(await readJson(request, MAX_REPLAY_BYTES))
    if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
    return parsed.data
  }

  function isTooSoon(replayId: string): boolean {
    const now = clock.monotonicMs()
    if (now - (reportedAt.get(replayId) ?? -Infinity) < LEAST_BETWEEN_MS) return true
    reportedAt.delete(replayId)
    reportedAt.set(replayId, now)
    forgetOldest(reportedAt)
    return false
  }

  resource(router, '/v1/replay', {
    async POST(request, response) {
      const replayer = replayerOf(request)
      const { user: by, originalUser, remoteAddress } = replayer
      const beginning = await bodyOf(request, replayBeginningSchema)
      if (!mayRecord(replayer, 'begun')) throw tooMany()
      const replayId = newReplayId(key, by)
      await journal.record('ReplayStarted', {
        replayId,
        by,
        ...(originalUser !== undefined && originalUser !== by && { originalUser }),
        ...(remoteAddress !== undefined && { remoteAddress }),
        ...beginning,
      })
      sendJson(response, { replayId })
    },
  })

  resource(router, '/v1/replay/{replayId}', {
    async PUT(request, response) {
      const replayer = replayerOf(request)
      const { user: by } = replayer
      const { replayId } = request.params
      const { verdicts, outcome } = await bodyOf(request, replayReportSchema)
      if (typeof replayId !== 'string' || !isReplayOf(key, replayId, by)) throw new HttpProblem(404, 'Replay not found')
      if (ended.has(replayId)) throw new HttpProblem(409, 'The replay has ended')
      if (outcome !== undefined) {
        if (!mayRecord(replayer, 'fact')) throw tooMany()
        ended.add(replayId)
        forgetOldest(ended)
        reportedAt.delete(replayId)
        try {
          await journal.record('ReplayEnded', { replayId, by, verdicts, outcome })
        } catch (error) {
          ended.delete(replayId)
          throw error
        }
      } else if (!isTooSoon(replayId) && mayRecord(replayer, 'fact')) {
        await journal.record('ReplayProgressed', { replayId, by, verdicts })
      }
      response.writeHead(204, { 'cache-control': 'no-store' }).end()
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}

function forgetOldest(remembered: Map<string, unknown> | Set<string>): void {
  const [oldest] = remembered.keys()
  if (remembered.size > MOST_REMEMBERED && oldest !== undefined) remembered.delete(oldest)
}

interface Minute {
  begun: number
  facts: number
}

/** Counts what is to be recorded. @returns false where the owner, or all owners together, used up this minute */
function createMinutes(
  clock: Pick<Clock, 'monotonicMs'>,
  ownerOf: LimitOwnerOf,
): (person: LimitedPerson, what: 'begun' | 'fact') => boolean {
  let since = -Infinity
  let all: Minute = { begun: 0, facts: 0 }
  /** It has at most one owner for each fact that is allowed in a minute. */
  const owners = new Map<string, Minute>()
  return (person, what) => {
    const now = clock.monotonicMs()
    if (now - since >= MINUTE_MS) {
      since = now
      all = { begun: 0, facts: 0 }
      owners.clear()
    }
    const { address } = ownerOf(person)
    const own = owners.get(address) ?? { begun: 0, facts: 0 }
    const has = (counted: 'begun' | 'facts'): boolean =>
      own[counted] < MOST_OF_ONE[counted] && own[counted] < OF_EACH_LEFT * (MOST_OF_ALL[counted] - all[counted])
    if (!has('facts') || (what === 'begun' && !has('begun'))) return false
    owners.set(address, own)
    for (const minute of [own, all]) {
      minute.facts++
      if (what === 'begun') minute.begun++
    }
    return true
  }
}

function tooMany(): HttpProblem {
  return new HttpProblem(429, 'Too many replays were started or reported within a minute: try again in a minute', {
    'retry-after': '60',
  })
}
