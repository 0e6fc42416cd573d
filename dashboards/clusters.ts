import { amber, lines, red, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'

export const clusters: DashboardSpec = {
  name: 'clusters',
  title: 'clusters of delegated statements',
  question: 'Do the clusters take statements, and does anybody wait for them?',
  panels: [
    lines(
      'Clusters that are not healthy',
      'PENDING: it answers again, and has to prove itself. UNHEALTHY: it gets no statements; `quipu cluster list` says why.',
      'short',
      [
        {
          expr: q.max('clusterHealth', ['cluster', 'health'], 'health!="HEALTHY"'),
          legend: '{{cluster}} {{health}}',
        },
      ],
      { thresholds: [amber(1)] },
    ),
    lines(
      'Open clusters',
      'Clusters of each group that take statements. 0: statements of the group wait, and then fail.',
      'short',
      [{ expr: q.max('clustersOpen', ['group']), legend: '{{group}}' }],
    ),
    lines(
      'States',
      '1 for the state that an operator put each cluster into. Only an ACTIVE one gets statements.',
      'short',
      [{ expr: q.max('clusterState', ['cluster', 'state']), legend: '{{cluster}} {{state}}' }],
    ),
    lines('Health changes, 1 h', 'Changes to each health. Many of one cluster: it flaps, or is overloaded.', 'short', [
      { expr: q.increase('clusterHealthChanges', '1h', ['cluster', 'health']), legend: '{{cluster}} {{health}}' },
    ]),
    lines('Running', 'Delegated statements that run at each cluster.', 'short', [
      { expr: q.sum('clusterRunning', ['cluster']), legend: '{{cluster}}' },
    ]),
    lines(
      'Waiting',
      'Statements that wait for a cluster, by group. They wait where all clusters of the group have `maxRunning`.',
      'short',
      [{ expr: q.sum('clusterWaiting', ['group']), legend: '{{group}}' }],
      { thresholds: [amber(10), red(100)] },
    ),
    lines(
      'Wait for a slot, 99th percentile',
      'gave_up: no cluster was open for too long, or the statement was canceled.',
      's',
      [{ expr: q.quantile(0.99, 'clusterWaitDuration', ['result']), legend: '{{result}}' }],
      { thresholds: [amber(10)] },
    ),
    lines('Checks', 'A second, by what they find.', 'cps', [
      { expr: q.rate('clusterChecks', ['cluster', 'result']), legend: '{{cluster}} {{result}}' },
    ]),
    lines(
      'Check time, 99th percentile',
      'How fast each cluster says that it is there. Slow: its coordinator is overloaded.',
      's',
      [{ expr: q.quantile(0.99, 'clusterCheckDuration', ['cluster']), legend: '{{cluster}}' }],
      { thresholds: [amber(1)] },
    ),
  ],
}
