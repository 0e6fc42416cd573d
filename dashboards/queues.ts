import { amber, lines, red, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'

export const queues: DashboardSpec = {
  name: 'queues',
  title: 'queues',
  question: 'Which statements wait, and for which resource group?',
  panels: [
    lines(
      'Slots used',
      'Running statements divided by the limit of the resource group. At 1 the next statement waits.',
      'percentunit',
      [
        {
          expr: `${q.sum('groupRunningQueries', ['group'])} / ${q.sum('groupRunningLimitQueries', ['group'])}`,
          legend: '{{group}}',
        },
      ],
      { thresholds: [amber(0.9)], width: 12 },
    ),
    lines(
      'Queue fill',
      'Waiting statements divided by the limit of the queue. At 1 statements are rejected with QUERY_QUEUE_FULL.',
      'percentunit',
      [
        {
          expr: `${q.sum('groupQueuedQueries', ['group'])} / ${q.sum('groupQueuedLimitQueries', ['group'])}`,
          legend: '{{group}}',
        },
      ],
      { thresholds: [amber(0.5), red(0.8)], width: 12 },
    ),
    lines(
      'Wait, 95th percentile',
      'Waiting time of statements that waited. Minutes: raise the limit, or find the user who fills the group.',
      's',
      [{ expr: q.quantile(0.95, 'queryPhaseDuration', [], 'phase="queued"'), legend: 'wait', exemplar: true }],
      { thresholds: [amber(10)] },
    ),
    lines(
      'Rejected statements',
      'Statements that were rejected, by reason. log_down: the event log does not answer.',
      'reqps',
      [{ expr: q.rate('groupRejections', ['group', 'reason']), legend: '{{group}} {{reason}}' }],
      { thresholds: [red(0.001)] },
    ),
    lines(
      'Acts on many queries',
      'Queries that administrators killed, held, released, ran again or forgot together, by outcome, and the acts, each a second.',
      'reqps',
      [
        { expr: q.rate('actQueries', ['act', 'outcome']), legend: '{{act}} {{outcome}}' },
        { expr: q.rate('acts', ['act']), legend: 'acts: {{act}}' },
      ],
    ),
    lines('CPU by resource group', 'Seconds of CPU a second that statements took.', 's', [
      { expr: q.rate('queryCpuSeconds', ['group']), legend: '{{group}}' },
    ]),
  ],
}
