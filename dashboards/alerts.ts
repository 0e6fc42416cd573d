import { ruleQuery } from './promql.ts'
import { recorded, type FirstRowsWindow, type StatementWindow } from './recording-rules.ts'

export interface Alert {
  /** Begins with Quipu; its section in docs/runbooks.md is the name in lower case. */
  readonly alert: string
  readonly expr: string
  /** How long it must hold. */
  readonly for: string
  /** critical wakes somebody. */
  readonly severity: 'critical' | 'warning'
  readonly summary: string
  /** Tells alerts of one name apart. */
  readonly window?: string
}

const RUNBOOKS = 'docs/runbooks.md'

export function runbookOf(alert: string): string {
  return `${RUNBOOKS}#${alert.toLowerCase()}`
}

const five = ruleQuery('5m')
const quarter = ruleQuery('15m')

/** Bad statements in 30 days: 0.1 %. Slow first rows: 1 %. */
const STATEMENT_BUDGET = 0.001
const FIRST_ROWS_BUDGET = 0.01
/** Fewer bad statements than this page nobody, whatever their share. */
const BAD_STATEMENTS = 10

function statementBurn(factor: number, long: StatementWindow, short: StatementWindow, atLeast: boolean): string {
  const bound = `> ${factor} * ${STATEMENT_BUDGET}`
  const enough = `sum_over_time(${recorded.statementsBad}[${long}]) * 60 > ${BAD_STATEMENTS}`
  return `${recorded.statementBad(long)} ${bound} and ${recorded.statementBad(short)} ${bound}${atLeast ? ` and ${enough}` : ''}`
}

function firstRowsBurn(factor: number, long: FirstRowsWindow, short: FirstRowsWindow): string {
  const bound = `> ${factor} * ${FIRST_ROWS_BUDGET}`
  return `${recorded.firstRowsSlowRatio(long)} ${bound} and ${recorded.firstRowsSlowRatio(short)} ${bound}`
}

const statementBudget =
  'So many statements fail because of Quipu that the error budget of 30 days will be used up early'
const firstRowsBudget = 'So many first rows are late that the budget of 30 days will be used up early'

export const alerts: readonly Alert[] = [
  {
    alert: 'QuipuStatementBudgetBurn',
    expr: statementBurn(14.4, '1h', '5m', true),
    for: '2m',
    severity: 'critical',
    summary: statementBudget,
    window: '1h',
  },
  {
    alert: 'QuipuStatementBudgetBurn',
    expr: statementBurn(6, '6h', '30m', true),
    for: '15m',
    severity: 'critical',
    summary: statementBudget,
    window: '6h',
  },
  {
    alert: 'QuipuStatementBudgetBurn',
    expr: statementBurn(3, '1d', '2h', false),
    for: '1h',
    severity: 'warning',
    summary: statementBudget,
    window: '1d',
  },
  {
    alert: 'QuipuStatementBudgetBurn',
    expr: statementBurn(1, '3d', '6h', false),
    for: '3h',
    severity: 'warning',
    summary: statementBudget,
    window: '3d',
  },
  {
    alert: 'QuipuFirstRowsBudgetBurn',
    expr: firstRowsBurn(14.4, '1h', '5m'),
    for: '2m',
    severity: 'critical',
    summary: firstRowsBudget,
    window: '1h',
  },
  {
    alert: 'QuipuFirstRowsBudgetBurn',
    expr: firstRowsBurn(6, '6h', '30m'),
    for: '15m',
    severity: 'critical',
    summary: firstRowsBudget,
    window: '6h',
  },
  {
    alert: 'QuipuCoordinatorDown',
    expr: 'absent(up{job="quipu-coordinator"} == 1)',
    for: '1m',
    severity: 'critical',
    summary: 'No coordinator answers Prometheus',
  },
  {
    alert: 'QuipuWorkerDown',
    expr: 'up{job="quipu-worker"} == 0',
    for: '2m',
    severity: 'warning',
    summary: 'Worker {{ $labels.instance }} does not answer Prometheus',
  },
  {
    alert: 'QuipuNoActiveWorker',
    expr: `(${five.sum('workers', [], 'state="active"')} or vector(0)) == 0`,
    for: '1m',
    severity: 'critical',
    summary: 'No worker takes tasks',
  },
  {
    alert: 'QuipuWriterCount',
    expr: `${five.sum('writer')} != 1`,
    for: '30s',
    severity: 'critical',
    summary: '{{ $value }} coordinators report that they write the event log',
  },
  {
    alert: 'QuipuEventLogDown',
    expr: `${five.max('logUp')} == 0`,
    for: '1m',
    severity: 'critical',
    summary: 'The event log accepts no appends: clients get 503',
  },
  {
    alert: 'QuipuAppendSlow',
    expr: `${five.quantile(0.99, 'eventAppendDuration', ['step'])} > 0.25`,
    for: '10m',
    severity: 'warning',
    summary: 'Appends to the event log are slow: {{ $labels.step }}',
  },
  {
    alert: 'QuipuAppendFailing',
    // Appends wait while the log is away, and an outage that heals wakes nobody: only its last two minutes count.
    expr:
      `${five.increase('eventAppendFailures', '10m', ['reason'], 'reason!~"fenced|unknown|unavailable"')} > 0 or ` +
      `${five.increase('eventAppendFailures', '2m', ['reason'], 'reason="unavailable"')} > 0`,
    for: '4m',
    severity: 'critical',
    summary: 'The event log refuses appends: {{ $labels.reason }}',
  },
  {
    alert: 'QuipuStaleWriter',
    expr: `${five.increase('eventsIgnored', '2m', [], 'reason=~"stale|gap"')} > 0`,
    // At a take-over it does so until it notices.
    for: '5m',
    severity: 'warning',
    summary: 'A fenced coordinator has been writing to the event log for minutes',
  },
  {
    alert: 'QuipuEpochFlapping',
    expr: `${five.increase('epochClaims', '15m', [], 'result="won"')} > 3`,
    for: '0s',
    severity: 'critical',
    summary: 'Coordinators repeatedly take the event log from each other',
  },
  {
    alert: 'QuipuProjectionLagging',
    expr: `${recorded.projectionLag} > 10`,
    for: '5m',
    severity: 'warning',
    summary: 'The history is {{ $value }} s behind the event log',
  },
  {
    alert: 'QuipuProjectionStuck',
    expr: `${five.max('projectionLagEvents', ['projection'])} > 0 and ${five.rate('projectionEvents', ['projection'])} == 0`,
    for: '3m',
    severity: 'critical',
    summary: 'Projection {{ $labels.projection }} applies no events',
  },
  {
    alert: 'QuipuProjectionStopped',
    expr: `${five.max('projectionStopped', ['projection'])} > 0`,
    for: '0s',
    severity: 'critical',
    summary: 'Projection {{ $labels.projection }} stopped: the event log does not match its checkpoint',
  },
  {
    alert: 'QuipuPublishingBehind',
    expr: `${five.max('publishingLag', ['to'])} > 300`,
    for: '5m',
    severity: 'warning',
    summary: 'Publishing to {{ $labels.to }} is {{ $value }} s behind the event log',
  },
  {
    alert: 'QuipuDeadLetters',
    expr: `${five.sum('deadLetters', ['projection'])} > 0`,
    for: '0s',
    severity: 'critical',
    summary: '{{ $value }} events could not be projected',
  },
  {
    alert: 'QuipuAuditFinding',
    expr: `${five.increase('auditFindings', '1h', ['kind'], 'kind!="unknown-key"')} > 0`,
    for: '0s',
    severity: 'critical',
    summary: 'The audit of the event log found: {{ $labels.kind }}',
  },
  {
    alert: 'QuipuAuditUnknownKey',
    expr: `${five.increase('auditFindings', '1h', [], 'kind="unknown-key"')} > 0`,
    for: '0s',
    severity: 'warning',
    summary: 'The audit of the event log found anchors with an unknown key',
  },
  {
    alert: 'QuipuAuditStale',
    expr: `time() - ${five.max('auditVerifiedTimestamp')} > 93600`,
    for: '15m',
    severity: 'warning',
    summary: 'The event log was not verified for more than a day',
  },
  {
    alert: 'QuipuQueueFilling',
    expr: `${recorded.queueFill} > 0.8`,
    for: '5m',
    severity: 'warning',
    summary: 'The queue of {{ $labels.group }} is nearly full',
  },
  {
    alert: 'QuipuTurningAway',
    // A group of each user is one label, as its template: `all.${USER}`.
    expr: `label_replace(${five.rate('groupRejections', ['group', 'reason'])}, "group", "\${1}(any user)\${2}", "group", "(.*)[$][{]USER[}](.*)") > 0`,
    for: '5m',
    severity: 'warning',
    summary: 'Statements of group {{ $labels.group }} are rejected: {{ $labels.reason }}',
  },
  {
    alert: 'QuipuEngineMemoryKills',
    expr: `${five.increase('engineRestarts', '15m', ['instance'], 'reason="memory"')} > 3`,
    for: '0s',
    severity: 'warning',
    summary: 'Engines of {{ $labels.instance }} are killed for their memory',
  },
  {
    alert: 'QuipuEngineCrashing',
    expr: `${five.increase('engineRestarts', '15m', ['instance'], 'reason=~"crash|hang"')} > 2`,
    for: '0s',
    severity: 'critical',
    summary: 'Engines of {{ $labels.instance }} crash',
  },
  {
    alert: 'QuipuPagesLost',
    expr: `${five.increase('pagesLost', '5m', [], 'kind="result"')} > 0`,
    for: '0s',
    severity: 'warning',
    summary: 'Listed result pages are missing',
  },
  {
    alert: 'QuipuPageStoreFilling',
    expr: `${five.sum('pageStoreBytes', ['instance', 'kind'])} / ${five.sum('pageStoreLimitBytes', ['instance', 'kind'])} > 0.85`,
    for: '5m',
    severity: 'warning',
    summary: 'The page store of {{ $labels.instance }} is nearly full',
  },
  {
    alert: 'QuipuTaskRetries',
    expr: `${recorded.taskRetry} > 0.05`,
    for: '10m',
    severity: 'warning',
    summary: 'More than 5 % of the tasks run twice',
  },
  {
    alert: 'QuipuPostgresPoolWaiting',
    expr: `${five.sum('postgresConnections', ['instance'], 'state="waiting"')} > 0`,
    for: '5m',
    severity: 'warning',
    summary: 'Reads of {{ $labels.instance }} wait for a connection to Postgres',
  },
  {
    alert: 'QuipuEventLoopBlocked',
    expr: `${five.process('max', 'nodejs_eventloop_lag_p99_seconds')} > 0.25`,
    for: '5m',
    severity: 'warning',
    summary: 'The event loop of {{ $labels.instance }} is blocked',
  },
  {
    alert: 'QuipuLoginsRefused',
    expr: `${five.rate('authentications', ['method'], 'result="refused"')} > 1`,
    for: '5m',
    severity: 'warning',
    summary: 'Many log-ins are refused: {{ $labels.method }}',
  },
  {
    alert: 'QuipuFileBroken',
    expr: `${five.max('filesBroken', ['instance', 'file'])} > 0`,
    for: '5m',
    severity: 'warning',
    summary:
      'The changed file {{ $labels.file }} of {{ $labels.instance }} could not be loaded: its earlier content is in force',
  },
  {
    alert: 'QuipuClusterUnhealthy',
    // An operator that drains a cluster expects it to be away.
    expr: `${five.max('clusterHealth', ['cluster'], 'health="HEALTHY"')} == 0 and on (cluster) ${five.max('clusterState', ['cluster'], 'state="ACTIVE"')} == 1`,
    for: '5m',
    severity: 'warning',
    summary: 'Cluster {{ $labels.cluster }} gets no statements: it is not healthy',
  },
  {
    alert: 'QuipuClusterGroupClosed',
    expr: `${five.max('clustersOpen', ['group'])} == 0`,
    for: '2m',
    severity: 'critical',
    summary: 'No cluster of group {{ $labels.group }} takes statements',
  },
  {
    alert: 'QuipuClusterSlotsFull',
    expr: `${five.max('clusterWaiting', ['group'])} > 0 and on (group) ${five.max('clustersOpen', ['group'])} > 0`,
    for: '10m',
    severity: 'warning',
    summary: 'Statements wait for a slot at the clusters of group {{ $labels.group }}',
  },
  {
    alert: 'QuipuRestartLoop',
    expr: `${five.increase('processRestarts', '15m', ['process'])} > 2`,
    for: '0s',
    severity: 'critical',
    summary: 'The {{ $labels.process }} is restarted again and again',
  },
  {
    alert: 'QuipuSpansDropped',
    expr: `${quarter.rate('spans', [], 'result="dropped"')} / ${quarter.rate('spans')} > 0.01`,
    for: '15m',
    severity: 'warning',
    summary: 'Spans do not reach the collector',
  },
  {
    alert: 'QuipuBuildSkew',
    expr: 'count(count by (version, revision) (quipu_build_info)) > 1',
    for: '1h',
    severity: 'warning',
    summary: 'Processes of different versions run side by side',
  },
]
