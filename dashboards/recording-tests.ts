import { firstRowsWindows, recorded, statementWindows } from './recording-rules.ts'

interface Expected {
  readonly expr: string
  /** Absent: there is no such series. */
  readonly value?: number
  readonly labels?: string
}

function test(
  name: string,
  series: Readonly<Record<string, string>>,
  at: string,
  expected: readonly Expected[],
): object {
  return {
    name,
    interval: '1m',
    input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
    promql_expr_test: expected.map(({ expr, value, labels = '{}' }) => ({
      expr,
      eval_time: at,
      exp_samples: value === undefined ? [] : [{ labels, value }],
    })),
  }
}

/** In thousandths: fractions of sums differ in their last digit. */
const thousandths = (expr: string): string => `round(${expr} * 1000)`

const statements = {
  'quipu_queries_total{state="FINISHED",error_type="none"}': '0+98x20',
  'quipu_queries_total{state="FAILED",error_type="INTERNAL_ERROR"}': '0+2x20',
  // Statements were refused for another reason than the log: this is no outage.
  'quipu_group_rejections_total{group="g",reason="queue_full"}': '0+50x20',
}
const firstRows = {
  'quipu_query_first_page_duration_seconds_count{route="local"}': '0+100x20',
  'quipu_query_first_page_duration_seconds_bucket{route="local",le="1.0"}': '0x20',
  'quipu_query_first_page_duration_seconds_bucket{route="local",le="2.5"}': '0+80x20',
  'quipu_query_first_page_duration_seconds_bucket{route="local",le="+Inf"}': '0+80x20',
  'quipu_query_first_page_duration_seconds_count{route="delegated"}': '0+100x20',
  'quipu_query_first_page_duration_seconds_bucket{route="delegated",le="2.5"}': '0+10x20',
}

/** What the recording rules give, also those that only dashboards show. */
export const recordingTests: readonly object[] = [
  test(
    'statements: the share of bad ones',
    statements,
    '15m',
    statementWindows.map((window) => ({ expr: thousandths(recorded.statementBad(window)), value: 20 })),
  ),
  test(
    'statements: without traffic there is no share',
    { 'quipu_queries_total{state="FINISHED",error_type="none"}': '5x20' },
    '15m',
    statementWindows.map((window) => ({ expr: recorded.statementBad(window) })),
  ),
  test('first rows: the share of late ones', firstRows, '15m', [
    ...firstRowsWindows.map((window) => ({ expr: thousandths(recorded.firstRowsSlowRatio(window)), value: 200 })),
    {
      expr: `${thousandths(`${recorded.firstPageP99}{route="local"}`)}`,
      value: 2485,
      labels: '{route="local"}',
    },
  ]),
  test(
    'first rows: without traffic there is no share',
    {
      'quipu_query_first_page_duration_seconds_count{route="local"}': '5x20',
      'quipu_query_first_page_duration_seconds_bucket{route="local",le="2.5"}': '4x20',
    },
    '15m',
    firstRowsWindows.map((window) => ({ expr: recorded.firstRowsSlowRatio(window) })),
  ),
  test(
    'phases: the slowest hundredth',
    {
      'quipu_query_phase_duration_seconds_bucket{phase="plan",le="1.0"}': '0x20',
      'quipu_query_phase_duration_seconds_bucket{phase="plan",le="2.5"}': '0+10x20',
      'quipu_query_phase_duration_seconds_bucket{phase="plan",le="+Inf"}': '0+10x20',
    },
    '15m',
    [{ expr: thousandths(recorded.phaseP99), value: 2485, labels: '{phase="plan"}' }],
  ),
  test(
    'task retries: without tasks there is no share',
    { 'quipu_tasks_total{state="FINISHED"}': '5x20', 'quipu_task_retries_total{reason="worker_lost"}': '5x20' },
    '15m',
    [{ expr: recorded.taskRetry }],
  ),
]
