import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { PastObservations, TraceRef } from './meters.ts'
import { buckets, metricNames, type LabelValues, type MetricDefinition, type MetricName } from './metric-names.ts'

type Prom = typeof import('./prom-client.ts')

/** prom-client's side of the metrics of a process, by their names; those of other processes are missing. */
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
      // The OpenMetrics writer of prom-client takes `_total` away itself.
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
        // A series born at 1 shows no increase: where the labels are closed, every series starts at 0.
        for (const labels of closedCombinations(definition.labels, 16)) {
          if (definition.exemplars) counter.inc(exemplary(labels, 0) as never)
          else counter.inc(labels, 0)
        }
        break
      }
      case 'gauge': {
        const gauge = new prom.Gauge(common)
        gauges.set(name, gauge)
        // One without labels would begin at 0, which is a statement: never verified, no writer, not ready.
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

/** With exemplars on, prom-client takes this form alone. */
export function exemplary(labels: Readonly<Record<string, string>>, value: number, trace?: TraceRef): unknown {
  return { labels, value, exemplarLabels: trace ? { trace_id: trace.traceId, span_id: trace.spanId } : {} }
}

/** @param most a product of more labels would be mostly series that never move: it has none */
function closedCombinations(labels: Readonly<Record<string, LabelValues>>, most: number): Record<string, string>[] {
  let combinations: Record<string, string>[] = [{}]
  for (const [label, values] of Object.entries(labels)) {
    if (!Array.isArray(values)) return []
    combinations = combinations.flatMap((one) => values.map((value) => ({ ...one, [label]: value })))
    if (combinations.length > most) return []
  }
  return combinations
}

/** Of prom-client's metrics, which offer no other way to a series of theirs. */
interface WithSeries<S> {
  readonly hashMap: Readonly<Record<string, S & { readonly labels: Readonly<Record<string, string>> }>>
}

export interface CounterSeries {
  value: number
}

export interface HistogramSeries {
  /** By the upper bound of each, without those of the buckets below. */
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

/** A series of a counter without exemplars. @param labels all that it has */
export function counterSeries(counter: Counter, labels: Readonly<Record<string, string>>): CounterSeries {
  counter.inc(labels, 0)
  return seriesIn<CounterSeries>(counter, labels)!
}

/** @param labels all that it has */
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

/** Adds what was observed before. */
export function restoreIn(series: HistogramSeries, bounds: readonly number[], { counts, sum }: PastObservations): void {
  for (const [index, bound] of bounds.entries()) series.bucketValues[bound]! += counts[index] ?? 0
  series.count += counts.reduce((total, count) => total + count, 0)
  series.sum += sum
}
