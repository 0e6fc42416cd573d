import { amber, lines, red, value, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'
import { openDeadLetters } from './tables.ts'

export const log: DashboardSpec = {
  name: 'log',
  title: 'event log and projections',
  question: 'Is the record whole and fresh?',
  panels: [
    lines(
      'Append, 99th percentile by step',
      'The price of durability. queue: many at once; send: the disks of the log; read_back: our own reader.',
      's',
      [{ expr: q.quantile(0.99, 'eventAppendDuration', ['step']), legend: '{{step}}', exemplar: true }],
      { thresholds: [amber(0.05), red(0.25)] },
    ),
    lines('Events', 'Appended a second, by type.', 'cps', [
      { expr: `topk(12, ${q.rate('eventsAppended', ['event'])})`, legend: '{{event}}' },
    ]),
    lines('Event bytes', 'How fast the log grows.', 'Bps', [{ expr: q.rate('eventBytes'), legend: 'appended' }]),
    lines(
      'Append failures',
      'Attempts that the log did not take, a second. backwards: the log lost data, stop and look.',
      'cps',
      [{ expr: q.rate('eventAppendFailures', ['reason']), legend: '{{reason}}' }],
      { thresholds: [red(0.001)] },
    ),
    value('Epoch', 'Of each coordinator; the highest writes.', 'short', [
      { expr: q.max('epoch', ['instance']), legend: '{{instance}}' },
    ]),
    lines(
      'Writer silence',
      'Since the writer’s last sign of life.',
      's',
      [{ expr: q.max('writerSilence'), legend: 'silence' }],
      { thresholds: [amber(2)] },
    ),
    lines('Take-overs, 1 h', 'Claims of the log. Many: coordinators fight, or crash.', 'short', [
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
      'Age of the oldest event that the read models lack.',
      's',
      [{ expr: q.max('projectionLag', ['projection']), legend: '{{projection}}' }],
      { thresholds: [amber(2), red(10)] },
    ),
    lines('Projection lag, events', 'Valid events that the read models lack.', 'short', [
      { expr: q.max('projectionLagEvents', ['projection']), legend: '{{projection}}' },
    ]),
    lines('Projection speed', 'Events applied a second.', 'cps', [
      { expr: q.rate('projectionEvents', ['projection']), legend: '{{projection}}' },
    ]),
    lines(
      'Reads that timed out',
      'Reads of history that waited in vain for their own writes, a second: they were marked stale.',
      'reqps',
      [{ expr: q.rateOf('count', 'projectionWait', [], 'result="timeout"'), legend: 'timed out' }],
      { thresholds: [amber(0.001)] },
    ),
    value(
      'Projection stopped',
      'The log is not what the checkpoint says: nothing more is applied until somebody acts.',
      'short',
      [{ expr: q.max('projectionStopped', ['projection']), legend: '{{projection}}' }],
      { thresholds: [red(1)] },
    ),
    lines(
      'Published, behind',
      'Age of the oldest event that others were not told of: an OpenLineage server, the public topic.',
      's',
      [{ expr: q.max('publishingLag', ['to']), legend: '{{to}}' }],
      { thresholds: [amber(30), red(300)] },
    ),
    lines(
      'Published',
      'What others are told, messages a second. refused: they will never take it, and it is left out.',
      'cps',
      [{ expr: q.rate('published', ['to', 'result']), legend: '{{to}} {{result}}' }],
    ),
    value(
      'Dead letters',
      'Events that could not be applied and wait to be mended; below they are listed.',
      'short',
      [{ expr: q.sum('deadLetters', ['projection']), legend: '{{projection}}' }],
      { thresholds: [red(1)] },
    ),
    value('Rebuild', 'Progress of a rebuild; 1 when none runs.', 'percentunit', [
      { expr: q.min('projectionRebuildRatio', ['projection']), legend: '{{projection}}' },
    ]),
    lines(
      'Audit findings, 1 h',
      'What `quipu audit verify` found: tampering or loss. Copy the log first.',
      'short',
      [{ expr: q.increase('auditFindings', '1h', ['kind']), legend: '{{kind}}' }],
      { thresholds: [red(1)] },
    ),
    lines('Archived records, 1 h', 'What left the log for its archive.', 'short', [
      { expr: q.increase('archivedRecords', '1h', []), legend: 'records' },
    ]),
    lines('Archiving, 1 h', 'Rounds; one that failed dropped nothing, and its line in the log says why.', 'short', [
      { expr: q.increase('archiveRounds', '1h', ['result']), legend: '{{result}}' },
    ]),
    lines('Recovered queries, 1 h', 'What the last restarts saved, and what not.', 'short', [
      { expr: q.increase('recoveredQueries', '1h', ['outcome']), legend: '{{outcome}}' },
    ]),
    value('Last recovery', 'How long the last restart took over open queries.', 's', [
      { expr: q.max('recoveryDuration', ['instance']), legend: '{{instance}}' },
    ]),
    lines('Writes', 'Prepared writes by how they ended, a second.', 'cps', [
      { expr: q.rate('writes', ['outcome']), legend: '{{outcome}}' },
    ]),
    openDeadLetters,
  ],
}
