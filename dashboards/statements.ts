import { amber, lines, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'
import { latestFailures, slowest } from './tables.ts'

export const statements: DashboardSpec = {
  name: 'statements',
  title: 'statements',
  question: 'Why are statements slow, and why do they fail?',
  panels: [
    lines(
      'Mean by phase',
      'How an average statement spends its time. Phases overlap; deliver is time of the client.',
      's',
      [
        {
          expr: `${q.rateOf('sum', 'queryPhaseDuration', ['phase'])} / on () group_left () (${q.rateOf('count', 'queryDuration')} > 0)`,
          legend: '{{phase}}',
        },
      ],
      { width: 12 },
    ),
    lines(
      '99th percentile by phase',
      'Slowest phases of the slowest statements. A slow phase points to its cause: queued: limits; start: workers; execute: data; deliver: clients.',
      's',
      [{ expr: q.quantile(0.99, 'queryPhaseDuration', ['phase']), legend: '{{phase}}', exemplar: true }],
      { width: 12 },
    ),
    {
      kind: 'heatmap',
      title: 'Durations',
      description: 'Time of statements from POST to end. Two bands are two kinds of work. A dot links to its trace.',
      unit: 'reqps',
      targets: [{ expr: q.rateOf('bucket', 'queryDuration', ['le']), legend: '{{le}}', exemplar: true }],
      width: 12,
    },
    lines(
      'Errors by name',
      'The ten most frequent errors. If a single name rises, there is a single cause.',
      'reqps',
      [{ expr: `topk(10, ${q.rate('queryErrors', ['error_name'])})`, legend: '{{error_name}}' }],
      { link: 'audit', width: 12 },
    ),
    lines('By user', 'Ended statements a second of the most active users.', 'reqps', [
      { expr: `topk(10, ${q.rate('userQueries', ['user'])})`, legend: '{{user}}' },
    ]),
    lines('By client', 'Ended statements a second, by the name of the client program.', 'reqps', [
      { expr: `topk(10, ${q.rate('sourceQueries', ['source'])})`, legend: '{{source}}' },
    ]),
    lines(
      'Rows over estimate, 95th percentile',
      'Rows of an operator divided by the estimate of the planner. Far above 1: statistics are stale, and joins may be built the wrong way round.',
      'x',
      [{ expr: q.quantile(0.95, 'planEstimateRatio', ['operator']), legend: '{{operator}}' }],
      { thresholds: [amber(10)] },
    ),
    lines(
      'Plans',
      'Where statements run. fallback above 5 %: the planner cannot distribute a common kind of statement.',
      'reqps',
      [{ expr: q.rate('plans', ['distribution']), legend: '{{distribution}}' }],
    ),
    lines('Rows', 'Read from tables and given to clients, a second.', 'cps', [
      { expr: q.rate('queryRows', ['direction']), legend: '{{direction}}' },
    ]),
    lines('Bytes', 'Read from tables and given to clients, a second.', 'Bps', [
      { expr: q.rate('queryBytes', ['direction']), legend: '{{direction}}' },
    ]),
    lines(
      'CPU by resource group',
      'Seconds of CPU a second that statements took.',
      's',
      [{ expr: q.rate('queryCpuSeconds', ['group']), legend: '{{group}}' }],
      { width: 12 },
    ),
    lines(
      'Polls',
      'Answers to polls of clients. gone: the client asked for an earlier page; empty: the client waits for Quipu.',
      'reqps',
      [{ expr: q.rate('polls', ['result']), legend: '{{result}}' }],
      { width: 12 },
    ),
    slowest,
    latestFailures,
  ],
}
