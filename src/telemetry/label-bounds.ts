import { metricNames, type MetricName } from './metric-names.ts'
import type { LabelValues, MetricDefinition } from './metrics/metric-definition.ts'

/** Keeps the labels of every metric within the values that its definition allows. */
export class LabelBounds {
  /** Values of open labels that were used, by metric and label. */
  readonly #seen = new Map<string, Set<string>>()
  readonly #onOverflow: (label: string) => void

  /** @param onOverflow called for each value that became `other` */
  constructor(onOverflow: (label: string) => void) {
    this.#onOverflow = onOverflow
  }

  /** The labels of a metric, in the order of its definition. Values that it does not allow become `other`. */
  within(name: MetricName, labels: Readonly<Record<string, string>>): Record<string, string> {
    const { labels: defined }: MetricDefinition = metricNames[name]
    const out: Record<string, string> = {}
    for (const label in defined) {
      const value = labels[label] ?? ''
      if (this.#admits(name, label, defined[label]!, value)) out[label] = value
      else {
        out[label] = 'other'
        if (name !== 'labelOverflow') this.#onOverflow(label)
      }
    }
    return out
  }

  #admits(name: MetricName, label: string, values: LabelValues, value: string): boolean {
    if (Array.isArray(values)) return values.includes(value)
    // Values with a slot were looked up before.
    if ('top' in values) return true
    const key = `${name}/${label}`
    const set = this.#seen.get(key) ?? new Set<string>()
    if (set.has(value)) return true
    if (set.size >= (values as { atMost: number }).atMost) return false
    this.#seen.set(key, set.add(value))
    return true
  }
}
