import type { LabelBounds } from './label-bounds.ts'
import { metricNames, type MetricName } from './metric-names.ts'

/** By the values of a metric's labels, one below the other. */
class Branch<S> {
  readonly below = new Map<string, Branch<S>>()
  series: S | undefined

  reach(value: string): Branch<S> {
    const known = this.below.get(value)
    if (known) return known
    const made = new Branch<S>()
    this.below.set(value, made)
    return made
  }
}

interface Metric<S> {
  /** In the order in which they are looked up. */
  readonly labels: readonly string[]
  readonly root: Branch<S>
}

/**
 * Series that were told of before, by their labels as they came: prom-client would check the labels each time, and look the
 * series up by a text of all of them.
 */
export class KnownSeries<S> {
  readonly #bounds: LabelBounds
  readonly #find: (name: MetricName, labels: Readonly<Record<string, string>>) => S
  readonly #known = new Map<MetricName, Metric<S>>()

  /** @param find the series of labels that are within the bounds, made where there is none; it stays the same */
  constructor(bounds: LabelBounds, find: (name: MetricName, labels: Readonly<Record<string, string>>) => S) {
    this.#bounds = bounds
    this.#find = find
  }

  of(name: MetricName, labels: Readonly<Record<string, string>>): S {
    const metric = this.#of(name)
    let branch: Branch<S> | undefined = metric.root
    for (const label of metric.labels) branch = branch?.below.get(labels[label] ?? '')
    return branch?.series ?? this.#learn(name, metric, labels)
  }

  #of(name: MetricName): Metric<S> {
    const known = this.#known.get(name)
    if (known) return known
    const made = { labels: Object.keys(metricNames[name].labels), root: new Branch<S>() }
    this.#known.set(name, made)
    return made
  }

  #learn(name: MetricName, metric: Metric<S>, labels: Readonly<Record<string, string>>): S {
    const within = this.#bounds.within(name, labels)
    const series = this.#find(name, within)
    // What becomes `other` has no end, and is told of each time.
    if (metric.labels.every((label) => within[label] === labels[label] && within[label] !== 'other'))
      metric.labels.reduce((branch, label) => branch.reach(within[label]!), metric.root).series = series
    return series
  }
}
