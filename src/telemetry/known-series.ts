import type { LabelBounds } from './label-bounds.ts'
import { metricNames, type MetricName } from './metric-names.ts'

/** A tree of series: one level for each label of a metric, one branch for each value. */
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
  /** Labels in the order of the tree's levels. */
  readonly labels: readonly string[]
  readonly root: Branch<S>
}

/**
 * Series that were used before, by their labels as they were given. prom-client would check the labels each time, and
 * look the series up by a text of all of them.
 */
export class KnownSeries<S> {
  readonly #bounds: LabelBounds
  readonly #find: (name: MetricName, labels: Readonly<Record<string, string>>) => S
  readonly #known = new Map<MetricName, Metric<S>>()

  /** @param find finds the series of labels within the bounds, or makes it; the series stays the same */
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
    // Values that become `other` are unlimited in number, and each use must be reported.
    if (metric.labels.every((label) => within[label] === labels[label] && within[label] !== 'other'))
      metric.labels.reduce((branch, label) => branch.reach(within[label]!), metric.root).series = series
    return series
  }
}
