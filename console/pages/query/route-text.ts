import type { QueryInfo } from '../../../src/protocol/info/schemas/query.ts'

type Route = NonNullable<QueryInfo['route']>

/** The decision about the route in words: `group big, by rule 'etl'`. */
export function routeText(route: Route | undefined): string | undefined {
  if (!route) return undefined
  const { plan, to, name, rule, fallback, skipped = [] } = route
  const target = to === undefined ? plan : name === undefined ? to : `${to} ${name}`
  const by = rule === undefined ? '' : `, by ${fallback ? 'the fallback of ' : ''}rule '${rule}'`
  return `${target}${by}${skipped.map((one) => `; rule '${one.rule}' was skipped: ${one.why}`).join('')}`
}

/** The cluster of the last attempt, and the id of the query there. */
export function clusterText(route: Route | undefined): string | undefined {
  if (route?.cluster === undefined) return undefined
  const { cluster, remoteQueryId, attempts = 1 } = route
  return `${cluster}${remoteQueryId === undefined ? '' : `, query ${remoteQueryId}`}${attempts > 1 ? `, after ${attempts} attempts` : ''}`
}
