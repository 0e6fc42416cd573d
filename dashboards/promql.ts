import {
  metricNames,
  type CounterName,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  type MetricName,
} from '../src/telemetry/metric-names.ts'

/** Labels a metric can be split by: its own, and those that Prometheus adds. */
type By<N extends MetricName> = readonly (Extract<keyof LabelsOf<N>, string> | 'instance' | 'le')[]

export interface PromqlOptions {
  /** Matcher that every selector begins with: `job=~"$job"` in panels, none in rules. */
  readonly everywhere?: string
  readonly window: string
}

/** Writes PromQL over the project's own metrics: a name or a label that does not exist does not compile. */
export interface Promql {
  /** Increase a second, summed. */
  rate<N extends CounterName>(name: N, by?: By<N>, where?: string): string
  increase<N extends CounterName>(name: N, window: string, by?: By<N>, where?: string): string
  sum<N extends GaugeName>(name: N, by?: By<N>, where?: string): string
  max<N extends GaugeName>(name: N, by?: By<N>, where?: string): string
  min<N extends GaugeName>(name: N, by?: By<N>, where?: string): string
  /** Of a histogram, 0 to 1. */
  quantile<N extends HistogramName>(q: number, name: N, by?: By<N>, where?: string): string
  /** Observations a second; sum of observed values a second; of the buckets. */
  rateOf<N extends HistogramName>(part: 'count' | 'sum' | 'bucket', name: N, by?: By<N>, where?: string): string
  /** A metric of prom-client itself (`nodejs_`, `process_`), by instance. */
  process(of: 'max' | 'rate', name: string): string
}

export function createPromql({ everywhere, window }: PromqlOptions): Promql {
  const selector = (text: string, where?: string): string => {
    const matchers = [everywhere, where].filter((one) => one !== undefined && one !== '')
    return matchers.length > 0 ? `${text}{${matchers.join(',')}}` : text
  }
  const grouped = (by: readonly string[] | undefined): string => (by && by.length > 0 ? ` by (${by.join(', ')})` : '')
  const textOf = (name: MetricName): string => metricNames[name].text
  const gauge =
    (aggregation: string) =>
    (name: GaugeName, by?: readonly string[], where?: string): string =>
      `${aggregation}${grouped(by)} (${selector(textOf(name), where)})`
  const rateOf = (text: string, by?: readonly string[], where?: string): string =>
    `sum${grouped(by)} (rate(${selector(text, where)}[${window}]))`
  return {
    rate: (name, by, where) => rateOf(textOf(name), by, where),
    increase: (name, over, by, where) => `sum${grouped(by)} (increase(${selector(textOf(name), where)}[${over}]))`,
    sum: gauge('sum'),
    max: gauge('max'),
    min: gauge('min'),
    quantile: (q, name, by, where) =>
      `histogram_quantile(${q}, ${rateOf(`${textOf(name)}_bucket`, ['le', ...(by ?? [])], where)})`,
    rateOf: (part, name, by, where) => rateOf(`${textOf(name)}_${part}`, by, where),
    process: (of, name) =>
      of === 'max' ? `max by (instance) (${selector(name)})` : `sum by (instance) (rate(${selector(name)}[${window}]))`,
  }
}

/** For panels: their window follows the zoom. */
export const panelQuery = createPromql({ everywhere: 'job=~"$job"', window: '$__rate_interval' })

export function ruleQuery(window: string): Promql {
  return createPromql({ window })
}
