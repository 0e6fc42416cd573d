import type { Request, Router } from 'express'
import { z } from 'zod'
import {
  keyIntroductionSchema,
  type IntroducedKey,
  type KeyIntroduction,
} from '../../coordinator/system/key-introductions.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { keyNeeded } from '../task/internal-request.ts'
import { isOwnOfCoordinator } from './relayed-request.ts'
import { sightingReportSchema, type Remembered, type SightingReport } from './sighting-report.ts'

export interface SightingRoutesDeps {
  readonly take: (report: SightingReport) => Remembered
  /**
   * Introduces another coordinator's key to this one.
   * @returns this coordinator's own key; undefined where the other has not proved that it belongs to the cluster
   */
  readonly introduceKey: (introduction: KeyIntroduction) => Promise<IntroducedKey | undefined>
  /** Called for a sender that is no coordinator. */
  readonly onRefused: (request: Request) => void
  readonly onError: (error: unknown) => void
}

/** One sighting of a user with a thousand groups has at most a megabyte. */
const MAX_BODY_BYTES = 4 * 1024 * 1024

const MAX_KEY_BYTES = 4096

/** Routes for reports of followers to the writer: `/v1/system/sightings`, `/v1/system/anchor-key`. */
export function createSightingRoutes({ take, introduceKey, onRefused, onError }: SightingRoutesDeps): Router {
  const router = resourceRouter()

  /** The body of a request of another coordinator. @throws HttpProblem */
  async function bodyOf<T>(request: Request, schema: z.ZodType<T>, maxBytes: number): Promise<T> {
    if (!isOwnOfCoordinator(request)) {
      onRefused(request)
      throw keyNeeded()
    }
    const parsed = schema.safeParse(await readJson(request, maxBytes))
    if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
    return parsed.data
  }

  resource(router, '/v1/system/sightings', {
    async POST(request, response) {
      sendJson(response, take(await bodyOf(request, sightingReportSchema, MAX_BODY_BYTES)))
    },
  })
  resource(router, '/v1/system/anchor-key', {
    async POST(request, response) {
      const introduced = await introduceKey(await bodyOf(request, keyIntroductionSchema, MAX_KEY_BYTES))
      if (!introduced) throw new HttpProblem(403, 'The key does not prove that it belongs to this cluster')
      sendJson(response, introduced)
    },
  })
  router.use(problemHandler(onError))
  return router
}
