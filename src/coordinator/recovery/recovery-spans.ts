import { attributes as names } from '../../telemetry/attribute-names.ts'
import { linksTo, rootSpan } from '../../telemetry/root-span.ts'
import type { SpanSink } from '../../telemetry/span.ts'

/** Emits a span of how a new coordinator recovered the queries of the earlier one; each query has its own trace. */
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
      ...rootSpan('recover', 'INTERNAL', endMs - recovery.milliseconds, endMs),
      attributes: { [names.epoch]: recovery.epoch, [names.recoveredQueries]: recovery.queries },
      links,
    },
  ])
}

/** Emits a span of how this process became the writer. */
export function emitClaim(spans: SpanSink, epoch: number, milliseconds: number): void {
  if (!spans.enabled) return
  const endMs = Date.now()
  const span = rootSpan('claim-epoch', 'INTERNAL', endMs - milliseconds, endMs)
  spans.emit([{ ...span, attributes: { [names.epoch]: epoch }, links: [] }])
}
