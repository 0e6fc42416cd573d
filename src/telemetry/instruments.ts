import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { metricNames, type MetricName } from './metric-names.ts'
import { buckets, type LabelValues, type MetricDefinition } from './metrics/metric-definition.ts'

type Prom = typeof import('./prom-client.ts')

/** The trace of a sample. An exemplar leads from the metric to the trace. */
export interface TraceRef {
  readonly traceId: string
  readonly spanId: string
}

export interface PastObservations {
  readonly counts: readonly number[]
  readonly sum: number
}

/** The prom-client metrics of a process, by name. Metrics of other kinds of processes are missing. */
export interface Instruments {
  counter(name: MetricName): Counter | undefined
  gauge(name: MetricName): Gauge | undefined
  histogram(name: MetricName): Histogram | undefined
}

/** Registers every metric of a process. */
export function makeInstruments(prom: Prom, registry: Registry, on: 'coordinator' | 'worker'): Instruments {
  const counters = new Map<MetricName, Counter>()
  const gauges = new Map<MetricName, Gauge>()
  const histograms = new Map<MetricName, Histogram>()
  for (const [name, definition] of Object.entries(metricNames) as [MetricName, MetricDefinition][]) {
    if (definition.on !== 'both' && definition.on !== on) continue
    const common = {
      // prom-client's OpenMetrics writer strips `_total` itself.
      name: definition.text,
      help: definition.help,
      labelNames: Object.keys(definition.labels),
      registers: [registry],
      enableExemplars: definition.exemplars ?? false,
    }
    switch (definition.kind) {
      case 'counter': {
        const counter = new prom.Counter(common)
        counters.set(name, counter)
        // A series that first appears with 1 shows no increase. If the labels are closed lists, every series starts at
        // 0.
        for (const labels of closedCombinations(definition.labels, 32)) {
          if (definition.exemplars) counter.inc(exemplary(labels, 0) as never)
          else counter.inc(labels, 0)
        }
        break
      }
      case 'gauge': {
        const gauge = new prom.Gauge(common)
        gauges.set(name, gauge)
        // A gauge without labels would start at 0, which would be a claim: never verified, no writer, not ready.
        if (common.labelNames.length === 0) gauge.remove()
        break
      }
      case 'histogram': {
        const histogram = new prom.Histogram({ ...common, buckets: [...buckets[definition.buckets ?? 'fast']] })
        histograms.set(name, histogram)
        if (common.labelNames.length > 0)
          for (const labels of closedCombinations(definition.labels, 12)) histogram.zero(labels)
      }
    }
  }
  return {
    counter: (name) => counters.get(name),
    gauge: (name) => gauges.get(name),
    histogram: (name) => histograms.get(name),
  }
}

/** The arguments of `inc` for a metric with exemplars: prom-client accepts only this form. */
export function exemplary(labels: Readonly<Record<string, string>>, value: number, trace?: TraceRef): unknown {
  return { labels, value, exemplarLabels: trace ? { trace_id: trace.traceId, span_id: trace.spanId } : {} }
}

/** @param most if there are more combinations, none is returned: most of those series would never change */
function closedCombinations(labels: Readonly<Record<string, LabelValues>>, most: number): Record<string, string>[] {
  let combinations: Record<string, string>[] = [{}]
  for (const [label, values] of Object.entries(labels)) {
    if (!Array.isArray(values)) return []
    combinations = combinations.flatMap((one) => values.map((value) => ({ ...one, [label]: value })))
    if (combinations.length > most) return []
  }
  return combinations
}

/** The internals of prom-client's metrics: there is no other access to a single series. */
interface WithSeries<S> {
  readonly hashMap: Readonly<Record<string, S & { readonly labels: Readonly<Record<string, string>> }>>
}

export interface CounterSeries {
  value: number
}

export interface HistogramSeries {
  /** Count of each bucket by its upper bound, not cumulative. */
  readonly bucketValues: Record<number, number>
  count: number
  sum: number
}

function seriesIn<S>(metric: unknown, labels: Readonly<Record<string, string>>): S | undefined {
  const names = Object.keys(labels)
  return Object.values((metric as WithSeries<S>).hashMap).find((one) =>
    names.every((name) => one.labels[name] === labels[name]),
  )
}

/** A series of a counter without exemplars. @param labels all labels of the metric */
export function counterSeries(counter: Counter, labels: Readonly<Record<string, string>>): CounterSeries {
  counter.inc(labels, 0)
  return seriesIn<CounterSeries>(counter, labels)!
}

/** @param labels all labels of the metric */
export function histogramSeries(histogram: Histogram, labels: Readonly<Record<string, string>>): HistogramSeries {
  const known = seriesIn<HistogramSeries>(histogram, labels)
  if (known) return known
  histogram.zero(labels)
  return seriesIn<HistogramSeries>(histogram, labels)!
}

/** @param value finite */
export function observeIn(series: HistogramSeries, bounds: readonly number[], value: number): void {
  const bound = bounds.find((one) => value <= one)
  if (bound !== undefined) series.bucketValues[bound]!++
  series.count++
  series.sum += value
}

/** Adds earlier observations. */
export function restoreIn(series: HistogramSeries, bounds: readonly number[], { counts, sum }: PastObservations): void {
  for (const [index, bound] of bounds.entries()) series.bucketValues[bound]! += counts[index] ?? 0
  series.count += counts.reduce((total, count) => total + count, 0)
  series.sum += sum
}
