import { amber, lines, red, value, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'
import { openDeadLetters } from './tables.ts'

export const log: DashboardSpec = {
  name: 'log',
  title: 'event log and projections',
  question: 'Is the event log complete, and are the read models up to date?',
  panels: [
    lines(
      'Append, 99th percentile by step',
      'Time to make events durable. queue: many appends at once; send: the disks of the log; read_back: the reader of the coordinator.',
      's',
      [{ expr: q.quantile(0.99, 'eventAppendDuration', ['step']), legend: '{{step}}', exemplar: true }],
      { thresholds: [amber(0.05), red(0.25)] },
    ),
    lines('Events', 'Appended events a second, by type.', 'cps', [
      { expr: `topk(12, ${q.rate('eventsAppended', ['event'])})`, legend: '{{event}}' },
    ]),
    lines('Event bytes', 'How fast the event log grows.', 'Bps', [{ expr: q.rate('eventBytes'), legend: 'appended' }]),
    lines(
      'Append failures',
      'Appends a second that the log refused. backwards: the log lost data; stop the coordinator and investigate.',
      'cps',
      [{ expr: q.rate('eventAppendFailures', ['reason']), legend: '{{reason}}' }],
      { thresholds: [red(0.001)] },
    ),
    value('Epoch', 'Epoch of each coordinator. The coordinator with the highest epoch writes.', 'short', [
      { expr: q.max('epoch', ['instance']), legend: '{{instance}}' },
    ]),
    lines(
      'Writer silence',
      'Time since the last sign of life of the writing coordinator.',
      's',
      [{ expr: q.max('writerSilence'), legend: 'silence' }],
      { thresholds: [amber(2)] },
    ),
    lines('Take-overs, 1 h', 'Claims of an epoch. Many: coordinators compete, or crash.', 'short', [
      { expr: q.increase('epochClaims', '1h', ['result']), legend: '{{result}}' },
    ]),
    lines(
      'Ignored events',
      'Records that do not count. stale: a fenced coordinator still writes; stop it.',
      'cps',
      [{ expr: q.rate('eventsIgnored', ['reason']), legend: '{{reason}}' }],
      { thresholds: [red(0.001)] },
    ),
    lines(
      'Projection lag',
      'Age of the oldest event that is not in the read models yet.',
      's',
      [{ expr: q.max('projectionLag', ['projection']), legend: '{{projection}}' }],
      { thresholds: [amber(2), red(10)] },
    ),
    lines('Projection lag, events', 'Valid events that are not in the read models yet.', 'short', [
      { expr: q.max('projectionLagEvents', ['projection']), legend: '{{projection}}' },
    ]),
    lines('Projection speed', 'Events applied a second.', 'cps', [
      { expr: q.rate('projectionEvents', ['projection']), legend: '{{projection}}' },
    ]),
    lines(
      'Reads that timed out',
      'Reads of the history a second that did not get the newest events in time. Their answers were marked stale.',
      'reqps',
      [{ expr: q.rateOf('count', 'projectionWait', [], 'result="timeout"'), legend: 'timed out' }],
      { thresholds: [amber(0.001)] },
    ),
    value(
      'Projection stopped',
      '1: the log does not match the checkpoint. No event is applied until an operator acts.',
      'short',
      [{ expr: q.max('projectionStopped', ['projection']), legend: '{{projection}}' }],
      { thresholds: [red(1)] },
    ),
    lines(
      'Published, behind',
      'Age of the oldest event that was not published yet to the OpenLineage server or the public topic.',
      's',
      [{ expr: q.max('publishingLag', ['to']), legend: '{{to}}' }],
      { thresholds: [amber(30), red(300)] },
    ),
    lines(
      'Published',
      'Published messages a second. refused: the receiver will never accept the message, so it is left out.',
      'cps',
      [{ expr: q.rate('published', ['to', 'result']), legend: '{{to}} {{result}}' }],
    ),
    value(
      'Dead letters',
      'Events that could not be applied and wait for a repair. The table below lists them.',
      'short',
      [{ expr: q.sum('deadLetters', ['projection']), legend: '{{projection}}' }],
      { thresholds: [red(1)] },
    ),
    value('Rebuild', 'Progress of a rebuild. 1: no rebuild runs.', 'percentunit', [
      { expr: q.min('projectionRebuildRatio', ['projection']), legend: '{{projection}}' },
    ]),
    lines(
      'Audit findings, 1 h',
      'Findings of `quipu audit verify`: tampering or loss. Copy the log before anything else.',
      'short',
      [{ expr: q.increase('auditFindings', '1h', ['kind']), legend: '{{kind}}' }],
      { thresholds: [red(1)] },
    ),
    lines('Archived records, 1 h', 'Records that moved from the event log to its archive.', 'short', [
      { expr: q.increase('archivedRecords', '1h', []), legend: 'records' },
    ]),
    lines(
      'Archiving, 1 h',
      'Rounds of archiving. A failed round deleted nothing; its log line says why it failed.',
      'short',
      [{ expr: q.increase('archiveRounds', '1h', ['result']), legend: '{{result}}' }],
    ),
    lines('Erasures, 1 h', 'Erasures of a person or a value. After `remains`, something is left somewhere.', 'short', [
      { expr: q.increase('erasures', '1h', ['result']), legend: '{{result}}' },
    ]),
    lines('Recovered queries, 1 h', 'Open queries that the last restarts took over, by outcome.', 'short', [
      { expr: q.increase('recoveredQueries', '1h', ['outcome']), legend: '{{outcome}}' },
    ]),
    value('Last recovery', 'How long the last restart needed to take over open queries.', 's', [
      { expr: q.max('recoveryDuration', ['instance']), legend: '{{instance}}' },
    ]),
    lines('Writes', 'Prepared writes a second, by how they ended.', 'cps', [
      { expr: q.rate('writes', ['outcome']), legend: '{{outcome}}' },
    ]),
    openDeadLetters,
  ],
}
