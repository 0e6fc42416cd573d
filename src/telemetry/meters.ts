import type { Counter, Registry } from 'prom-client'
import {
  counterSeries,
  exemplary,
  histogramSeries,
  makeInstruments,
  observeIn,
  restoreIn,
  type PastObservations,
  type TraceRef,
} from './instruments.ts'
import { KnownSeries } from './known-series.ts'
import { LabelBounds } from './label-bounds.ts'
import { createTopValues, type TopValues } from './top-values.ts'
import {
  metricNames,
  type CounterName,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  type MetricName,
} from './metric-names.ts'
import { buckets, type MetricDefinition } from './metrics/metric-definition.ts'

/** The metrics of a process. Label values outside their closed set become `other`. */
export interface Meters {
  count<N extends CounterName>(name: N, labels: LabelsOf<N>, by?: number, trace?: TraceRef): void
  set<N extends GaugeName>(name: N, labels: LabelsOf<N>, value: number): void
  /** Removes all series of a gauge, because another process reports it from now on. */
  unset<N extends GaugeName>(name: N): void
  observe<N extends HistogramName>(name: N, labels: LabelsOf<N>, value: number, trace?: TraceRef): void
  /** Adds earlier observations. `counts`: one per bucket, not cumulative, with the bucket beyond the last bound. */
  restore<N extends HistogramName>(name: N, labels: LabelsOf<N>, past: PastObservations): void
  /** Registers a function that is called before each scrape. It sets gauges that are read on demand. */
  onScrape(collect: () => void | Promise<void>): void
  /**
   * The metrics as OpenMetrics text.
   * @param without metrics to leave out
   */
  text(without?: readonly MetricName[]): Promise<{ readonly contentType: string; readonly body: string }>
}

export interface MetersOptions {
  readonly on: 'coordinator' | 'worker'
  /** Whether `nodejs_*` and `process_*` are included. */
  readonly processMetrics: boolean
}

/** How long a collector may take: a scrape each second must be answered even while the database is stopped. */
const COLLECT_MS = 500

interface TopLabel {
  readonly label: string
  /** How many values have a series of their own. */
  readonly top: number
}

/** Counters with one label whose most frequent values have series of their own. */
const topLabels: ReadonlyMap<MetricName, TopLabel> = new Map(
  (Object.entries(metricNames) as [MetricName, MetricDefinition][]).flatMap(([name, { labels }]) =>
    Object.entries(labels).flatMap(([label, values]) =>
      'top' in values ? [[name, { label, top: values.top }] as const] : [],
    ),
  ),
)

/** The labels of a process that can have more values than series. */
function openLabelsOn(process: MetersOptions['on']): ReadonlySet<string> {
  const definitions = (Object.entries(metricNames) as [MetricName, MetricDefinition][]).filter(
    ([name, { on }]) => name !== 'labelOverflow' && (on === 'both' || on === process),
  )
  return new Set(
    definitions.flatMap(([, { labels }]) => Object.keys(labels).filter((label) => !Array.isArray(labels[label]))),
  )
}

/** Makes the meters. It loads prom-client (70 ms of CPU), so it is called once the process serves. */
export async function createMeters(options: MetersOptions): Promise<Meters> {
  const prom = await import('./prom-client.ts')
  const registry = new prom.Registry() as unknown as Registry
  // Exemplars need this content type before the first metric is made.
  registry.setContentType(prom.Registry.OPENMETRICS_CONTENT_TYPE as never)
  if (options.processMetrics) prom.collectDefaultMetrics({ register: registry })
  const collectors: (() => void | Promise<void>)[] = []
  const made = makeInstruments(prom, registry, options.on)
  const onOverflow = (label: string): void => meters.count('labelOverflow', { label })
  const bounds = new LabelBounds(onOverflow)
  const countTop = topCounter(onOverflow)
  const counters = new KnownSeries(bounds, (name, labels) => counterSeries(made.counter(name)!, labels))
  const histograms = new KnownSeries(bounds, (name, labels) => histogramSeries(made.histogram(name)!, labels))
  /** The series of each gauge, by their label values. */
  const series = new Map<MetricName, Map<string, Record<string, string>>>()

  const meters: Meters = {
    count(name, labels, by = 1, trace) {
      const counter = made.counter(name)
      if (!counter) return
      const top = topLabels.get(name)
      if (top) return countTop(counter, top, (labels as Record<string, string>)[top.label]!, by)
      if (definitionOf(name).exemplars) counter.inc(exemplary(bounds.within(name, labels), by, trace) as never)
      else if (by < 0 || by === Infinity) throw new TypeError(`${name} cannot be increased by ${by}`)
      else counters.of(name, labels).value += by
    },
    set(name, labels, value) {
      const gauge = made.gauge(name)
      if (!gauge) return
      const of = bounds.within(name, labels)
      gauge.set(of, value)
      const known = series.get(name) ?? new Map<string, Record<string, string>>()
      series.set(name, known.set(Object.values(of).join('\n'), of))
    },
    unset(name) {
      // `reset` would leave zeros behind, and `remove` removes a single series.
      const gauge = made.gauge(name)
      for (const labels of series.get(name)?.values() ?? []) gauge?.remove(labels)
      series.delete(name)
    },
    observe(name, labels, value, trace) {
      const histogram = made.histogram(name)
      if (!histogram) return
      const { buckets: scale = 'fast', exemplars } = definitionOf(name)
      if (!Number.isFinite(value)) throw new TypeError(`${name} cannot observe ${value}`)
      if (exemplars && trace) histogram.observe(exemplary(bounds.within(name, labels), value, trace) as never)
      else observeIn(histograms.of(name, labels), buckets[scale], value)
    },
    restore(name, labels, past) {
      const { buckets: scale = 'fast' } = definitionOf(name)
      if (made.histogram(name)) restoreIn(histograms.of(name, labels), buckets[scale], past)
    },
    onScrape: (collect) => void collectors.push(collect),
    async text(without = []) {
      await Promise.all(collectors.map(bearably))
      // prom-client writes `Nan` for the event loop's lag if two scrapes follow each other at once. Readers expect
      // `NaN`.
      const body = leaveOut((await registry.metrics()).replaceAll(/ Nan$/gm, ' NaN'), without)
      return { contentType: registry.contentType, body }
    },
  }
  // The first overflow of a label is an increase only if Prometheus saw 0 before it.
  for (const label of openLabelsOn(options.on)) meters.count('labelOverflow', { label }, 0)
  return meters
}

function definitionOf(name: MetricName): MetricDefinition {
  return metricNames[name]
}

/**
 * Counts the most frequent values of a label under their own names. When a value loses its series, its count is
 * dropped: added to `other`, it would be counted again in every increase.
 */
function topCounter(onOverflow: (label: string) => void) {
  const known = new Map<Counter, TopValues>()
  return (counter: Counter, { label, top }: TopLabel, value: string, by: number): void => {
    const values = known.get(counter) ?? createTopValues(top, () => performance.now())
    known.set(counter, values)
    const { placed: own, instead } = values.offer(value)
    if (instead !== undefined) counter.remove({ [label]: instead })
    counter.inc({ [label]: own ? value : 'other' }, by)
    if (!own) onOverflow(label)
  }
}

/** The page without all lines of some metrics. */
function leaveOut(page: string, metrics: readonly MetricName[]): string {
  if (metrics.length === 0) return page
  const families = new Set(metrics.map((name) => metricNames[name].text.replace(/_total$/, '')))
  const familyOf = (line: string): string | undefined =>
    /^(?:# \w+ )?(\w+?)(?:_total|_bucket|_sum|_count|_created)?(?:[ {]|$)/.exec(line)?.[1]
  return page
    .split('\n')
    .filter((line) => !families.has(familyOf(line) ?? ''))
    .join('\n')
}

/**
 * Runs a collector with a time limit, and ignores its errors. An unavailable source must not take the other metrics
 * with it; its gauges keep the values of the last scrape.
 */
async function bearably(collect: () => void | Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, COLLECT_MS)))
  try {
    await Promise.race([collect(), late])
  } catch {
    // The owner of the figure logs the failure.
  } finally {
    clearTimeout(timer)
  }
}

/** Meters until the real ones are loaded. They keep all calls and repeat them on the real ones. */
export function createPendingMeters(): Meters & { replay(to: Meters): void } {
  let kept: ((to: Meters) => void)[] = []
  const keep = (one: (to: Meters) => void): void => {
    if (kept.length < MOST_KEPT) kept.push(one)
  }
  return {
    count: (name, labels, by, trace) => keep((to) => to.count(name, labels, by, trace)),
    set: (name, labels, value) => keep((to) => to.set(name, labels, value)),
    unset: (name) => keep((to) => to.unset(name)),
    observe: (name, labels, value, trace) => keep((to) => to.observe(name, labels, value, trace)),
    restore: (name, labels, past) => keep((to) => to.restore(name, labels, past)),
    onScrape: (collect) => keep((to) => to.onScrape(collect)),
    text: async () => ({ contentType: 'text/plain; charset=utf-8', body: '' }),
    replay(to) {
      for (const one of kept) one(to)
      kept = []
    },
  }
}

/** Loading takes a tenth of a second. There are never more calls than this in that time. */
const MOST_KEPT = 10_000
