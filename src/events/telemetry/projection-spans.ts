import { attributes as names } from '../../telemetry/attribute-names.ts'
import { linksTo, rootSpan } from '../../telemetry/root-span.ts'
import type { SpanRecord, SpanSink } from '../../telemetry/span.ts'
import type { ProjectedBatch } from '../projection-runner.ts'
import { sqlSpan } from './commit-spans.ts'

const MOST_STATEMENTS = 20
const STATEMENT = /\b(insert|update|delete)\b(?:\s+into|\s+from)?\s+"?(\w+)/i
/** Events older than this are replayed: their old traces must not grow. */
const REPLAYED_MS = 60_000

/**
 * Emits spans of a projection's batch: a trace of its own, linked to the traces whose events it wrote, since it serves
 * many. Emits nothing for a batch without a sampled trace.
 * @param topic of the log in Kafka: there the batch begins with a poll
 */
export function emitProjection(
  spans: SpanSink,
  projection: string,
  batch: ProjectedBatch,
  topic: string | undefined,
): void {
  if (!spans.enabled) return
  const endMs = Date.now()
  const young = batch.recorded.filter((event) => endMs - Date.parse(event.time) < REPLAYED_MS)
  const links = linksTo(young.map((event) => event.traceparent))
  if (links.length === 0) return
  const startMs = endMs - batch.milliseconds
  const about = { [names.projection]: projection, [names.projectionEvents]: batch.events }
  const poll = topic === undefined ? undefined : pollSpan(topic, batch, startMs, links)
  const span: SpanRecord = {
    ...rootSpan(topic === undefined ? 'process' : `process ${topic}`, 'CONSUMER', startMs, endMs),
    ...(poll ? { traceId: poll.traceId, parentSpanId: poll.spanId } : {}),
    attributes: topic === undefined ? about : { ...about, ...ofTopic(topic, batch, 'process') },
    links,
  }
  const toWall = endMs - performance.now()
  spans.emit([
    ...(poll ? [poll] : []),
    span,
    ...batch.statements.slice(0, MOST_STATEMENTS).map(({ text, startMs, endMs: until }): SpanRecord => {
      const [, operation = 'WRITE', table = 'rows'] = STATEMENT.exec(text) ?? []
      return {
        ...sqlSpan(operation.toUpperCase(), table, text),
        traceId: span.traceId,
        parentSpanId: span.spanId,
        startMs: startMs + toWall,
        endMs: until + toWall,
        links: [],
      }
    }),
  ])
}

/** The span from the arrival of the first events until the batch begins. */
function pollSpan(topic: string, batch: ProjectedBatch, endMs: number, links: SpanRecord['links']): SpanRecord {
  return {
    ...rootSpan(`poll ${topic}`, 'CLIENT', endMs - batch.waitedMillis, endMs),
    attributes: ofTopic(topic, batch, 'poll'),
    links,
  }
}

function ofTopic(topic: string, batch: ProjectedBatch, verb: 'poll' | 'process'): SpanRecord['attributes'] {
  const last = batch.recorded.at(-1)?.position
  return {
    [names.messagingSystem]: 'kafka',
    [names.messagingDestination]: topic,
    [names.messagingOperation]: verb,
    [names.messagingOperationType]: verb === 'poll' ? 'receive' : 'process',
    [names.messagingCount]: batch.events,
    ...(last ? { [names.messagingPartition]: String(last.partition), [names.kafkaOffset]: Number(last.offset) } : {}),
  }
}
