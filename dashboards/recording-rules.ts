import { ruleQuery } from './promql.ts'

/** A series that Prometheus computes once a minute: `level:metric:operation`. */
export interface RecordingRule {
  readonly record: string
  readonly expr: string
}

/** Windows of the burn rates; those of first rows end at 6 h. */
export const statementWindows = ['5m', '30m', '1h', '2h', '6h', '1d', '3d', '30d'] as const
export const firstRowsWindows = ['5m', '30m', '1h', '2h', '6h'] as const
export type StatementWindow = (typeof statementWindows)[number]
export type FirstRowsWindow = (typeof firstRowsWindows)[number]

/** Names of recorded series. */
export const recorded = {
  statements: 'quipu:statements:rate5m',
  statementsBad: 'quipu:statements_bad:rate5m',
  statementBad: (window: StatementWindow) => `quipu:statement_bad:ratio${window}`,
  firstRows: 'quipu:first_rows:rate5m',
  firstRowsSlow: 'quipu:first_rows_slow:rate5m',
  firstRowsSlowRatio: (window: FirstRowsWindow) => `quipu:first_rows_slow:ratio${window}`,
  firstPageP99: 'route:quipu_query_first_page_duration_seconds:p99_5m',
  phaseP99: 'phase:quipu_query_phase_duration_seconds:p99_5m',
  projectionLag: 'quipu:projection_lag_seconds:max',
  queueFill: 'group:quipu_queue_fill:ratio',
  taskRetry: 'quipu:task_retry:ratio15m',
} as const

/** First rows later than this burn budget; a bucket's bound with a fraction, which every Prometheus writes alike. */
export const SLOW_FIRST_ROWS_SECONDS = 2.5

const five = ruleQuery('5m')
const quarter = ruleQuery('15m')
const now = ruleQuery('5m')

/** Weighted by traffic: the ratio of the sums, none without traffic. */
function ratioOver(bad: string, all: string, window: string): string {
  return window === '5m'
    ? `${bad} / (${all} > 0)`
    : `sum_over_time(${bad}[${window}]) / (sum_over_time(${all}[${window}]) > 0)`
}

const orNone = (expr: string): string => `(${expr} or vector(0))`
const turnedAway = orNone(five.rate('groupRejections', [], 'reason="log_down"'))

export const recordingRules: readonly RecordingRule[] = [
  { record: recorded.statements, expr: `${orNone(five.rate('queries'))} + ${turnedAway}` },
  {
    record: recorded.statementsBad,
    expr: `${orNone(five.rate('queries', [], 'error_type="INTERNAL_ERROR"'))} + ${turnedAway}`,
  },
  ...statementWindows.map((window) => ({
    record: recorded.statementBad(window),
    expr: ratioOver(recorded.statementsBad, recorded.statements, window),
  })),
  { record: recorded.firstRows, expr: five.rateOf('count', 'queryFirstPageDuration', [], 'route!="delegated"') },
  {
    record: recorded.firstRowsSlow,
    expr: `${recorded.firstRows} - ${five.rateOf('bucket', 'queryFirstPageDuration', [], `route!="delegated",le="${SLOW_FIRST_ROWS_SECONDS}"`)}`,
  },
  ...firstRowsWindows.map((window) => ({
    record: recorded.firstRowsSlowRatio(window),
    expr: ratioOver(recorded.firstRowsSlow, recorded.firstRows, window),
  })),
  { record: recorded.firstPageP99, expr: five.quantile(0.99, 'queryFirstPageDuration', ['route']) },
  { record: recorded.phaseP99, expr: five.quantile(0.99, 'queryPhaseDuration', ['phase']) },
  { record: recorded.projectionLag, expr: now.max('projectionLag') },
  {
    record: recorded.queueFill,
    expr: `${now.sum('groupQueuedQueries', ['group'])} / ${now.sum('groupQueuedLimitQueries', ['group'])}`,
  },
  { record: recorded.taskRetry, expr: `${quarter.rate('taskRetries')} / (${quarter.rate('tasks')} > 0)` },
]
