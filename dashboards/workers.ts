import { amber, lines, red, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'

export const workers: DashboardSpec = {
  name: 'workers',
  title: 'workers and engines',
  question: 'Is the work spread, does the memory hold?',
  panels: [
    lines(
      'Heartbeat age',
      'Since each worker was heard of; it tells of itself each second. Above 5 s it counts as failed.',
      's',
      [{ expr: q.max('workerHeartbeatAge', ['worker']), legend: '{{worker}}' }],
      { thresholds: [amber(3), red(10)] },
    ),
    lines(
      'Workers lost, 1 h',
      'By reason. no_answer: the process or the network; refused: nothing listens; left: it was stopped.',
      'short',
      [{ expr: q.increase('workerFailures', '1h', ['reason']), legend: '{{reason}}' }],
      { thresholds: [amber(1)] },
    ),
    lines(
      'Task start delay, 99th percentile',
      'From TaskCreated to its start. High: the worker waits for an engine or for its connection.',
      's',
      [{ expr: q.quantile(0.99, 'taskStartDelay'), legend: 'p99' }],
      { thresholds: [amber(0.25)] },
    ),
    lines('Task time, 99th percentile', 'From its start on the worker to its end, by how it ended.', 's', [
      { expr: q.quantile(0.99, 'taskDuration', ['state']), legend: '{{state}}', exemplar: true },
    ]),
    lines('Tasks running', 'By worker. An autoscaler of workers reads the same figure.', 'short', [
      { expr: q.sum('workerTasks', ['instance']), legend: '{{instance}}' },
    ]),
    lines('Tasks ended', 'How many end a second, by how they end.', 'cps', [
      { expr: q.rate('tasks', ['state']), legend: '{{state}}' },
    ]),
    lines(
      'Tasks tried again',
      'A second, by reason: what ran twice, and why.',
      'cps',
      [{ expr: q.rate('taskRetries', ['reason']), legend: '{{reason}}' }],
      { thresholds: [amber(0.001)] },
    ),
    lines('Splits', 'Source work a second, by connector.', 'cps', [
      { expr: q.rate('splits', ['connector']), legend: '{{connector}}' },
    ]),
    lines(
      'Batch time, 99th percentile',
      'One engine statement over some splits, by connector: which source is slow.',
      's',
      [{ expr: q.quantile(0.99, 'splitDuration', ['connector']), legend: '{{connector}}' }],
    ),
    lines(
      'Skew, 95th percentile',
      'Of a stage: its slowest task over its median one. Far above 1: one key, or one file, has most of the rows.',
      'x',
      [{ expr: q.quantile(0.95, 'stageSkewRatio'), legend: 'p95' }],
      { thresholds: [amber(4)] },
    ),
    lines('Time by operator', 'Seconds a second, summed over threads, of profiled tasks.', 's', [
      { expr: `topk(10, ${q.rate('operatorTimeSeconds', ['operator'])})`, legend: '{{operator}}' },
    ]),
    lines('Exchange', 'Page bytes a second over the network.', 'Bps', [
      { expr: q.rate('exchangeBytes', ['direction']), legend: '{{direction}}' },
    ]),
    lines(
      'Page fetch, 99th percentile',
      'One request for a page, by how it went. retry: the worker was not reached; failed: the page is gone.',
      's',
      [{ expr: q.quantile(0.99, 'exchangeRequestDuration', ['result']), legend: '{{result}}' }],
    ),
    lines('Exchange blocked', 'Seconds a second that one side waited for the other.', 's', [
      { expr: q.rate('exchangeBlockedSeconds', ['side']), legend: '{{side}}' },
    ]),
    lines('Pages written', 'Pages that were written to disk, a second.', 'cps', [
      { expr: q.rate('pagesSpooled', ['kind']), legend: '{{kind}}' },
    ]),
    lines(
      'Pages lost',
      'Listed, then gone: the disk of the worker.',
      'cps',
      [{ expr: q.rate('pagesLost', ['kind']), legend: '{{kind}}' }],
      { thresholds: [red(0.001)] },
    ),
    lines(
      'Page store fill',
      'Used of what a worker may keep on disk. Full: clients do not fetch, and engines wait for them.',
      'percentunit',
      [
        {
          expr: `${q.sum('pageStoreBytes', ['instance', 'kind'])} / ${q.sum('pageStoreLimitBytes', ['instance', 'kind'])}`,
          legend: '{{instance}} {{kind}}',
        },
      ],
      { thresholds: [amber(0.7), red(0.85)] },
    ),
    lines(
      'Engine memory share',
      'Resident memory of each engine over the bound at which it is killed.',
      'percentunit',
      [
        {
          expr: `${q.max('engineResidentMemoryBytes', ['instance', 'slot'])} / on (instance) group_left () ${q.max('engineMemoryLimitBytes', ['instance'])}`,
          legend: '{{instance}} {{slot}}',
        },
      ],
      { thresholds: [amber(0.8), red(0.95)] },
    ),
    lines('Engines', 'Child processes by state, by instance.', 'short', [
      { expr: q.sum('engineChildren', ['instance', 'state']), legend: '{{instance}} {{state}}' },
    ]),
    lines(
      'Engines ended, 1 h',
      'Why. memory and crash: a statement was too much; its name is in the worker’s log.',
      'short',
      [{ expr: q.increase('engineRestarts', '1h', ['reason']), legend: '{{reason}}' }],
      { thresholds: [amber(1)] },
    ),
    lines('Engine statement, 99th percentile', 'Time of one statement in DuckDB alone.', 's', [
      { expr: q.quantile(0.99, 'engineStatementDuration', ['kind']), legend: '{{kind}}' },
    ]),
    lines(
      'Cancel, 99th percentile',
      'Until the engine was idle. kill: the statement did not listen to the interrupt.',
      's',
      [{ expr: q.quantile(0.99, 'cancelDuration', ['how']), legend: '{{how}}', exemplar: true }],
      { thresholds: [amber(0.2)] },
    ),
    lines('DuckDB memory by tag', 'What the engine that small statements share holds, by what it is for.', 'bytes', [
      { expr: q.sum('duckdbMemoryBytes', ['tag']), legend: '{{tag}}' },
    ]),
    lines('Spill', 'Bytes a second that engines wrote to disk for want of memory.', 'Bps', [
      { expr: q.rate('spilledBytes', ['instance']), legend: '{{instance}}' },
    ]),
  ],
}
