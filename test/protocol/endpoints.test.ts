import { describe, expect, it } from 'vitest'
import { createCoordinatorApp } from '../../src/processes/coordinator/coordinator-app.ts'
import { routeOf } from '../../src/protocol/edge/http-metrics.ts'
import { openApiDocument } from '../../src/protocol/info/open-api.ts'
import { statementEndpoints } from '../../src/protocol/statement/statement-routes.ts'
import { proxiedTaskEndpoints } from '../../src/protocol/task/task-proxy-routes.ts'
import { workerTaskEndpoints } from '../../src/protocol/task/task-routes.ts'
import type { Endpoint } from '../../src/protocol/edge/endpoint.ts'

/** A stand-in for every collaborator: each property and each call gives the same stand-in. Registering routes uses none. */
const anything: never = new Proxy(() => anything, {
  get: (_target, key): unknown => (key === Symbol.toPrimitive ? () => 1 : anything),
  apply: (): unknown => anything,
}) as never

interface Layer {
  match(path: string): unknown
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> }
  readonly handle?: { readonly stack?: readonly Layer[] }
}

/** Lists the operations that are registered in the layers of an Express app and in their routers. */
function registered(layers: readonly Layer[]): string[] {
  return layers.flatMap(({ route, handle }) => [
    ...(route
      ? Object.keys(route.methods).map((method) => named(method, route.path.replaceAll(/[:*](\w+)/g, '{$1}')))
      : []),
    ...registered(handle?.stack ?? []),
  ])
}

/** Lists all routes in the layers of an Express app and in their routers. */
function routesIn(layers: readonly Layer[]): (Layer & Required<Pick<Layer, 'route'>>)[] {
  return layers.flatMap((layer) => [
    ...(layer.route ? [{ ...layer, route: layer.route, match: layer.match.bind(layer) }] : []),
    ...routesIn(layer.handle?.stack ?? []),
  ])
}

const named = (method: string, path: string): string => `${method.toUpperCase()} ${path}`
const ofEndpoints = (endpoints: readonly Endpoint[]): string[] =>
  endpoints.flatMap(({ template, methods }) => methods.map((method) => named(method, template)))

/** False for HEAD, OPTIONS and refused methods, which every resource has, and for the pages of the user interface. */
const isOperation = (operation: string): boolean => !/^(HEAD|OPTIONS|_ALL) |^\w+ \/ui(\/|$)/.test(operation)

const paths = openApiDocument('1')['paths'] as Readonly<Record<string, Readonly<Record<string, unknown>>>>

describe('The HTTP interface', () => {
  it('has exactly the endpoints that /openapi.json describes', () => {
    const { app } = createCoordinatorApp(anything)
    const answering = [
      ...registered((app as unknown as { router: { stack: readonly Layer[] } }).router.stack),
      ...[statementEndpoints(anything), proxiedTaskEndpoints(anything), workerTaskEndpoints(anything)].flatMap(
        ofEndpoints,
      ),
    ]
    const described = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => named(method, path)),
    )
    expect(described.toSorted()).toEqual([...new Set(answering.filter(isOperation))].toSorted())
  })

  it('matches paths in their exact case only, because access is decided by the path', () => {
    const { app } = createCoordinatorApp(anything)
    const routes = routesIn((app as unknown as { router: { stack: readonly Layer[] } }).router.stack)
    expect(routes.map(({ route }) => route.path)).toContain('/metrics')
    for (const { route, match } of routes) {
      const path = route.path.replaceAll(/[:*](\w+)/g, 'x')
      expect([path, Boolean(match(path))]).toEqual([path, true])
      expect([path, Boolean(match(path.toUpperCase()))]).toEqual([path, false])
    }
  })

  it('is measured by route names without ids, each a prefix of the path of the endpoint', () => {
    for (const path of Object.keys(paths)) {
      const route = routeOf(path.replaceAll(/\{\w+\}/g, '20260102_030405_00006_00001'))
      expect([path, route]).toEqual([path, expect.not.stringMatching(/other|2026/)])
      expect(path.startsWith(route), `${path} as ${route}`).toBe(true)
    }
  })
})
