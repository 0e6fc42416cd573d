import type { IncomingMessage } from 'node:http'
import type { Request, Router } from 'express'
import { z } from 'zod'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { Clock } from '../../shared/clock.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { isReplayOf, newReplayId } from './replay-id.ts'
import { replayBeginningSchema, replayReportSchema } from './replay-report.ts'

export interface ReplayRoutesDeps {
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
  readonly journal: Pick<SystemJournal, 'record'>
  /** Of the ids of replays. */
  readonly key: Buffer
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly onError?: (error: unknown) => void
}

export const MAX_REPLAY_BYTES = 16 * 1024
/** What is told of one replay more often than that is not recorded; its end always is. */
const LEAST_BETWEEN_MS = 2000
/** As many replays as are remembered for that; of others the next report is recorded. */
const MOST_REMEMBERED = 1000

/** `/v1/replay`: who replays what against whom, and what came of it, as facts of the system. Of the coordinator that writes. */
export function createReplayRoutes(deps: ReplayRoutesDeps): Router {
  const { journal, key, clock } = deps
  const router = resourceRouter()
  const toldAt = new Map<string, number>()

  /** @throws HttpProblem 403 for who may run nothing */
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
    if (now - (toldAt.get(replayId) ?? -Infinity) < LEAST_BETWEEN_MS) return true
    toldAt.delete(replayId)
    toldAt.set(replayId, now)
    const [oldest] = toldAt.keys()
    if (toldAt.size > MOST_REMEMBERED && oldest !== undefined) toldAt.delete(oldest)
    return false
  }

  resource(router, '/v1/replay', {
    async POST(request, response) {
      const { user: by, originalUser, remoteAddress } = replayerOf(request)
      const beginning = await bodyOf(request, replayBeginningSchema)
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

  resource(router, '/v1/replay/:replayId', {
    async PUT(request, response) {
      const { user: by } = replayerOf(request)
      const { replayId } = request.params
      const { verdicts, outcome } = await bodyOf(request, replayReportSchema)
      if (typeof replayId !== 'string' || !isReplayOf(key, replayId, by)) throw new HttpProblem(404, 'Replay not found')
      if (outcome !== undefined) {
        await journal.record('ReplayEnded', { replayId, by, verdicts, outcome })
        toldAt.delete(replayId)
      } else if (!isTooSoon(replayId)) {
        await journal.record('ReplayProgressed', { replayId, by, verdicts })
      }
      response.writeHead(204, { 'cache-control': 'no-store' }).end()
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}
