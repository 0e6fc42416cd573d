import { createHash } from 'node:crypto'
import { EngineError } from '../../../shared/engine-error.ts'
import {
  OWN_CATALOGS,
  isRemoteRoute,
  routeText,
  type GroupCatalogs,
  type RemoteCatalogs,
  type RemoteRoute,
  type Route,
  type RouteDecision,
  type RoutedStatement,
  type SkippedRule,
} from './route.ts'
import type { RoutingRule, RuleMatch } from './routing-rules.ts'

const LOCAL: Route = { to: 'local' }

/**
 * Decides where a statement runs. The first rule that fits, and whose target has all catalogs of the statement,
 * decides. Without such a rule the statement runs here if this server has all catalogs. Otherwise it runs in the only
 * group that has them. A statement that names an unknown catalog runs here, so that the analysis reports the catalog.
 * If a statement names a catalog that only this server answers, rules can reject it as if it did not name this catalog.
 * Otherwise it runs here.
 * @throws EngineError AMBIGUOUS_NAME if two groups have the catalogs; NOT_SUPPORTED if no single target has all of
 * them, or if the statement is unresolved and no rule with `unchecked` fits
 */
export function decideRoute(
  rules: readonly RoutingRule[],
  statement: RoutedStatement,
  targets: GroupCatalogs,
): RouteDecision {
  const asked = askedOnce(statement)
  const skipped: SkippedRule[] = []
  for (const rule of rules) {
    const outcome = tryRule(rule, asked.statement, targets)
    switch (outcome.kind) {
      case 'misfit':
        break
      case 'skipped':
        skipped.push({ rule: rule.name, why: outcome.why })
        break
      case 'runs here':
        skipped.push({ rule: rule.name, why: outcome.why })
        return decisionWithoutRule(LOCAL)
      case 'decides':
        if (outcome.fallbackFault !== undefined) skipped.push({ rule: rule.name, why: outcome.fallbackFault })
        return {
          route: rule.route,
          rule: rule.name,
          fallback: outcome.fallbackFault === undefined ? rule.fallback : undefined,
          grade: statement.unresolved && isRemoteRoute(rule.route) ? 'unchecked' : 'analysed',
          ...asked.bytes(),
          skipped,
        }
    }
  }
  return decisionWithoutRule(routeWithoutRule(statement, targets, skipped))

  function decisionWithoutRule(route: Route): RouteDecision {
    return { route, rule: undefined, fallback: undefined, grade: 'analysed', ...asked.bytes(), skipped }
  }
}

/** The result of one rule for a statement. */
export type RuleOutcome =
  /** The first condition of the rule that does not hold. */
  | { readonly kind: 'misfit'; readonly key: keyof RuleMatch }
  /** The rule fits, but its target cannot take the statement. */
  | { readonly kind: 'skipped'; readonly why: string }
  /** The rule fits, but only this server answers a catalog of the statement. Later rules are not tried. */
  | { readonly kind: 'runs here'; readonly why: string }
  /** `fallbackFault`: why the fallback of the rule does not apply. */
  | { readonly kind: 'decides'; readonly fallbackFault: string | undefined }

export function tryRule(rule: RoutingRule, statement: RoutedStatement, targets: GroupCatalogs): RuleOutcome {
  const key = misfitOf(rule, statement)
  if (key !== undefined) return { kind: 'misfit', key }
  const fault = rule.fallback && faultOf(rule.fallback, rule.unchecked, statement, targets)
  // Nothing can be compared at a target that is away, and the fallback is taken instead.
  const isLeft = rule.fallback !== undefined && fault === undefined && targets.isOpen?.(rule.route) === false
  const why = faultOf(rule.route, rule.unchecked, statement, isLeft ? { ...targets, mirrorFault: undefined } : targets)
  if (why !== undefined) return { kind: 'skipped', why }
  const own = statement.catalogs.filter((catalog) => OWN_CATALOGS.has(catalog))
  if (own.length > 0 && isRemoteRoute(rule.route))
    return { kind: 'runs here', why: `only this server answers the ${catalogList(own)}` }
  return { kind: 'decides', fallbackFault: fault && `its fallback does not apply: ${fault}` }
}

/** The first condition that does not hold. The bytes are tested last, because counting them is expensive. */
function misfitOf({ name, match }: RoutingRule, statement: RoutedStatement): keyof RuleMatch | undefined {
  const { user, userGroup, source, resourceGroup, clientTags, queryType, catalogs, percent, bytesOver } = match
  if (user && !user.matches(statement.user)) return 'user'
  if (userGroup && !statement.groups.some((group) => userGroup.matches(group))) return 'userGroup'
  if (source && !source.matches(statement.source ?? '')) return 'source'
  if (resourceGroup && !resourceGroup.matches(statement.resourceGroup)) return 'resourceGroup'
  if (clientTags && !clientTags.every((tag) => statement.clientTags.includes(tag))) return 'clientTags'
  const types = [statement.queryType, statement.explains]
  if (queryType && !types.some((type) => type !== undefined && queryType.includes(type))) return 'queryType'
  if (catalogs && !catalogs.some((catalog) => statement.catalogs.includes(catalog))) return 'catalogs'
  if (percent !== undefined && percentOf(name, statement.user) >= percent) return 'percent'
  if (bytesOver !== undefined && !((statement.bytes() ?? 0) > bytesOver)) return 'bytesOver'
  return undefined
}

/**
 * A number from 0 up to 100 that is fixed for a rule and a user. The numbers of all users are spread evenly. If a
 * rule holds for a user at 10 percent, it also holds at 20 percent. Two rules with the same percentage get different
 * users.
 */
function percentOf(rule: string, user: string): number {
  const digest = createHash('sha256')
    .update(JSON.stringify([rule, user]))
    .digest()
  return (digest.readUInt32BE(0) / 2 ** 32) * 100
}

/** The reason why the statement cannot run at a route; undefined if it can. */
function faultOf(
  route: Route,
  unchecked: boolean,
  statement: RoutedStatement,
  targets: GroupCatalogs,
): string | undefined {
  switch (route.to) {
    case 'reject':
      return undefined
    case 'local': {
      const missing = statement.catalogs.filter((catalog) => !targets.local.has(catalog) && !OWN_CATALOGS.has(catalog))
      return missing.length === 0 ? undefined : `this server has no ${catalogList(missing)}`
    }
    case 'group':
    case 'cluster':
      if (statement.unresolved && !unchecked)
        return 'the statement cannot be checked, and the rule does not have "unchecked": true'
      return remoteFault(route, statement, targets)
  }
}

function remoteFault(route: RemoteRoute, statement: RoutedStatement, targets: GroupCatalogs): string | undefined {
  const there = route.to === 'group' ? targets.groups.get(route.group) : targets.clusters.get(route.cluster)
  if (!there) return `there is no ${routeText(route)}`
  const { missing, readOnly } = lackOf(there, statement)
  if (missing.length > 0) return `${routeText(route)} has no ${catalogList(missing)}`
  if (readOnly.length > 0) return `${routeText(route)} only reads the ${catalogList(readOnly)}`
  if (!statement.catalogs.some((catalog) => there.mirrors.has(catalog))) return undefined
  return targets.mirrorFault?.(route)
}

/**
 * The catalogs of the statement that the target lacks, and those that the statement writes but the target only reads.
 */
function lackOf(
  { own, mirrors }: RemoteCatalogs,
  { catalogs, written }: RoutedStatement,
): { readonly missing: readonly string[]; readonly readOnly: readonly string[] } {
  return {
    missing: catalogs.filter((one) => !own.has(one) && !mirrors.has(one) && !OWN_CATALOGS.has(one)),
    readOnly: written.filter((catalog) => mirrors.has(catalog)),
  }
}

function routeWithoutRule(statement: RoutedStatement, targets: GroupCatalogs, skipped: readonly SkippedRule[]): Route {
  const { local, groups } = targets
  const remote = statement.catalogs.filter((catalog) => !local.has(catalog))
  if (remote.length === 0 || statement.catalogs.some((catalog) => OWN_CATALOGS.has(catalog))) return LOCAL
  // A catalog is unknown everywhere: the analysis here reports it, with its position in the text.
  if (!remote.every((catalog) => groupsWith(catalog, groups).length > 0)) return LOCAL
  if (statement.unresolved)
    throw unsupported(
      `This server cannot check what the statement does with the ${catalogList(remote)}. Only a routing rule with "unchecked": true can send it to a cluster`,
      skipped,
    )
  const faults = [...groups.keys()].map((group) => ({
    group,
    fault: remoteFault({ to: 'group', group }, statement, targets),
  }))
  const [only, ...others] = faults.filter(({ fault }) => fault === undefined)
  if (!only) throw unsupported(mixedText(statement, targets, faults), skipped)
  if (others.length === 0) return { to: 'group', group: only.group }
  const names = [only, ...others].map(({ group }) => `'${group}'`).join(', ')
  throw new EngineError(
    'AMBIGUOUS_NAME',
    `The groups ${names} have the ${catalogList(statement.catalogs)}. A routing rule must choose one of them`,
  )
}

/** Says where each catalog is, and why the groups that have all of them cannot run the statement. */
function mixedText(
  statement: RoutedStatement,
  { local, groups }: GroupCatalogs,
  faults: readonly { readonly group: string; readonly fault: string | undefined }[],
): string {
  const parts = statement.catalogs.map((catalog) => {
    const having = groupsWith(catalog, groups).map((group) => `group ${group}`)
    return `'${catalog}' (${[...(local.has(catalog) ? ['this server'] : []), ...having].join(', ')})`
  })
  const near = faults.filter(({ group }) => lackOf(groups.get(group)!, statement).missing.length === 0)
  const reasons = near.map(({ fault }) => `: ${fault}`).join('')
  return `Nothing can run a statement over the catalogs ${parts.join(', ')}${reasons}`
}

function groupsWith(catalog: string, groups: GroupCatalogs['groups']): readonly string[] {
  return [...groups].flatMap(([group, { own, mirrors }]) => (own.has(catalog) || mirrors.has(catalog) ? [group] : []))
}

function unsupported(message: string, skipped: readonly SkippedRule[]): EngineError {
  const rules = skipped.map(({ rule, why }) => `. The rule '${rule}' was skipped: ${why}`)
  return new EngineError('NOT_SUPPORTED', `${message}${rules.join('')}`)
}

function catalogList(catalogs: readonly string[]): string {
  const names = catalogs.map((catalog) => `'${catalog}'`).join(', ')
  return `${catalogs.length === 1 ? 'catalog' : 'catalogs'} ${names}`
}

/** Wraps a statement so that its bytes are counted at most once, and gives the count if a rule asked for it. */
function askedOnce(statement: RoutedStatement): {
  readonly statement: RoutedStatement
  readonly bytes: () => { readonly bytes?: number }
} {
  let counted: { readonly bytes: number | undefined } | undefined
  return {
    statement: { ...statement, bytes: () => (counted ??= { bytes: statement.bytes() }).bytes },
    bytes: () => (counted?.bytes === undefined ? {} : { bytes: counted.bytes }),
  }
}
