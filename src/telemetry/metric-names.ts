import { clusterMetrics } from './metrics/cluster-metrics.ts'
import { engineMetrics } from './metrics/engine-metrics.ts'
import { eventLogMetrics } from './metrics/event-log-metrics.ts'
import { processMetrics } from './metrics/process-metrics.ts'
import { statementMetrics } from './metrics/statement-metrics.ts'
import { taskMetrics } from './metrics/task-metrics.ts'

/** All metrics. Code, dashboards, rules and tests take their names from here. */
export const metricNames = {
  ...statementMetrics,
  ...taskMetrics,
  ...eventLogMetrics,
  ...clusterMetrics,
  ...engineMetrics,
  ...processMetrics,
} as const

export type MetricName = keyof typeof metricNames
type Definition<N extends MetricName> = (typeof metricNames)[N]
export type CounterName = { [N in MetricName]: Definition<N>['kind'] extends 'counter' ? N : never }[MetricName]
export type GaugeName = { [N in MetricName]: Definition<N>['kind'] extends 'gauge' ? N : never }[MetricName]
export type HistogramName = { [N in MetricName]: Definition<N>['kind'] extends 'histogram' ? N : never }[MetricName]
/** All labels of a metric. */
export type LabelsOf<N extends MetricName> = { readonly [L in keyof Definition<N>['labels']]: string }
