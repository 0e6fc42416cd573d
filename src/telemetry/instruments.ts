import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { PastObservations, TraceRef } from './meters.ts'
import { buckets, metricNames, type LabelValues, type MetricDefinition, type MetricName } from './metric-names.ts'

type Prom = typeof import('prom-client')

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
        for (const labels of closedCombinations(definition.labels)) {
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
          for (const labels of closedCombinations(definition.labels)) histogram.zero(labels)
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

/** Adds what was observed before to a series. */
export function restoreHistogram(
  histogram: Histogram,
  labels: Readonly<Record<string, string>>,
  bounds: readonly number[],
  { counts, sum }: PastObservations,
): void {
  const { hashMap } = histogram as Histogram & Restorable
  const key = JSON.stringify(Object.entries(labels).toSorted())
  const find = (): HistogramSeries | undefined =>
    Object.values(hashMap).find((one) => JSON.stringify(Object.entries(one.labels).toSorted()) === key)
  if (!find()) histogram.zero(labels)
  const series = find()!
  for (const [index, bound] of bounds.entries())
    series.bucketValues[bound] = (series.bucketValues[bound] ?? 0) + (counts[index] ?? 0)
  series.count += counts.reduce((total, count) => total + count, 0)
  series.sum += sum
}
