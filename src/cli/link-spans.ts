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
 */
export function emitProjection(spans: SpanSink, projection: string, batch: ProjectedBatch): void {
  if (!spans.enabled) return
  const endMs = Date.now()
  const young = batch.recorded.filter((event) => endMs - Date.parse(event.time) < REPLAYED_MS)
  const links = linksTo(young.map((event) => event.traceparent))
  if (links.length === 0) return
  const span: SpanRecord = {
    ...root('process', 'CONSUMER', endMs - batch.milliseconds, endMs),
    attributes: { [names.projection]: projection, [names.projectionEvents]: batch.events },
    links,
  }
  const toWall = endMs - performance.now()
  spans.emit([
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
