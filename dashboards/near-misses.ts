import { alerts } from './alerts.ts'
import { recorded, type FirstRowsWindow, type StatementWindow } from './recording-rules.ts'

/** A situation in which an alert is silent, though only just: what a slip in its rule would make it fire in. */
export interface NearMiss {
  readonly what: string
  readonly series: Readonly<Record<string, string>>
  readonly at: string
}

/** Of a series given as recorded: the rules record one without labels beside it, which meets none of these. */
const GIVEN = '{scope="given"}'

const up = (job: string): string => `up{job="${job}",instance="x"}`

/** Just below the bound, or something of the same metric that is none of its business. */
export const nearMisses: Readonly<Record<string, readonly NearMiss[]>> = {
  QuipuWorkerDown: [
    { what: 'a coordinator does not answer', series: { [up('quipu-coordinator')]: '0x20' }, at: '10m' },
  ],
  QuipuAppendSlow: [
    {
      what: 'half of the bound',
      series: {
        'quipu_event_append_duration_seconds_bucket{step="send",le="0.1"}': '0x60',
        'quipu_event_append_duration_seconds_bucket{step="send",le="0.15"}': '0+10x60',
        'quipu_event_append_duration_seconds_bucket{step="send",le="+Inf"}': '0+10x60',
      },
      at: '20m',
    },
  ],
  QuipuAppendFailing: [
    {
      what: 'an old failure',
      series: { 'quipu_event_append_failures_total{reason="unavailable"}': '7x20' },
      at: '10m',
    },
    {
      what: 'the log was away for two minutes',
      series: { 'quipu_event_append_failures_total{reason="unavailable"}': '0x3 20 40 40x20' },
      at: '9m',
    },
  ],
  QuipuEpochFlapping: [
    { what: 'claims that were lost', series: { 'quipu_epoch_claims_total{result="lost"}': '0+1x20' }, at: '10m' },
  ],
  QuipuProjectionLagging: [
    {
      what: 'half of the bound',
      series: { 'quipu_projection_lag_seconds{projection="readmodels"}': '5x15' },
      at: '10m',
    },
  ],
  QuipuPublishingBehind: [
    {
      what: 'at the bound',
      series: { 'quipu_publishing_lag_seconds{to="public_topic"}': '300x30' },
      at: '20m',
    },
    {
      what: 'each of two is behind for a part of the time',
      series: {
        'quipu_publishing_lag_seconds{to="open_lineage"}': '400x8 0x20',
        'quipu_publishing_lag_seconds{to="public_topic"}': '0x8 400x3 0x20',
      },
      at: '11m',
    },
  ],
  QuipuProjectionStuck: [
    {
      what: 'nothing to apply',
      series: {
        'quipu_projection_lag_events{projection="readmodels"}': '0x40',
        'quipu_projection_events_total{projection="readmodels"}': '70x40',
      },
      at: '15m',
    },
  ],
  QuipuEngineMemoryKills: [
    {
      what: 'engines of canceled statements',
      series: { 'quipu_engine_restarts_total{reason="cancel",instance="w"}': '0+1x30' },
      at: '15m',
    },
  ],
  QuipuEngineCrashing: [
    {
      what: 'one crash',
      series: { 'quipu_engine_restarts_total{reason="crash",instance="w"}': '0 1x30' },
      at: '10m',
    },
  ],
  QuipuEventLoopBlocked: [
    { what: 'half of the bound', series: { 'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.12x20' }, at: '10m' },
  ],
  QuipuLoginsRefused: [
    {
      what: 'half of the bound',
      series: { 'quipu_authentications_total{method="password",result="refused"}': '0+30x30' },
      at: '15m',
    },
  ],
  QuipuFileBroken: [
    {
      what: 'mended within the time that it may take',
      series: { 'quipu_files_broken{instance="a",file="passwords"}': '1 1 1 1 0x20' },
      at: '5m',
    },
  ],
  QuipuClusterUnhealthy: [
    {
      what: 'it answers again within the time that it may take',
      series: {
        'quipu_cluster_health{cluster="trino-a",health="HEALTHY"}': '0 0 0 0 1x20',
        'quipu_cluster_state{cluster="trino-a",state="ACTIVE"}': '1x24',
      },
      at: '5m',
    },
    {
      what: 'another cluster is drained and away',
      series: {
        'quipu_cluster_health{cluster="trino-a",health="HEALTHY"}': '1x20',
        'quipu_cluster_state{cluster="trino-a",state="ACTIVE"}': '1x20',
        'quipu_cluster_health{cluster="trino-b",health="HEALTHY"}': '0x20',
        'quipu_cluster_state{cluster="trino-b",state="ACTIVE"}': '0x20',
      },
      at: '12m',
    },
  ],
  QuipuClusterSlotsFull: [
    {
      what: 'another group is open',
      series: {
        'quipu_cluster_waiting{group="big"}': '3x30',
        'quipu_clusters_open{group="big"}': '0x30',
        'quipu_clusters_open{group="small"}': '1x30',
      },
      at: '20m',
    },
    {
      what: 'the last one got its slot within the time that it may take',
      series: { 'quipu_cluster_waiting{group="big"}': '3x8 0x20', 'quipu_clusters_open{group="big"}': '2x30' },
      at: '10m',
    },
  ],
  QuipuSpansDropped: [
    {
      what: 'half of the bound',
      series: { 'quipu_spans_total{result="dropped"}': '0+1x60', 'quipu_spans_total{result="exported"}': '0+199x60' },
      at: '40m',
    },
  ],
  QuipuStatementBudgetBurn: [
    {
      what: 'recorded: every long window just below its bound, every short one far above',
      series: {
        ...badShares({ '1h': 0.01, '5m': 1, '6h': 0.004, '30m': 1, '1d': 0.002, '2h': 1 }),
        ...badStatements(1),
      },
      at: '65m',
    },
    {
      what: 'recorded: every short window just below its bound, every long one far above',
      series: {
        ...badShares({ '1h': 1, '5m': 0.01, '6h': 1, '30m': 0.004, '1d': 1, '2h': 0.002 }),
        ...badStatements(1),
      },
      at: '65m',
    },
    {
      what: 'recorded: three bad days, the last hours just below their bound',
      series: { ...badShares({ '3d': 1, '6h': 0.0007 }), ...badStatements(1) },
      at: '185m',
    },
    {
      what: 'recorded: all of an hour, but five statements',
      series: { ...badShares({ '1h': 1, '5m': 1 }), ...badStatements(5 / 3600) },
      at: '2h',
    },
    {
      what: 'recorded: all of six hours, but five statements',
      series: { ...badShares({ '6h': 1, '30m': 1 }), ...badStatements(5 / 60 / 121) },
      at: '2h',
    },
    {
      what: 'recorded: everything fails for a minute',
      series: {
        ...badShares({ '5m': 1, '30m': 1, '1h': 1, '2h': 1, '6h': 1, '1d': 1, '3d': 1 }),
        ...badStatements(100),
      },
      at: '1m',
    },
  ],
  QuipuFirstRowsBudgetBurn: [
    {
      what: 'recorded: every long window just below its bound, every short one far above',
      series: lateShares({ '1h': 0.1, '5m': 1, '6h': 0.04, '30m': 1 }),
      at: '30m',
    },
    {
      what: 'recorded: every short window just below its bound, every long one far above',
      series: lateShares({ '1h': 1, '5m': 0.1, '6h': 1, '30m': 0.04 }),
      at: '30m',
    },
    {
      what: 'recorded: everything is late for a minute',
      series: lateShares({ '1h': 1, '5m': 1, '6h': 1, '30m': 1 }),
      at: '1m',
    },
  ],
}

function badShares(shares: Partial<Record<StatementWindow, number>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(shares).map(([window, share]) => [
      `${recorded.statementBad(window as StatementWindow)}${GIVEN}`,
      `${share}x190`,
    ]),
  )
}

function lateShares(shares: Partial<Record<FirstRowsWindow, number>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(shares).map(([window, share]) => [
      recorded.firstRowsSlowRatio(window as FirstRowsWindow),
      `${share}x60`,
    ]),
  )
}

/** @param rate of bad statements, a second */
function badStatements(rate: number): Record<string, string> {
  return { [`${recorded.statementsBad}${GIVEN}`]: `${rate}x190` }
}

/** Where the first situation that fires does not begin with its first sample. */
const fromTheStart: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  QuipuCoordinatorDown: { [up('quipu-coordinator')]: '0x20' },
  QuipuWorkerDown: { [up('quipu-worker')]: '0x20' },
  QuipuWriterCount: { 'quipu_writer{instance="a"}': '1x20', 'quipu_writer{instance="b"}': '1x20' },
  QuipuAppendFailing: { 'quipu_event_append_failures_total{reason="unavailable"}': '0+5x20' },
}

/** The moment before an alert has held for as long as it must; none for those that do not wait. */
export function notYet(alertname: string, firing: Readonly<Record<string, string>>): NearMiss | undefined {
  const [alert, ...others] = alerts.filter((one) => one.alert === alertname)
  if (!alert || others.length > 0 || alert.for === '0s') return undefined
  const [, count = '0', unit] = /^(\d+)([smh])$/.exec(alert.for) ?? []
  const minutes = unit === 'h' ? Number(count) * 60 : unit === 'm' ? Number(count) : 0
  return {
    what: 'it has not lasted',
    series: fromTheStart[alertname] ?? firing,
    at: `${Math.max(0, minutes - 1)}m`,
  }
}
