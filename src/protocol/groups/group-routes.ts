import type { IncomingMessage } from 'node:http'
import type { Request, Router } from 'express'
import type { ResourceGroups } from '../../coordinator/dispatch/resource-groups.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { Clock } from '../../shared/clock.ts'
import { checkReadSystem } from '../access/system-information.ts'
import { HttpProblem } from '../edge/problem.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import type { LiveQueries } from '../query/live-queries.ts'
import { groupInfo, groupSummary, runsIn } from './group-info.ts'

export interface GroupRoutesDeps {
  readonly groups: Pick<ResourceGroups, 'stateOf' | 'roots'>
  readonly live: Pick<LiveQueries, 'list'>
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
  readonly clock: Pick<Clock, 'now'>
  readonly onError?: (error: unknown) => void
}

/**
 * Routes of `/v1/resourceGroupState`, the root groups, and `/v1/resourceGroupState/{group}`, one group: its names from
 * the root are segments of the path. Callers see those of its queries that they may see in lists.
 */
export function createGroupRoutes(deps: GroupRoutesDeps): Router {
  const { groups, live, clock, identify, authorize } = deps
  const router = resourceRouter()

  resource(router, '/v1/resourceGroupState', {
    GET(request, response) {
      checkReadSystem(request, deps)
      sendJson(response, groups.roots().map(groupSummary))
    },
  })
  resource(router, '/v1/resourceGroupState/{group}', {
    GET(request, response) {
      checkReadSystem(request, deps)
      const group = groups.stateOf(namesIn(request))
      if (!group) throw new HttpProblem(404, 'The resource group does not exist')
      const identity = identify(request)
      const running = live
        .list()
        .filter((view) => runsIn(view, group.path))
        .filter(({ query }) => authorize(identity, { action: 'list', query: query.created.session }))
      sendJson(response, groupInfo(group, running, clock.now()))
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}

/** Each name is decoded by itself, so a slash in a name does not split it. */
function namesIn({ params }: Request): readonly string[] {
  const names: unknown = params['group']
  return Array.isArray(names) ? names.map(String) : []
}
