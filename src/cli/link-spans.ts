import type { ProjectedBatch } from '../events/projection-runner.ts'
import { sqlSpan } from './commit-spans.ts'
import { attributes as names } from '../telemetry/attribute-names.ts'
import type { SpanRecord, SpanSink } from '../telemetry/span.ts'
import { newSpanId, newTraceId, parseTraceparent } from '../telemetry/trace-context.ts'

/** Links of one span at most. */
const MOST_LINKS = 128
const MOST_STATEMENTS = 20
const STATEMENT = /\b(insert|update|delete)\b(?:\s+into|\s+from)?\s+"?(\w+)/i
/** Events older than this are replayed: a trace of last year must not grow. */
const REPLAYED_MS = 60_000

/**
 * A batch of the projection: a trace of its own, linked to the traces whose events it wrote, since it serves many.
 * Emits nothing for batches without a taken trace.
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
    ...root(topic === undefined ? 'process' : `process ${topic}`, 'CONSUMER', startMs, endMs),
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

/** From the first events' arrival until the batch is taken on. */
function pollSpan(topic: string, batch: ProjectedBatch, endMs: number, links: SpanRecord['links']): SpanRecord {
  return {
    ...root(`poll ${topic}`, 'CLIENT', endMs - batch.waitedMillis, endMs),
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

/** What a new coordinator did with the queries of the one before; each has its own trace. */
export function emitRecovery(
  spans: SpanSink,
  recovery: {
    readonly epoch: number
    readonly milliseconds: number
    readonly queries: number
    readonly traceparents: readonly (string | undefined)[]
  },
): void {
  const links = linksTo(recovery.traceparents)
  if (!spans.enabled || links.length === 0) return
  const endMs = Date.now()
  spans.emit([
    {
      ...root('recover', 'INTERNAL', endMs - recovery.milliseconds, endMs),
      attributes: { [names.epoch]: recovery.epoch, [names.recoveredQueries]: recovery.queries },
      links,
    },
  ])
}

/** How this process became the writer. */
export function emitClaim(spans: SpanSink, epoch: number, milliseconds: number): void {
  if (!spans.enabled) return
  const endMs = Date.now()
  const span = root('claim-epoch', 'INTERNAL', endMs - milliseconds, endMs)
  spans.emit([{ ...span, attributes: { [names.epoch]: epoch }, links: [] }])
}

function root(
  name: string,
  kind: SpanRecord['kind'],
  startMs: number,
  endMs: number,
): Omit<SpanRecord, 'attributes' | 'links'> {
  return { name, kind, traceId: newTraceId(), spanId: newSpanId(), startMs, endMs, status: 'UNSET', events: [] }
}

function linksTo(traceparents: readonly (string | undefined)[]): SpanRecord['links'] {
  return [...new Set(traceparents)]
    .map(parseTraceparent)
    .filter((context) => context?.sampled === true)
    .slice(0, MOST_LINKS)
    .map((context) => ({ traceId: context!.traceId, spanId: context!.spanId }))
}
