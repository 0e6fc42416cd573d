import { amber, lines, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'
import { latestFailures, slowest } from './tables.ts'

export const statements: DashboardSpec = {
  name: 'statements',
  title: 'statements',
  question: 'Why is this slow, why does it fail?',
  panels: [
    lines(
      'Mean by phase',
      'Where the time of an average statement goes. Phases overlap; deliver is the client’s time.',
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
      'The slowest phases of the slowest statements. queued: limits; start: workers; execute: data; deliver: clients.',
      's',
      [{ expr: q.quantile(0.99, 'queryPhaseDuration', ['phase']), legend: '{{phase}}', exemplar: true }],
      { width: 12 },
    ),
    {
      kind: 'heatmap',
      title: 'Durations',
      description: 'How long statements take, POST to end. Two bands are two kinds of work; a dot leads to its trace.',
      unit: 'reqps',
      targets: [{ expr: q.rateOf('bucket', 'queryDuration', ['le']), legend: '{{le}}', exemplar: true }],
      width: 12,
    },
    lines(
      'Errors by name',
      'The ten most frequent errors. One name alone that rises is one cause.',
      'reqps',
      [{ expr: `topk(10, ${q.rate('queryErrors', ['error_name'])})`, legend: '{{error_name}}' }],
      { link: 'audit', width: 12 },
    ),
    lines('By user', 'Statements that end, a second, of the users seen most.', 'reqps', [
      { expr: `topk(10, ${q.rate('userQueries', ['user'])})`, legend: '{{user}}' },
    ]),
    lines('By client', 'Statements that end, a second, by what the client calls itself.', 'reqps', [
      { expr: `topk(10, ${q.rate('sourceQueries', ['source'])})`, legend: '{{source}}' },
    ]),
    lines(
      'Rows over estimate, 95th percentile',
      'Rows that an operator gave, over the planner’s guess. Far above 1: statistics are stale, joins are built the wrong way round.',
      'x',
      [{ expr: q.quantile(0.95, 'planEstimateRatio', ['operator']), legend: '{{operator}}' }],
      { thresholds: [amber(10)] },
    ),
    lines(
      'Plans',
      'Where statements run. fallback above 5 %: the planner gives up on a shape that is common here.',
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
      'What clients got when they asked. gone: they asked for a page they had passed; empty: they wait for us.',
      'reqps',
      [{ expr: q.rate('polls', ['result']), legend: '{{result}}' }],
      { width: 12 },
    ),
    slowest,
    latestFailures,
  ],
}
