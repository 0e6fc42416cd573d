import type { Request, Router } from 'express'
import { z } from 'zod'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { keyNeeded } from '../task/internal-request.ts'
import { isOwnOfCoordinator } from './relayed-request.ts'
import { sightingReportSchema, type Remembered, type SightingReport } from './sighting-report.ts'

export interface SightingRoutesDeps {
  readonly take: (report: SightingReport) => Remembered
  /** Told of who asks and is no coordinator. */
  readonly onRefused: (request: Request) => void
  readonly onError: (error: unknown) => void
}

/** One sighting of somebody in a thousand groups is a megabyte at most. */
const MAX_BODY_BYTES = 4 * 1024 * 1024

/** What coordinators that follow tell the one that writes: `/v1/system/sightings`. */
export function createSightingRoutes({ take, onRefused, onError }: SightingRoutesDeps): Router {
  const router = resourceRouter()
  resource(router, '/v1/system/sightings', {
    async POST(request, response) {
      if (!isOwnOfCoordinator(request)) {
        onRefused(request)
        throw keyNeeded()
      }
      const parsed = sightingReportSchema.safeParse(await readJson(request, MAX_BODY_BYTES))
      if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
      sendJson(response, take(parsed.data))
    },
  })
  router.use(problemHandler(onError))
  return router
}
