import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { createTopValues, type TopValues } from './top-values.ts'
import {
  buckets,
  metricNames,
  type CounterName,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  type LabelValues,
  type MetricDefinition,
  type MetricName,
} from './metric-names.ts'

/** Where a sample came from: an exemplar leads from the metric to the trace. */
export interface TraceRef {
  readonly traceId: string
  readonly spanId: string
}

/** A process's metrics. Values of labels outside their closed set are folded into `other`. */
export interface Meters {
  count<N extends CounterName>(name: N, labels: LabelsOf<N>, by?: number, trace?: TraceRef): void
  set<N extends GaugeName>(name: N, labels: LabelsOf<N>, value: number): void
  /** Takes a gauge's series away: what another process is to tell from now on. */
  unset<N extends GaugeName>(name: N): void
  observe<N extends HistogramName>(name: N, labels: LabelsOf<N>, value: number, trace?: TraceRef): void
  /** Adds what was observed before: `counts` of each bucket by itself, beyond the last bound too. */
  restore<N extends HistogramName>(name: N, labels: LabelsOf<N>, past: PastObservations): void
  /** Called before each scrape: sets gauges that are read, not kept. */
  onScrape(collect: () => void | Promise<void>): void
  /** The exposition, OpenMetrics text. */
  text(): Promise<{ readonly contentType: string; readonly body: string }>
}

export interface PastObservations {
  readonly counts: readonly number[]
  readonly sum: number
}

export interface MetersOptions {
  readonly on: 'coordinator' | 'worker'
  /** Also `nodejs_*` and `process_*`. */
  readonly processMetrics: boolean
}

/** A collector gets so long: a scrape each second must still be answered while the database is stopped. */
const COLLECT_MS = 500

/** Counters with one label, whose most frequent values are kept apart. */
const topLabels = new Map(
  (Object.entries(metricNames) as [MetricName, MetricDefinition][]).flatMap(([name, { labels }]) =>
    Object.entries(labels).flatMap(([label, values]) =>
      'top' in values ? [[name, { label, top: values.top }] as const] : [],
    ),
  ),
)

/** Of prom-client's histogram, which offers no other way to begin elsewhere than at 0. */
interface Restorable {
  readonly hashMap: Readonly<Record<string, HistogramSeries>>
}
interface HistogramSeries {
  readonly labels: Readonly<Record<string, string>>
  readonly bucketValues: Record<number, number>
  count: number
  sum: number
}

type Kinds = { counter: Counter; gauge: Gauge; histogram: Histogram }

/** Loads prom-client (70 ms of CPU): called once the process serves. */
export async function createMeters(options: MetersOptions): Promise<Meters> {
  const prom = await import('prom-client')
  const registry = new prom.Registry() as unknown as Registry
  // Exemplars need this content type before the first metric is made.
  registry.setContentType(prom.Registry.OPENMETRICS_CONTENT_TYPE as never)
  if (options.processMetrics) prom.collectDefaultMetrics({ register: registry })
  const collectors: (() => void | Promise<void>)[] = []
  const made = new Map<MetricName, Kinds[keyof Kinds]>()
  const seen = new Map<string, Set<string>>()
  const tops = new Map<MetricName, TopValues>()
  /** Series of each gauge, by their label values. */
  const series = new Map<MetricName, Map<string, Record<string, string>>>()

  for (const [name, definition] of Object.entries(metricNames) as [MetricName, MetricDefinition][]) {
    if (definition.on !== 'both' && definition.on !== options.on) continue
    const common = {
      // The OpenMetrics writer of prom-client takes `_total` away itself.
      name: definition.text,
      help: definition.help,
      labelNames: Object.keys(definition.labels),
      registers: [registry],
      enableExemplars: definition.exemplars ?? false,
    }
    if (definition.kind === 'counter') {
      const counter = new prom.Counter(common)
      made.set(name, counter)
      // A series born at 1 shows no increase: where the labels are closed, every series starts at 0.
      for (const labels of closedCombinations(definition.labels)) {
        if (definition.exemplars) counter.inc(exemplary(labels, 0) as never)
        else counter.inc(labels, 0)
      }
    } else if (definition.kind === 'gauge') {
      const gauge = new prom.Gauge(common)
      made.set(name, gauge)
      // One without labels would begin at 0, which is a statement: never verified, no writer, not ready.
      if (common.labelNames.length === 0) gauge.remove()
    } else {
      const histogram = new prom.Histogram({ ...common, buckets: [...buckets[definition.buckets ?? 'fast']] })
      made.set(name, histogram)
      if (common.labelNames.length > 0)
        for (const labels of closedCombinations(definition.labels)) histogram.zero(labels)
    }
  }

  function bounded(name: MetricName, labels: Readonly<Record<string, string>>): Record<string, string> {
    const definition: MetricDefinition = metricNames[name]
    const out: Record<string, string> = {}
    for (const [label, values] of Object.entries(definition.labels)) {
      const value = labels[label] ?? ''
      if (admits(`${name}/${label}`, values, value)) out[label] = value
      else {
        out[label] = 'other'
        if (name !== 'labelOverflow') meters.count('labelOverflow', { label })
      }
    }
    return out
  }
  function admits(key: string, values: LabelValues, value: string): boolean {
    if (Array.isArray(values)) return values.includes(value)
    // Those that have a place were looked up before.
    if ('top' in values) return true
    const set = seen.get(key) ?? new Set<string>()
    if (set.has(value)) return true
    if (set.size >= (values as { atMost: number }).atMost) return false
    seen.set(key, set.add(value))
    return true
  }

  /**
   * Counts one of the most frequent values under its own name. Who loses its place goes with what was counted: added to
   * `other`, it would be counted once more in every increase.
   */
  function countTop(counter: Counter, name: MetricName, label: string, top: number, value: string, by: number): void {
    const values = tops.get(name) ?? createTopValues(top, () => performance.now())
    tops.set(name, values)
    const { placed: own, instead } = values.offer(value)
    if (instead !== undefined) counter.remove({ [label]: instead })
    counter.inc({ [label]: own ? value : 'other' }, by)
    if (!own) meters.count('labelOverflow', { label })
  }

  const meters: Meters = {
    count(name, labels, by = 1, trace) {
      const counter = made.get(name) as Counter | undefined
      if (!counter) return
      const top = topLabels.get(name)
      if (top) return countTop(counter, name, top.label, top.top, (labels as Record<string, string>)[top.label]!, by)
      const definition: MetricDefinition = metricNames[name]
      const of = bounded(name, labels as Record<string, string>)
      if (definition.exemplars) counter.inc(exemplary(of, by, trace) as never)
      else counter.inc(of, by)
    },
    set(name, labels, value) {
      const gauge = made.get(name) as Gauge | undefined
      if (!gauge) return
      const of = bounded(name, labels as Record<string, string>)
      gauge.set(of, value)
      const known = series.get(name) ?? new Map<string, Record<string, string>>()
      series.set(name, known.set(Object.values(of).join('\n'), of))
    },
    unset(name) {
      // `reset` would leave zeros behind, and `remove` takes one series.
      const gauge = made.get(name) as Gauge | undefined
      for (const labels of series.get(name)?.values() ?? []) gauge?.remove(labels)
      series.delete(name)
    },
    observe(name, labels, value, trace) {
      const histogram = made.get(name) as Histogram | undefined
      if (!histogram) return
      const definition: MetricDefinition = metricNames[name]
      const of = bounded(name, labels as Record<string, string>)
      if (definition.exemplars) histogram.observe(exemplary(of, value, trace) as never)
      else histogram.observe(of, value)
    },
    restore(name, labels, { counts, sum }) {
      const histogram = made.get(name) as (Histogram & Restorable) | undefined
      if (!histogram) return
      const of = bounded(name, labels as Record<string, string>)
      const key = JSON.stringify(Object.entries(of).toSorted())
      const find = (): HistogramSeries | undefined =>
        Object.values(histogram.hashMap).find((one) => JSON.stringify(Object.entries(one.labels).toSorted()) === key)
      if (!find()) histogram.zero(of)
      const series = find()!
      const bounds: readonly number[] = buckets[(metricNames[name] as MetricDefinition).buckets ?? 'fast']
      for (const [index, bound] of bounds.entries())
        series.bucketValues[bound] = (series.bucketValues[bound] ?? 0) + (counts[index] ?? 0)
      series.count += counts.reduce((total, count) => total + count, 0)
      series.sum += sum
    },
    onScrape: (collect) => void collectors.push(collect),
    async text() {
      await Promise.all(collectors.map(bearably))
      // prom-client writes `Nan` for the event loop's lag where two scrapes follow each other at once; readers want `NaN`.
      const body = (await registry.metrics()).replaceAll(/ Nan$/gm, ' NaN')
      return { contentType: registry.contentType, body }
    },
  }
  return meters
}

/** What is away must not take the rest of the figures with it: then the gauges are those of the last scrape. */
async function bearably(collect: () => void | Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, COLLECT_MS)))
  try {
    await Promise.race([collect(), late])
  } catch {
    // Whoever owns the figure tells of its trouble in the log.
  } finally {
    clearTimeout(timer)
  }
}

/** With exemplars on, prom-client takes this form alone. */
function exemplary(labels: Readonly<Record<string, string>>, value: number, trace?: TraceRef): unknown {
  return { labels, value, exemplarLabels: trace ? { trace_id: trace.traceId, span_id: trace.spanId } : {} }
}

function closedCombinations(labels: Readonly<Record<string, LabelValues>>): Record<string, string>[] {
  let combinations: Record<string, string>[] = [{}]
  for (const [label, values] of Object.entries(labels)) {
    if (!Array.isArray(values)) return []
    combinations = combinations.flatMap((one) => values.map((value) => ({ ...one, [label]: value })))
    // A product of many labels would be mostly series that never move.
    if (combinations.length > 12) return []
  }
  return combinations
}

/** Meters before they are loaded: what is told to them is kept, and told again to the real ones. */
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

/** Loading takes a tenth of a second; more than this is not told by then. */
const MOST_KEPT = 10_000
