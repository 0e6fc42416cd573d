import { amber, lines, red, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'

export const workers: DashboardSpec = {
  name: 'workers',
  title: 'workers and engines',
  question: 'Is the work spread evenly, and is there enough memory?',
  panels: [
    lines(
      'Heartbeat age',
      'Time since the last announcement of each worker. A worker announces itself each second; above 5 s it counts as failed.',
      's',
      [{ expr: q.max('workerHeartbeatAge', ['worker']), legend: '{{worker}}' }],
      { thresholds: [amber(3), red(10)] },
    ),
    lines(
      'Workers lost, 1 h',
      'Lost workers by reason. no_answer: a problem of the process or the network; refused: no process listens; left: the worker was stopped.',
      'short',
      [{ expr: q.increase('workerFailures', '1h', ['reason']), legend: '{{reason}}' }],
      { thresholds: [amber(1)] },
    ),
    lines(
      'Task start delay, 99th percentile',
      'Time from TaskCreated to the start of the task. High: the worker waits for an engine or for its connection.',
      's',
      [{ expr: q.quantile(0.99, 'taskStartDelay'), legend: 'p99' }],
      { thresholds: [amber(0.25)] },
    ),
    lines('Task time, 99th percentile', 'Time of tasks on their worker, by how they ended.', 's', [
      { expr: q.quantile(0.99, 'taskDuration', ['state']), legend: '{{state}}', exemplar: true },
    ]),
    lines('Tasks running', 'Running tasks by worker. An autoscaler of workers can read the same figure.', 'short', [
      { expr: q.sum('workerTasks', ['instance']), legend: '{{instance}}' },
    ]),
    lines('Tasks ended', 'Ended tasks a second, by how they ended.', 'cps', [
      { expr: q.rate('tasks', ['state']), legend: '{{state}}' },
    ]),
    lines(
      'Tasks tried again',
      'Tasks a second that ran a second time, by reason.',
      'cps',
      [{ expr: q.rate('taskRetries', ['reason']), legend: '{{reason}}' }],
      { thresholds: [amber(0.001)] },
    ),
    lines('Splits', 'Processed splits a second, by connector.', 'cps', [
      { expr: q.rate('splits', ['connector']), legend: '{{connector}}' },
    ]),
    lines(
      'Batch time, 99th percentile',
      'Time of an engine statement over a batch of splits, by connector. It shows which source is slow.',
      's',
      [{ expr: q.quantile(0.99, 'splitDuration', ['connector']), legend: '{{connector}}' }],
    ),
    lines(
      'Skew, 95th percentile',
      'Time of the slowest task of a stage divided by the time of its median task. Far above 1: one key or one file has most of the rows.',
      'x',
      [{ expr: q.quantile(0.95, 'stageSkewRatio'), legend: 'p95' }],
      { thresholds: [amber(4)] },
    ),
    lines('Time by operator', 'Seconds a second of operators in profiled tasks, summed over threads.', 's', [
      { expr: `topk(10, ${q.rate('operatorTimeSeconds', ['operator'])})`, legend: '{{operator}}' },
    ]),
    lines('Exchange', 'Page bytes a second over the network.', 'Bps', [
      { expr: q.rate('exchangeBytes', ['direction']), legend: '{{direction}}' },
    ]),
    lines(
      'Page fetch, 99th percentile',
      'Time of a request for a page, by result. retry: the worker could not be reached; failed: the page is gone.',
      's',
      [{ expr: q.quantile(0.99, 'exchangeRequestDuration', ['result']), legend: '{{result}}' }],
    ),
    lines('Exchange blocked', 'Seconds a second that one side of an exchange waited for the other.', 's', [
      { expr: q.rate('exchangeBlockedSeconds', ['side']), legend: '{{side}}' },
    ]),
    lines('Pages written', 'Pages a second that were written to disk.', 'cps', [
      { expr: q.rate('pagesSpooled', ['kind']), legend: '{{kind}}' },
    ]),
    lines(
      'Pages lost',
      'Pages that were listed and later missing: check the disk of the worker.',
      'cps',
      [{ expr: q.rate('pagesLost', ['kind']), legend: '{{kind}}' }],
      { thresholds: [red(0.001)] },
    ),
    lines(
      'Page store fill',
      'Used share of the page store on disk. Full: clients do not fetch, and engines wait for them.',
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
      'Resident memory of each engine divided by the limit at which it is killed.',
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
      'Ended engines by reason. memory and crash: a statement needed too much; the log of the worker names it.',
      'short',
      [{ expr: q.increase('engineRestarts', '1h', ['reason']), legend: '{{reason}}' }],
      { thresholds: [amber(1)] },
    ),
    lines('Engine statement, 99th percentile', 'Time of one statement in DuckDB alone.', 's', [
      { expr: q.quantile(0.99, 'engineStatementDuration', ['kind']), legend: '{{kind}}' },
    ]),
    lines(
      'Cancel, 99th percentile',
      'Time from a cancel until the engine is idle. kill: the statement did not react to the interrupt.',
      's',
      [{ expr: q.quantile(0.99, 'cancelDuration', ['how']), legend: '{{how}}', exemplar: true }],
      { thresholds: [amber(0.2)] },
    ),
    lines('DuckDB memory by tag', 'Memory of the engine that small statements share, by purpose.', 'bytes', [
      { expr: q.sum('duckdbMemoryBytes', ['tag']), legend: '{{tag}}' },
    ]),
    lines('Spill', 'Bytes a second that engines wrote to disk because memory was short.', 'Bps', [
      { expr: q.rate('spilledBytes', ['instance']), legend: '{{instance}}' },
    ]),
  ],
}
