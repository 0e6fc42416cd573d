import { decideRoute } from './decide-route.ts'
import { routeText, type GroupCatalogs, type RemoteRoute, type RouteDecision, type RoutedStatement } from './route.ts'
import type { RoutingRule } from './routing-rules.ts'

/** Facts about a statement that take time to find out. */
export interface RouteFacts {
  /** See `RoutedStatement.bytes`. */
  readonly bytes: () => Promise<number | undefined>
  /** See `GroupCatalogs.mirrorFault`. */
  readonly mirrorFault: (route: RemoteRoute) => Promise<string | undefined>
}

/**
 * Decides the route as `decideRoute` does. A fact is found out at most once, and only if the decision depends on it: the
 * decision is made with the facts that are known, and made again with the first fact that it lacked.
 * @throws EngineError as `decideRoute`; the errors of the facts
 */
export async function decideWithFacts(
  rules: readonly RoutingRule[],
  statement: Omit<RoutedStatement, 'bytes'>,
  targets: Omit<GroupCatalogs, 'mirrorFault'>,
  facts: RouteFacts,
): Promise<RouteDecision> {
  let size: { readonly bytes: number | undefined } | undefined
  const faults = new Map<string, string | undefined>()
  for (;;) {
    const missing: (() => Promise<void>)[] = []
    const decide = (): RouteDecision =>
      decideRoute(
        rules,
        {
          ...statement,
          bytes() {
            if (!size) missing.push(async () => void (size = { bytes: await facts.bytes() }))
            return size?.bytes
          },
        },
        {
          ...targets,
          mirrorFault(route) {
            const target = routeText(route)
            if (!faults.has(target)) missing.push(async () => void faults.set(target, await facts.mirrorFault(route)))
            return faults.get(target)
          },
        },
      )
    try {
      const decision = decide()
      if (missing.length === 0) return decision
    } catch (error) {
      if (missing.length === 0) throw error
    }
    await missing[0]!()
  }
}
