/**
 * The values that a label may take: a closed list, any values up to a number, or the most frequent ones (for the only
 * label of a counter). All other values become `other`.
 */
export type LabelValues = readonly string[] | { readonly atMost: number } | { readonly top: number }

export interface MetricDefinition {
  /** Dotted name without unit, as in OpenTelemetry. */
  readonly name: string
  /** Name in the Prometheus text, with unit and `_total`. */
  readonly text: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  /** `s`, `By`, `1`, or none. */
  readonly unit: string
  readonly on: 'coordinator' | 'worker' | 'both'
  /** The HELP text: it says what the metric measures. */
  readonly help: string
  readonly labels: Readonly<Record<string, LabelValues>>
  readonly buckets?: keyof typeof buckets
  readonly exemplars?: true
}

/** Upper bounds of histogram buckets. */
export const buckets = {
  fast: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  query: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400],
  ratio: [0.01, 0.1, 0.5, 0.9, 1.1, 2, 4, 10, 100],
} as const
