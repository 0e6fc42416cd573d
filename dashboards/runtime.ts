import { amber, lines, red, value, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'

export const runtime: DashboardSpec = {
  name: 'runtime',
  title: 'processes and dependencies',
  question: 'Is a dependency or the process the limit?',
  panels: [
    lines('Requests by route', 'A second, by route and class of status. 5xx is always ours.', 'reqps', [
      { expr: q.rateOf('count', 'httpRequestDuration', ['route', 'code']), legend: '{{route}} {{code}}' },
    ]),
    lines('99th percentile by route', 'Polls wait up to 1 s for something new: that is no fault.', 's', [
      { expr: q.quantile(0.99, 'httpRequestDuration', ['route']), legend: '{{route}}' },
    ]),
    lines('Refusals', 'Requests that were refused before routing, a second.', 'reqps', [
      { expr: q.rate('httpRefusals', ['reason']), legend: '{{reason}}' },
    ]),
    lines(
      'Certificate, days left',
      'Until the certificate that clients are shown is over. It is read again when its files change.',
      'short',
      [
        {
          expr: `(${q.min('tlsCertificateExpiry', ['instance'])} - time()) / 86400`,
          legend: '{{instance}}',
        },
      ],
    ),
    lines(
      'Certificate files of no use, 1 h',
      'They changed and could not be served: the pair before goes on. The log has why (`tls.trouble`).',
      'short',
      [{ expr: q.increase('tlsCertificateLoads', '1h', ['instance'], 'result="refused"'), legend: '{{instance}}' }],
      { thresholds: [amber(1)] },
    ),
    lines(
      'Postgres, 99th percentile',
      'By what is done there. project rises first when its disk is slow.',
      's',
      [{ expr: q.quantile(0.99, 'postgresQueryDuration', ['operation']), legend: '{{operation}}' }],
      { thresholds: [amber(0.05)] },
    ),
    lines(
      'Postgres connections',
      'Of the pool that reads history. waiting above 0: too small, or statements too slow.',
      'short',
      [{ expr: q.sum('postgresConnections', ['instance', 'state']), legend: '{{instance}} {{state}}' }],
    ),
    lines('Postgres errors', 'A second, by class of SQLSTATE. 08 connection, 53 resources, 57 stopped.', 'cps', [
      { expr: q.rate('postgresErrors', ['class']), legend: '{{class}}' },
    ]),
    lines(
      'Kafka, 99th percentile',
      'Requests to the brokers, by kind. Produce is the price of an append; Fetch waits for something new.',
      's',
      [{ expr: q.quantile(0.99, 'kafkaRequestDuration', ['api']), legend: '{{api}}' }],
      { thresholds: [amber(0.1)] },
    ),
    lines(
      'Kafka errors',
      'Faults of the client, a second: the broker is away, slow, or answers with an error.',
      'cps',
      [{ expr: q.rate('kafkaErrors', ['kind']), legend: '{{kind}}' }],
    ),
    lines(
      'Event loop lag, 99th percentile',
      'Something computes in the process: take `--cpu-prof`.',
      's',
      [{ expr: q.process('max', 'nodejs_eventloop_lag_p99_seconds'), legend: '{{instance}}' }],
      { thresholds: [amber(0.1), red(0.25)] },
    ),
    lines('Resident memory', 'Of the Node processes, not of their engines.', 'bytes', [
      { expr: q.process('max', 'process_resident_memory_bytes'), legend: '{{instance}}' },
    ]),
    lines(
      'Share of garbage collection',
      'Seconds a second that the process cleans its memory. Above a tenth: it holds too much.',
      'percentunit',
      [{ expr: q.process('rate', 'nodejs_gc_duration_seconds_sum'), legend: '{{instance}}' }],
      { thresholds: [amber(0.1)] },
    ),
    lines('CPU', 'Seconds a second, of the Node processes.', 's', [
      { expr: q.process('rate', 'process_cpu_seconds_total'), legend: '{{instance}}' },
    ]),
    lines(
      'Processes started again, 1 h',
      'By the supervisor. hang: killed for its silence.',
      'short',
      [{ expr: q.increase('processRestarts', '1h', ['process', 'reason']), legend: '{{process}} {{reason}}' }],
      { thresholds: [amber(1)] },
    ),
    value('Builds', 'Processes by version. More than one for long: an upgrade stopped half way.', 'short', [
      { expr: 'count by (version, revision) (quipu_build_info{job=~"$job"})', legend: '{{version}} {{revision}}' },
    ]),
    lines(
      'Labels folded, 1 h',
      'Values beyond what a label may take, counted as `other`.',
      'short',
      [{ expr: q.increase('labelOverflow', '1h', ['label']), legend: '{{label}}' }],
      { thresholds: [amber(1)] },
    ),
    lines('Spans', 'A second, by what became of them.', 'cps', [
      { expr: q.rate('spans', ['result']), legend: '{{result}}' },
    ]),
    lines(
      'Spans dropped',
      'Share that did not reach the collector.',
      'percentunit',
      [{ expr: `${q.rate('spans', [], 'result="dropped"')} / (${q.rate('spans')} > 0)`, legend: 'dropped' }],
      { thresholds: [amber(0.01)] },
    ),
  ],
}
