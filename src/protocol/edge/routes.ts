export type RouteMethod = 'GET' | 'PUT' | 'POST' | 'DELETE'

/**
 * The paths of the REST interface, in the form of OpenAPI, with their methods. Routers, endpoints and `/openapi.json`
 * take them from here.
 */
export const routes = {
  '/v1/statement': ['POST'],
  '/v1/statement/{queryId}/{token}': ['GET', 'DELETE'],
  '/v1/stage/{stageId}/{mac}': ['DELETE'],
  '/v1/query': ['GET'],
  '/v1/query/totals': ['GET'],
  '/v1/query/{queryId}': ['GET', 'DELETE'],
  '/v1/query/{queryId}/killed': ['PUT'],
  '/v1/query/{queryId}/preempted': ['PUT'],
  '/v1/query/{queryId}/forget': ['POST'],
  '/v1/erasure': ['POST'],
  '/v1/erasure/preview': ['POST'],
  '/v1/erasure/{erasureId}': ['GET'],
  '/v1/query/{queryId}/events': ['GET'],
  '/v1/query/{queryId}/digest': ['GET'],
  '/v1/query/{queryId}/trace': ['GET'],
  '/v1/events': ['GET'],
  '/v1/system/sightings': ['POST'],
  '/v1/system/anchor-key': ['POST'],
  '/v1/system/rebuilt': ['POST'],
  '/v1/system/verified': ['POST'],
  '/v1/audit': ['GET'],
  '/v1/act': ['GET', 'POST'],
  '/v1/act/preview': ['POST'],
  '/v1/act/{actId}': ['GET', 'DELETE'],
  '/v1/replay': ['POST'],
  '/v1/replay/{replayId}': ['PUT'],
  '/v1/resourceGroupState': ['GET'],
  '/v1/resourceGroupState/{group}': ['GET'],
  '/v1/cluster': ['GET'],
  '/v1/cluster/{name}': ['GET'],
  '/v1/cluster/{name}/state': ['PUT'],
  '/v1/cluster/{name}/events': ['GET'],
  '/v1/node': ['GET'],
  '/v1/node/failed': ['GET'],
  '/v1/node/{nodeId}/state': ['PUT'],
  '/v1/announcement': ['PUT'],
  '/v1/announcement/{nodeId}': ['DELETE'],
  '/v1/task': ['GET', 'DELETE'],
  '/v1/task/{taskId}': ['GET', 'POST', 'DELETE'],
  '/v1/task/{taskId}/results/{outputId}/{token}': ['GET'],
  '/v1/task/{taskId}/results/{outputId}': ['DELETE'],
  '/v1/info': ['GET'],
  '/v1/status': ['GET'],
  '/oauth2/token/initiate/{logIn}': ['GET', 'POST'],
  '/oauth2/revoke': ['POST'],
  '/oauth2/callback': ['GET'],
  '/oauth2/token/{logIn}': ['GET', 'DELETE'],
  '/metrics': ['GET'],
  '/openapi.json': ['GET'],
} as const satisfies Readonly<Record<string, readonly RouteMethod[]>>

export type RoutePath = keyof typeof routes

/** The methods of a path. */
export type MethodOf<P extends RoutePath> = (typeof routes)[P][number]
