import { amber, lines, red, value, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'

export const runtime: DashboardSpec = {
  name: 'runtime',
  title: 'processes and dependencies',
  question: 'Is a dependency the bottleneck, or the process itself?',
  panels: [
    lines(
      'Requests by route',
      'Requests a second, by route and class of status. 5xx is always a fault of Quipu.',
      'reqps',
      [{ expr: q.rateOf('count', 'httpRequestDuration', ['route', 'code']), legend: '{{route}} {{code}}' }],
    ),
    lines(
      '99th percentile by route',
      'Time of requests. Polls wait up to 1 s for news, so their time is no fault.',
      's',
      [{ expr: q.quantile(0.99, 'httpRequestDuration', ['route']), legend: '{{route}}' }],
    ),
    lines('Refusals', 'Requests a second that were refused before routing, by reason.', 'reqps', [
      { expr: q.rate('httpRefusals', ['reason']), legend: '{{reason}}' },
    ]),
    lines(
      'Certificate, days left',
      'Days until the served certificate expires. It is read again when its files change.',
      'short',
      [
        {
          expr: `(${q.min('tlsCertificateExpiry', ['instance'])} - time()) / 86400`,
          legend: '{{instance}}',
        },
      ],
    ),
    lines(
      'Refused certificate files, 1 h',
      'Changed certificate files that could not be loaded. The earlier certificate stays in use. The log says why (`tls.trouble`).',
      'short',
      [{ expr: q.increase('tlsCertificateLoads', '1h', ['instance'], 'result="refused"'), legend: '{{instance}}' }],
      { thresholds: [amber(1)] },
    ),
    lines(
      'Postgres, 99th percentile',
      'Time of queries, by operation. project rises first when the disk is slow.',
      's',
      [{ expr: q.quantile(0.99, 'postgresQueryDuration', ['operation']), legend: '{{operation}}' }],
      { thresholds: [amber(0.05)] },
    ),
    lines(
      'Postgres connections',
      'Connections of the pool that reads the history. waiting above 0: the pool is too small, or the reads are too slow.',
      'short',
      [{ expr: q.sum('postgresConnections', ['instance', 'state']), legend: '{{instance}} {{state}}' }],
    ),
    lines(
      'Postgres errors',
      'Errors a second, by class of SQLSTATE. 08: connection; 53: resources; 57: Postgres was stopped.',
      'cps',
      [{ expr: q.rate('postgresErrors', ['class']), legend: '{{class}}' }],
    ),
    lines(
      'Kafka, 99th percentile',
      'Time of requests to the brokers, by kind. Produce is part of each append; Fetch waits for new records.',
      's',
      [{ expr: q.quantile(0.99, 'kafkaRequestDuration', ['api']), legend: '{{api}}' }],
      { thresholds: [amber(0.1)] },
    ),
    lines(
      'Kafka errors',
      'Errors of the Kafka client a second: a broker is away, is slow, or answers with an error.',
      'cps',
      [{ expr: q.rate('kafkaErrors', ['kind']), legend: '{{kind}}' }],
    ),
    lines(
      'Event loop lag, 99th percentile',
      'High: a computation blocks the process. Find it with `--cpu-prof`.',
      's',
      [{ expr: q.process('max', 'nodejs_eventloop_lag_p99_seconds'), legend: '{{instance}}' }],
      { thresholds: [amber(0.1), red(0.25)] },
    ),
    lines('Resident memory', 'Memory of the Node processes, without their engines.', 'bytes', [
      { expr: q.process('max', 'process_resident_memory_bytes'), legend: '{{instance}}' },
    ]),
    lines(
      'Share of garbage collection',
      'Share of time that the process spends on garbage collection. Above 0.1: it holds too much memory.',
      'percentunit',
      [{ expr: q.process('rate', 'nodejs_gc_duration_seconds_sum'), legend: '{{instance}}' }],
      { thresholds: [amber(0.1)] },
    ),
    lines('CPU', 'CPU seconds a second of the Node processes.', 's', [
      { expr: q.process('rate', 'process_cpu_seconds_total'), legend: '{{instance}}' },
    ]),
    lines(
      'Processes started again, 1 h',
      'Restarts by the supervisor. hang: the process was silent and was killed.',
      'short',
      [{ expr: q.increase('processRestarts', '1h', ['process', 'reason']), legend: '{{process}} {{reason}}' }],
      { thresholds: [amber(1)] },
    ),
    value('Builds', 'Processes by version. Several versions for long: an upgrade stopped half way.', 'short', [
      { expr: 'count by (version, revision) (quipu_build_info{job=~"$job"})', legend: '{{version}} {{revision}}' },
    ]),
    lines(
      'Labels folded, 1 h',
      'Values of labels beyond their limit, which are counted as `other`.',
      'short',
      [{ expr: q.increase('labelOverflow', '1h', ['label']), legend: '{{label}}' }],
      { thresholds: [amber(1)] },
    ),
    lines('Spans', 'Spans a second, by result.', 'cps', [{ expr: q.rate('spans', ['result']), legend: '{{result}}' }]),
    lines(
      'Spans dropped',
      'Share of spans that did not reach the collector.',
      'percentunit',
      [{ expr: `${q.rate('spans', [], 'result="dropped"')} / (${q.rate('spans')} > 0)`, legend: 'dropped' }],
      { thresholds: [amber(0.01)] },
    ),
  ],
}
