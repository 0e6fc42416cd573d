/** Grafana's units for what the metrics measure. */
export type Unit = 's' | 'h' | 'ms' | 'bytes' | 'Bps' | 'reqps' | 'cps' | 'short' | 'percentunit' | 'x'

/** From this value on (or, with `below`, up to it) the panel has this colour. */
export interface Threshold {
  readonly value: number
  readonly color: 'amber' | 'red'
  readonly below?: true
}

export interface PromTarget {
  readonly expr: string
  /** `{{label}}` stands for a label's value. */
  readonly legend: string
  /** The metric has exemplars: dots that lead to a trace. */
  readonly exemplar?: true
}

interface PanelCommon {
  readonly title: string
  /** What it shows, and what to do when it is not as it should be. */
  readonly description: string
  /** Of 24. @default 8 */
  readonly width?: 6 | 8 | 12 | 24
  /** Dashboard that says more, or `runbook`. */
  readonly link?: DashboardName | 'runbook'
}

export interface MetricPanel extends PanelCommon {
  readonly kind: 'lines' | 'value' | 'heatmap'
  readonly unit: Unit
  readonly targets: readonly PromTarget[]
  readonly thresholds?: readonly Threshold[]
}

/** Rows of the read models in Postgres. */
export interface TablePanel extends PanelCommon {
  readonly kind: 'table'
  readonly sql: string
  /** Columns with a unit. */
  readonly units?: Readonly<Record<string, Unit>>
  /** Does it have `query_id`, `trace_id`? Then they lead there. */
  readonly leadsTo: readonly ('query' | 'trace')[]
}

export type PanelSpec = MetricPanel | TablePanel

export const dashboardNames = [
  'overview',
  'statements',
  'queues',
  'workers',
  'clusters',
  'log',
  'runtime',
  'audit',
  'access',
  'cost',
] as const
export type DashboardName = (typeof dashboardNames)[number]

export interface DashboardSpec {
  readonly name: DashboardName
  readonly title: string
  /** The question it answers. */
  readonly question: string
  readonly panels: readonly PanelSpec[]
  /** Further variables: free text. */
  readonly textVariables?: readonly { readonly name: string; readonly label: string; readonly value: string }[]
}

export function lines(
  title: string,
  description: string,
  unit: Unit,
  targets: readonly PromTarget[],
  more: Partial<Pick<MetricPanel, 'thresholds' | 'link' | 'width'>> = {},
): MetricPanel {
  return { kind: 'lines', title, description, unit, targets, ...more }
}

export function value(
  title: string,
  description: string,
  unit: Unit,
  targets: readonly PromTarget[],
  more: Partial<Pick<MetricPanel, 'thresholds' | 'link' | 'width'>> = {},
): MetricPanel {
  return { kind: 'value', title, description, unit, targets, ...more }
}

export function amber(from: number): Threshold {
  return { value: from, color: 'amber' }
}

export function red(from: number): Threshold {
  return { value: from, color: 'red' }
}
