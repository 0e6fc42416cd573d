import { alerts, runbookOf, type Alert } from './alerts.ts'
import { nearMisses, notYet } from './near-misses.ts'

/** One situation and whether the alert fires in it. */
interface Situation {
  readonly what: string
  readonly series: Readonly<Record<string, string>>
  readonly at: string
  /** Labels of the alerts that fire; none: it is silent. `value`, where the summary tells it. */
  readonly fires: readonly { readonly labels?: Readonly<Record<string, string>>; readonly value?: string }[]
  /** Between samples. @default 1m */
  readonly interval?: string
}

const silent = [] as const
const once = [{}] as const

/** For each alert at least one situation in which it fires, and one in which it does not. */
const situations: Readonly<Record<string, readonly Situation[]>> = {
  QuipuStatementBudgetBurn: [
    {
      what: '2 % of the statements fail by our fault',
      series: {
        'quipu_queries_total{state="FINISHED",error_type="none"}': '0+98x120',
        'quipu_queries_total{state="FAILED",error_type="INTERNAL_ERROR"}': '0+2x120',
      },
      at: '90m',
      fires: [{ labels: { window: '1h' } }, { labels: { window: '6h' } }, { labels: { window: '1d' } }],
    },
    {
      what: 'for three days a few statements fail, too few to page',
      series: {
        'quipu_queries_total{state="FINISHED",error_type="none"}': '0+998x300',
        'quipu_queries_total{state="FAILED",error_type="INTERNAL_ERROR"}': '0+2x300',
      },
      at: '4h',
      fires: [{ labels: { window: '3d' } }],
    },
    {
      what: 'recorded: thirty of thirty fail within an hour',
      series: {
        'quipu:statement_bad:ratio1h{scope="given"}': '1x200',
        'quipu:statement_bad:ratio5m{scope="given"}': '1x200',
        'quipu:statements_bad:rate5m{scope="given"}': `${30 / 3600}x200`,
      },
      at: '2h',
      fires: [{ labels: { window: '1h', scope: 'given' } }],
    },
    {
      what: 'recorded: thirty of thirty fail within two of six hours',
      series: {
        'quipu:statement_bad:ratio6h{scope="given"}': '1x200',
        'quipu:statement_bad:ratio30m{scope="given"}': '1x200',
        'quipu:statements_bad:rate5m{scope="given"}': `${30 / 60 / 121}x200`,
      },
      at: '2h',
      fires: [{ labels: { window: '6h', scope: 'given' } }],
    },
    {
      what: 'every statement fails by its user’s fault',
      series: { 'quipu_queries_total{state="FAILED",error_type="USER_ERROR"}': '0+50x60 3000x60' },
      at: '50m',
      fires: silent,
    },
  ],
  QuipuFirstRowsBudgetBurn: [
    {
      what: 'a fifth of the first rows comes late',
      series: {
        'quipu_query_first_page_duration_seconds_count{route="local"}': '0+100x120',
        'quipu_query_first_page_duration_seconds_bucket{route="local",le="2.5"}': '0+80x120',
      },
      at: '90m',
      fires: [{ labels: { window: '1h' } }, { labels: { window: '6h' } }],
    },
    {
      what: 'first rows of delegated statements come late',
      series: {
        'quipu_query_first_page_duration_seconds_count{route="local"}': '0+100x120',
        'quipu_query_first_page_duration_seconds_bucket{route="local",le="2.5"}': '0+100x120',
        'quipu_query_first_page_duration_seconds_count{route="delegated"}': '0+100x120',
        'quipu_query_first_page_duration_seconds_bucket{route="delegated",le="2.5"}': '0x120',
      },
      at: '90m',
      fires: silent,
    },
  ],
  QuipuCoordinatorDown: [
    {
      what: 'the coordinator vanished from the targets',
      series: {
        'up{job="quipu-coordinator",instance="a"}': '1x5 0x3 _x20',
        // Another job that answers is no coordinator.
        'up{job="quipu-worker",instance="w"}': '1x30',
      },
      at: '12m',
      fires: [{}],
    },
    {
      what: 'one of two answers',
      series: {
        'up{job="quipu-coordinator",instance="a"}': '0x20',
        'up{job="quipu-coordinator",instance="b"}': '1x20',
      },
      at: '12m',
      fires: silent,
    },
  ],
  QuipuWorkerDown: [
    {
      what: 'one of two does not answer',
      series: { 'up{job="quipu-worker",instance="a"}': '0x10', 'up{job="quipu-worker",instance="b"}': '1x10' },
      at: '5m',
      fires: [{ labels: { job: 'quipu-worker', instance: 'a' } }],
    },
    {
      what: 'it starts again within a minute',
      series: { 'up{job="quipu-worker",instance="a"}': '1 0 1x10' },
      at: '3m',
      fires: silent,
    },
  ],
  QuipuNoActiveWorker: [
    {
      what: 'all have failed',
      series: { 'quipu_workers{state="active"}': '0x10', 'quipu_workers{state="failed"}': '2x10' },
      at: '5m',
      fires: once,
    },
    {
      what: 'one is left',
      series: { 'quipu_workers{state="active"}': '1x10', 'quipu_workers{state="failed"}': '2x10' },
      at: '5m',
      fires: silent,
    },
  ],
  QuipuWriterCount: [
    {
      what: 'two write',
      series: { 'quipu_writer{instance="a"}': '1x20', 'quipu_writer{instance="b"}': '0x10 1x10' },
      at: '15m',
      fires: [{ value: '2' }],
    },
    {
      what: 'one writes, one follows',
      series: { 'quipu_writer{instance="a"}': '1x20', 'quipu_writer{instance="b"}': '0x20' },
      at: '15m',
      fires: silent,
    },
  ],
  QuipuEventLogDown: [
    { what: 'it takes nothing', series: { quipu_log_up: '1x5 0x10' }, at: '10m', fires: once },
    { what: 'it was away for a scrape', series: { quipu_log_up: '1x5 0 1x10' }, at: '6m', fires: silent },
  ],
  QuipuAppendSlow: [
    {
      what: 'most take longer than 0.25 s',
      series: {
        'quipu_event_append_duration_seconds_bucket{step="send",le="0.25"}': '0+1x60',
        'quipu_event_append_duration_seconds_bucket{step="send",le="0.5"}': '0+10x60',
        'quipu_event_append_duration_seconds_bucket{step="send",le="+Inf"}': '0+10x60',
      },
      at: '20m',
      fires: [{ labels: { step: 'send' } }],
    },
    {
      what: 'all are done within 10 ms',
      series: {
        'quipu_event_append_duration_seconds_bucket{step="send",le="0.01"}': '0+10x60',
        'quipu_event_append_duration_seconds_bucket{step="send",le="+Inf"}': '0+10x60',
      },
      at: '20m',
      fires: silent,
    },
  ],
  QuipuAppendFailing: [
    {
      what: 'the log is away',
      series: { 'quipu_event_append_failures_total{reason="unavailable"}': '0x3 0+5x20' },
      at: '10m',
      fires: [{ labels: { reason: 'unavailable' } }],
    },
    {
      what: 'two authors wrote one stream',
      series: { 'quipu_event_append_failures_total{reason="conflict"}': '0x3 1x20' },
      at: '9m',
      fires: [{ labels: { reason: 'conflict' } }],
    },
    {
      what: 'a coordinator was fenced, as it should be',
      series: { 'quipu_event_append_failures_total{reason="fenced"}': '0x3 1+1x20' },
      at: '9m',
      fires: silent,
    },
  ],
  QuipuStaleWriter: [
    {
      what: 'a fenced one goes on writing',
      series: { 'quipu_events_ignored_total{reason="stale"}': '0x5 3+1x20' },
      at: '14m',
      fires: once,
    },
    {
      what: 'the writer before has records under way at a take-over',
      series: { 'quipu_events_ignored_total{reason="stale"}': '0x5 3x20' },
      at: '12m',
      fires: silent,
    },
    {
      what: 'appends are sent twice again and again',
      series: {
        'quipu_events_ignored_total{reason="duplicate"}': '0x5 3+1x20',
        'quipu_events_ignored_total{reason="stale"}': '0x25',
      },
      at: '14m',
      fires: silent,
    },
  ],
  QuipuEpochFlapping: [
    {
      what: 'six claims in a quarter of an hour',
      series: { 'quipu_epoch_claims_total{result="won"}': '0 1 2 3 4 5 6x20' },
      at: '10m',
      fires: once,
    },
    { what: 'one restart', series: { 'quipu_epoch_claims_total{result="won"}': '0 1x20' }, at: '10m', fires: silent },
  ],
  QuipuProjectionLagging: [
    {
      what: 'half a minute for ten minutes',
      series: { 'quipu_projection_lag_seconds{projection="readmodels"}': '30x15' },
      at: '10m',
      fires: [{ value: '30' }],
    },
    {
      what: 'half a minute once',
      series: { 'quipu_projection_lag_seconds{projection="readmodels"}': '0x5 30 0x10' },
      at: '10m',
      fires: silent,
    },
  ],
  QuipuPublishingBehind: [
    {
      what: 'the server of one of them is away for half an hour',
      series: {
        'quipu_publishing_lag_seconds{to="open_lineage"}': '0+60x30',
        'quipu_publishing_lag_seconds{to="public_topic"}': '0x30',
      },
      at: '20m',
      fires: [{ labels: { to: 'open_lineage' }, value: '1200' }],
    },
    {
      what: 'it was away for a while, and has caught up',
      series: { 'quipu_publishing_lag_seconds{to="open_lineage"}': '0+60x8 0x20' },
      at: '20m',
      fires: silent,
    },
  ],
  QuipuProjectionStuck: [
    {
      what: 'events wait and none is applied',
      series: {
        'quipu_projection_lag_events{projection="readmodels"}': '900x40',
        'quipu_projection_events_total{projection="readmodels"}': '70x40',
      },
      at: '15m',
      fires: [{ labels: { projection: 'readmodels' } }],
    },
    {
      what: 'it lags but moves',
      series: {
        'quipu_projection_lag_events{projection="readmodels"}': '900x40',
        'quipu_projection_events_total{projection="readmodels"}': '0+10x40',
      },
      at: '15m',
      fires: silent,
    },
  ],
  QuipuProjectionStopped: [
    {
      what: 'the log is another one',
      series: { 'quipu_projection_stopped{projection="readmodels"}': '0x3 1x10' },
      at: '5m',
      fires: [{ labels: { projection: 'readmodels' }, value: '1' }],
    },
    {
      what: 'the read models were made anew',
      series: { 'quipu_projection_stopped{projection="readmodels"}': '1x3 0x10' },
      at: '5m',
      fires: silent,
    },
  ],
  QuipuDeadLetters: [
    {
      what: 'one is open',
      series: { 'quipu_dead_letters{projection="readmodels"}': '0x3 1x10' },
      at: '5m',
      fires: [{ labels: { projection: 'readmodels' }, value: '1' }],
    },
    {
      what: 'it was mended',
      series: { 'quipu_dead_letters{projection="readmodels"}': '1x3 0x10' },
      at: '5m',
      fires: silent,
    },
  ],
  QuipuAuditFinding: [
    {
      what: 'the first finding of a counter that began at 0',
      series: { 'quipu_audit_findings_total{kind="chain"}': '0x20 1x40' },
      at: '30m',
      fires: [{ labels: { kind: 'chain' } }],
    },
    {
      what: 'a finding of yesterday',
      series: { 'quipu_audit_findings_total{kind="chain"}': '1x90' },
      at: '80m',
      fires: silent,
    },
    {
      what: 'a key that is not known',
      series: { 'quipu_audit_findings_total{kind="unknown-key"}': '0x20 1x40' },
      at: '30m',
      fires: silent,
    },
  ],
  QuipuAuditUnknownKey: [
    {
      what: 'the first anchor by a key that is not known',
      series: { 'quipu_audit_findings_total{kind="unknown-key"}': '0x20 1x40' },
      at: '30m',
      fires: [{ labels: {} }],
    },
    {
      what: 'another finding',
      series: { 'quipu_audit_findings_total{kind="chain"}': '0x20 1x40' },
      at: '30m',
      fires: silent,
    },
  ],
  // The tests' clock begins at 0.
  QuipuAuditStale: [
    {
      what: 'verified 28 hours ago',
      series: { quipu_audit_verified_timestamp_seconds: '-100800x60' },
      at: '30m',
      fires: once,
    },
    {
      what: 'verified 20 hours ago',
      series: { quipu_audit_verified_timestamp_seconds: '-72000x60' },
      at: '30m',
      fires: silent,
    },
  ],
  QuipuQueueFilling: [
    {
      what: '90 of 100 places taken',
      series: {
        'quipu_group_queued_queries{group="global"}': '90x20',
        'quipu_group_queued_limit_queries{group="global"}': '100x20',
      },
      at: '10m',
      fires: [{ labels: { group: 'global' } }],
    },
    {
      what: '10 of 100 places taken',
      series: {
        'quipu_group_queued_queries{group="global"}': '10x20',
        'quipu_group_queued_limit_queries{group="global"}': '100x20',
      },
      at: '10m',
      fires: silent,
    },
  ],
  QuipuTurningAway: [
    {
      what: 'the queue is full',
      series: { 'quipu_group_rejections_total{group="global",reason="queue_full"}': '0+5x30' },
      at: '12m',
      fires: [{ labels: { group: 'global', reason: 'queue_full' } }],
    },
    {
      what: 'the queue of a user is full',
      series: { 'quipu_group_rejections_total{group="all.${USER}",reason="queue_full"}': '0+5x30' },
      at: '12m',
      fires: [{ labels: { group: 'all.(any user)', reason: 'queue_full' } }],
    },
    {
      what: 'nobody is turned away',
      series: { 'quipu_group_rejections_total{group="global",reason="queue_full"}': '7x30' },
      at: '12m',
      fires: silent,
    },
  ],
  QuipuEngineMemoryKills: [
    {
      what: 'one a minute',
      series: { 'quipu_engine_restarts_total{reason="memory",instance="w"}': '0+1x30' },
      at: '15m',
      fires: [{ labels: { instance: 'w' } }],
    },
    {
      what: 'two in all',
      series: { 'quipu_engine_restarts_total{reason="memory",instance="w"}': '0 1 2x30' },
      at: '15m',
      fires: silent,
    },
  ],
  QuipuEngineCrashing: [
    {
      what: 'crashes and hangs',
      series: {
        'quipu_engine_restarts_total{reason="crash",instance="w"}': '0 1 2x30',
        'quipu_engine_restarts_total{reason="hang",instance="w"}': '0 1 2x30',
      },
      at: '10m',
      fires: [{ labels: { instance: 'w' } }],
    },
    {
      what: 'engines replaced by rule',
      series: { 'quipu_engine_restarts_total{reason="recycle",instance="w"}': '0+1x30' },
      at: '10m',
      fires: silent,
    },
  ],
  QuipuPagesLost: [
    {
      what: 'a result page is gone',
      series: { 'quipu_pages_lost_total{kind="result"}': '0x5 1x20' },
      at: '7m',
      fires: once,
    },
    {
      what: 'a page between stages is gone',
      series: {
        'quipu_pages_lost_total{kind="exchange"}': '0x5 1x20',
        'quipu_pages_lost_total{kind="result"}': '0x25',
      },
      at: '7m',
      fires: silent,
    },
  ],
  QuipuPageStoreFilling: [
    {
      what: '9 of 10 GB',
      series: {
        'quipu_page_store_bytes{instance="w",kind="result"}': '9x20',
        'quipu_page_store_limit_bytes{instance="w",kind="result"}': '10x20',
      },
      at: '10m',
      fires: [{ labels: { instance: 'w', kind: 'result' } }],
    },
    {
      what: '5 of 10 GB',
      series: {
        'quipu_page_store_bytes{instance="w",kind="result"}': '5x20',
        'quipu_page_store_limit_bytes{instance="w",kind="result"}': '10x20',
      },
      at: '10m',
      fires: silent,
    },
  ],
  QuipuTaskRetries: [
    {
      what: 'one task in ten',
      series: {
        'quipu_task_retries_total{reason="worker_lost"}': '0+1x60',
        'quipu_tasks_total{state="FINISHED"}': '0+10x60',
      },
      at: '40m',
      fires: once,
    },
    {
      what: 'one task in a hundred',
      series: {
        'quipu_task_retries_total{reason="worker_lost"}': '0+1x60',
        'quipu_tasks_total{state="FINISHED"}': '0+100x60',
      },
      at: '40m',
      fires: silent,
    },
  ],
  QuipuPostgresPoolWaiting: [
    {
      what: 'three wait',
      series: { 'quipu_postgres_connections{state="waiting",instance="a"}': '3x20' },
      at: '10m',
      fires: [{ labels: { instance: 'a' } }],
    },
    {
      what: 'all are used, none waits',
      series: {
        'quipu_postgres_connections{state="used",instance="a"}': '8x20',
        'quipu_postgres_connections{state="waiting",instance="a"}': '0x20',
      },
      at: '10m',
      fires: silent,
    },
  ],
  QuipuEventLoopBlocked: [
    {
      what: 'half a second',
      series: { 'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.5x20' },
      at: '10m',
      fires: [{ labels: { instance: 'a' } }],
    },
    {
      what: '20 ms',
      series: { 'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.02x20' },
      at: '10m',
      fires: silent,
    },
  ],
  QuipuLoginsRefused: [
    {
      what: 'two a second',
      series: { 'quipu_authentications_total{method="password",result="refused"}': '0+120x30' },
      at: '15m',
      fires: [{ labels: { method: 'password' } }],
    },
    {
      what: 'all are let in',
      series: {
        'quipu_authentications_total{method="password",result="ok"}': '0+120x30',
        'quipu_authentications_total{method="password",result="refused"}': '0x30',
      },
      at: '15m',
      fires: silent,
    },
  ],
  QuipuFileBroken: [
    {
      what: 'a password file that cannot be read',
      series: { 'quipu_files_broken{instance="a",file="passwords"}': '1x20' },
      at: '10m',
      fires: [{ labels: { instance: 'a', file: 'passwords' } }],
    },
    {
      what: 'the routing rules and a cluster file are refused',
      series: {
        'quipu_files_broken{instance="a",file="routing-rules"}': '1x20',
        'quipu_files_broken{instance="a",file="clusters"}': '1x20',
      },
      at: '10m',
      fires: [{ labels: { instance: 'a', file: 'clusters' } }, { labels: { instance: 'a', file: 'routing-rules' } }],
    },
    {
      what: 'the prices are refused',
      series: { 'quipu_files_broken{instance="a",file="prices"}': '1x20' },
      at: '10m',
      fires: [{ labels: { instance: 'a', file: 'prices' } }],
    },
    {
      what: 'all are in force',
      series: { 'quipu_files_broken{instance="a",file="passwords"}': '0x20' },
      at: '10m',
      fires: silent,
    },
  ],
  QuipuClusterUnhealthy: [
    {
      what: 'an active cluster does not answer',
      series: {
        'quipu_cluster_health{cluster="trino-a",health="HEALTHY"}': '1 1 0x20',
        'quipu_cluster_health{cluster="trino-a",health="UNHEALTHY"}': '0 0 1x20',
        'quipu_cluster_state{cluster="trino-a",state="ACTIVE"}': '1x22',
        'quipu_cluster_health{cluster="trino-b",health="HEALTHY"}': '1x22',
        'quipu_cluster_state{cluster="trino-b",state="ACTIVE"}': '1x22',
      },
      at: '12m',
      fires: [{ labels: { cluster: 'trino-a' } }],
    },
    {
      what: 'a drained cluster is upgraded',
      series: {
        'quipu_cluster_health{cluster="trino-a",health="HEALTHY"}': '0x20',
        'quipu_cluster_state{cluster="trino-a",state="ACTIVE"}': '0x20',
        'quipu_cluster_state{cluster="trino-a",state="DRAINING"}': '1x20',
      },
      at: '12m',
      fires: silent,
    },
  ],
  QuipuClusterGroupClosed: [
    {
      what: 'all clusters of one of two groups are away',
      series: { 'quipu_clusters_open{group="big"}': '2 0x20', 'quipu_clusters_open{group="small"}': '1x20' },
      at: '10m',
      fires: [{ labels: { group: 'big' } }],
    },
    {
      what: 'one cluster is left',
      series: { 'quipu_clusters_open{group="big"}': '2 1x20' },
      at: '10m',
      fires: silent,
    },
  ],
  QuipuClusterSlotsFull: [
    {
      what: 'statements wait, and clusters are open',
      series: { 'quipu_cluster_waiting{group="big"}': '3x30', 'quipu_clusters_open{group="big"}': '2x30' },
      at: '20m',
      fires: [{ labels: { group: 'big' } }],
    },
    {
      what: 'nothing waits',
      series: { 'quipu_cluster_waiting{group="big"}': '0x30', 'quipu_clusters_open{group="big"}': '2x30' },
      at: '20m',
      fires: silent,
    },
    {
      what: 'statements wait because the whole group is away',
      series: { 'quipu_cluster_waiting{group="big"}': '3x30', 'quipu_clusters_open{group="big"}': '0x30' },
      at: '20m',
      fires: silent,
    },
  ],
  QuipuRestartLoop: [
    {
      what: 'four in five minutes',
      series: { 'quipu_process_restarts_total{process="coordinator",reason="exit"}': '0 1 2 3 4x30' },
      at: '8m',
      fires: [{ labels: { process: 'coordinator' } }],
    },
    {
      what: 'one',
      series: { 'quipu_process_restarts_total{process="coordinator",reason="exit"}': '0 1x30' },
      at: '8m',
      fires: silent,
    },
  ],
  QuipuSpansDropped: [
    {
      what: 'one in ten',
      series: { 'quipu_spans_total{result="dropped"}': '0+1x60', 'quipu_spans_total{result="exported"}': '0+9x60' },
      at: '40m',
      fires: once,
    },
    {
      what: 'none',
      series: { 'quipu_spans_total{result="dropped"}': '0x60', 'quipu_spans_total{result="exported"}': '0+9x60' },
      at: '40m',
      fires: silent,
    },
  ],
  QuipuBuildSkew: [
    {
      what: 'two versions for hours',
      series: {
        'quipu_build_info{version="1",revision="a",instance="a"}': '1x200',
        'quipu_build_info{version="2",revision="b",instance="b"}': '1x200',
      },
      at: '2h',
      fires: once,
    },
    {
      what: 'two processes of one version',
      series: {
        'quipu_build_info{version="1",revision="a",instance="a"}': '1x200',
        'quipu_build_info{version="1",revision="a",instance="b"}': '1x200',
      },
      at: '2h',
      fires: silent,
    },
  ],
}

/** What `promtool test rules` runs. */
const allSituations: Readonly<Record<string, readonly Situation[]>> = Object.fromEntries(
  Object.entries(situations).map(([alertname, cases]) => {
    const firing = cases.find(({ fires }) => fires.length > 0)
    const early = notYet(alertname, firing?.series ?? {})
    const misses = [...(nearMisses[alertname] ?? []), ...(early ? [early] : [])]
    return [alertname, [...cases, ...misses.map((one) => ({ ...one, fires: silent }))]]
  }),
)

export const alertTests: readonly object[] = Object.entries(allSituations).flatMap(([alertname, cases]) =>
  cases.map(({ what, series, at, fires, interval = '1m' }) => ({
    name: `${alertname}: ${what}`,
    interval,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [
      {
        eval_time: at,
        alertname,
        exp_alerts: fires.map(({ labels = {}, value = '' }: Situation['fires'][number]) => {
          const alert = alertNamed(alertname, labels['window'])
          return {
            exp_labels: { severity: alert.severity, ...labels },
            exp_annotations: { summary: filled(alert.summary, labels, value), runbook_url: runbookOf(alertname) },
          }
        }),
      },
    ],
  })),
)

/** Alerts for which there is a situation that fires, and one that does not. */
export function testedAlerts(): { readonly firing: readonly string[]; readonly silent: readonly string[] } {
  const having = (fires: boolean): string[] =>
    Object.entries(situations)
      .filter(([, cases]) => cases.some((one) => one.fires.length > 0 === fires))
      .map(([name]) => name)
  return { firing: having(true), silent: having(false) }
}

function alertNamed(name: string, window: string | undefined): Alert {
  const found = alerts.find((one) => one.alert === name && one.window === window)
  if (!found) throw new Error(`There is no alert ${name} ${window ?? ''}`)
  return found
}

/** As Prometheus fills in its templates. */
function filled(template: string, labels: Readonly<Record<string, string>>, value: string): string {
  return template
    .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? '')
    .replaceAll('{{ $value }}', value)
}
