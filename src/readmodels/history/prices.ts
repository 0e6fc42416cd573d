import { z } from 'zod'
import type { Bind, Dialect } from './dialect.ts'

/** The database has no text with U+0000. */
const name = z.string().refine((text) => !text.includes('\0'), 'Has a character that is not allowed in text')

/** The limit keeps the sums of costs finite. */
const price = z.number().min(0).max(1e15)

/** The times that the database can read. */
const [FIRST_MS, LAST_MS] = [Date.parse('0001-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59Z')]

const periodSchema = z.strictObject({
  /** The prices hold for queries that were created at or after this. */
  from: z.iso
    .datetime({ offset: true })
    .refine(
      (text) => Date.parse(text) >= FIRST_MS && Date.parse(text) <= LAST_MS,
      'Must be from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z',
    ),
  cpuSecond: price.default(0),
  terabyteScanned: price.default(0),
  /** An hour of a delegated query's execution, at any cluster that `clusterHours` does not name. */
  clusterHour: price.default(0),
  clusterHours: z.record(name, price).default({}),
})

/** The file of prices. */
export const pricesSchema = z.strictObject({
  currency: name.min(1).max(20),
  periods: z
    .array(periodSchema)
    .min(1)
    .superRefine((periods, context) => {
      for (const [i, { from }] of periods.entries())
        if (i > 0 && Date.parse(from) <= Date.parse(periods[i - 1]!.from))
          context.addIssue({ code: 'custom', message: 'The period before it begins later', path: [i, 'from'] })
    }),
})
export type Prices = z.output<typeof pricesSchema>

/** Price of a byte: a terabyte has 10^12. */
const TERABYTE = 1e12

/** The figures of a query that decide about its cost. */
export interface CostFigures {
  /** ISO UTC. */
  readonly createdAt: string
  readonly cpuMs: number
  readonly rawInputBytes: number
  /** The cluster of a delegated query. */
  readonly cluster: string | undefined
  /** Time at the cluster. */
  readonly ranMs: number
}

/** A cost as the REST interface shows it; both absent without prices for the time of the query. */
export interface Cost {
  readonly cost?: number
  readonly currency?: string
}

/** The cost of a query by the prices of the time when it was created; `costText` is the same in SQL. */
export function costOf(prices: Prices | undefined, query: CostFigures): Cost {
  const created = Date.parse(query.createdAt)
  const period = prices?.periods.findLast(({ from }) => Date.parse(from) <= created)
  if (!prices || !period) return {}
  const { cpuSecond, terabyteScanned, clusterHour, clusterHours } = period
  const { cluster } = query
  const named = cluster !== undefined && Object.hasOwn(clusterHours, cluster) ? clusterHours[cluster] : undefined
  const atCluster = cluster === undefined ? 0 : (query.ranMs / HOUR_MS) * (named ?? clusterHour)
  const cost = (query.cpuMs / 1000) * cpuSecond + query.rawInputBytes * (terabyteScanned / TERABYTE) + atCluster
  return { cost, currency: prices.currency }
}

const HOUR_MS = 3_600_000

/**
 * SQL for the cost of a query over `queries q`: its CPU time, the bytes that it read, and for a delegated query the time
 * that it ran at a cluster, each by the prices of the time when it was created. NULL before the first period.
 */
export function costText({ periods }: Prices, dialect: Dialect, bind: Bind): string {
  const number = (value: number): string => dialect.cast(bind(String(value)), 'double precision')
  const branches = periods.toReversed().map(({ from, cpuSecond, terabyteScanned, clusterHour, clusterHours }) => {
    const named = Object.entries(clusterHours).map(([name, hour]) => `when ${bind(name)} then ${number(hour)}`)
    const hour =
      named.length > 0 ? `case q.cluster ${named.join(' ')} else ${number(clusterHour)} end` : number(clusterHour)
    const cost = [
      `coalesce(q.cpu_ms, 0) / 1000 * ${number(cpuSecond)}`,
      `coalesce(q.raw_input_bytes, 0) * ${number(terabyteScanned / TERABYTE)}`,
      `case when q.cluster is null then 0 else (coalesce(q.elapsed_ms, 0) - coalesce(q.queued_ms, 0)) / 3600000 * (${hour}) end`,
    ]
    return `when q.created_at >= ${dialect.cast(bind(new Date(from).toISOString()), 'timestamptz')} then ${cost.join(' + ')}`
  })
  return `(case ${branches.join(' ')} end)`
}
