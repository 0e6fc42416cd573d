import { amber, lines, red, value, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'
import { recorded } from './recording-rules.ts'

export const overview: DashboardSpec = {
  name: 'overview',
  title: 'overview',
  question: 'Is the system well?',
  panels: [
    lines(
      'Statements',
      'Ended statements a second, by how they ended. USER_ERROR is a fault of the user; INTERNAL_ERROR is a fault of Quipu.',
      'reqps',
      [{ expr: q.rate('queries', ['state', 'error_type']), legend: '{{state}} {{error_type}}', exemplar: true }],
      { link: 'statements', width: 12 },
    ),
    lines(
      'First rows',
      'From POST to the first rows, median and 99th percentile by route. The budget: 99 % within 2.5 s.',
      's',
      [
        { expr: q.quantile(0.5, 'queryFirstPageDuration', ['route']), legend: 'p50 {{route}}', exemplar: true },
        { expr: q.quantile(0.99, 'queryFirstPageDuration', ['route']), legend: 'p99 {{route}}', exemplar: true },
      ],
      { thresholds: [amber(1), red(2.5)], link: 'statements', width: 12 },
    ),
    value(
      'Good share',
      'Share of statements in the last 5 minutes that neither failed because of Quipu nor were rejected because the log was down. Without traffic there is no share.',
      'percentunit',
      [{ expr: `1 - ${recorded.statementBad('5m')}`, legend: 'good' }],
      {
        thresholds: [
          { value: 0.99, color: 'red', below: true },
          { value: 0.999, color: 'amber', below: true },
        ],
        link: 'statements',
        width: 6,
      },
    ),
    value(
      'Error budget left, 30 d',
      'What is left of the budget: 0.1 % of the statements in 30 days may fail. Below 0: stop risky changes.',
      'percentunit',
      [{ expr: `1 - ${recorded.statementBad('30d')} / 0.001`, legend: 'left' }],
      {
        thresholds: [
          { value: 0, color: 'red', below: true },
          { value: 0.25, color: 'amber', below: true },
        ],
        width: 6,
      },
    ),
    value(
      'Writers',
      'Number of coordinators that write the event log. It must be 1. 2: stop the coordinator with the lower epoch. 0: no statement is accepted.',
      'short',
      [{ expr: q.sum('writer'), legend: 'writers' }],
      {
        thresholds: [{ value: 1, color: 'red', below: true }],
        link: 'log',
        width: 6,
      },
    ),
    value(
      'Event log up',
      '1 while the event log accepts appends. At 0 clients get 503: look at Kafka or Postgres.',
      'short',
      [{ expr: q.min('logUp'), legend: 'up' }],
      { thresholds: [{ value: 1, color: 'red', below: true }], link: 'log', width: 6 },
    ),
    lines(
      'Open statements',
      'Open statements by state. Many QUEUED: a resource group is full. Many FINISHING: clients do not fetch their rows.',
      'short',
      [{ expr: q.sum('queriesOpen', ['state']), legend: '{{state}}' }],
      { link: 'queues' },
    ),
    value(
      'Workers',
      'Workers by state. Without an active worker only statements without tables can finish.',
      'short',
      [{ expr: q.sum('workers', ['state']), legend: '{{state}}' }],
      { link: 'workers' },
    ),
    value(
      'Ready',
      'Processes that serve. 0: starting, draining or stopped.',
      'short',
      [{ expr: q.sum('ready', ['instance']), legend: '{{instance}}' }],
      { thresholds: [{ value: 1, color: 'red', below: true }], link: 'runtime' },
    ),
    lines(
      'Projection lag',
      'Age of the oldest event that the history does not show yet.',
      's',
      [{ expr: recorded.projectionLag, legend: 'lag' }],
      { thresholds: [amber(2), red(10)], link: 'log', width: 12 },
    ),
    value(
      'Firing alerts',
      'Each name leads to a section of the runbook.',
      'short',
      [
        {
          expr: 'count by (alertname, severity) (ALERTS{alertstate="firing",alertname=~"Quipu.*"}) or vector(0)',
          legend: '{{alertname}} {{severity}}',
        },
      ],
      { thresholds: [red(1)], link: 'runbook', width: 12 },
    ),
  ],
}
