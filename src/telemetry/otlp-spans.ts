import type { tracing } from '@opentelemetry/sdk-node'
import { toOtlpJson } from './otlp-json.ts'
import type { SpanRecord, SpanSink } from './span.ts'

/** Where spans are sent to. */
export interface SpanCollector {
  /** The whole address, path included. */
  readonly url: string
  /** Headers of every request, beside those of the exporter. */
  readonly headers: Readonly<Record<string, string>>
  /** Of the resource; the process's own attributes go before them. */
  readonly resourceAttributes: Readonly<Record<string, string>>
}

export interface SpanExport {
  readonly collector: SpanCollector
  readonly serviceName: string
  readonly instance: string
  readonly version: string
  readonly environment: string
  /** Told how many spans left, and how many the queue had no room for. */
  readonly onSpans: (result: 'exported' | 'dropped', count: number) => void
}

const QUEUE = 16_384
const BATCH = 512

/** A batch that is not full waits so long for more. */
const LINGER_MS = 500
const TIMEOUT_MS = 1000

/**
 * Sends spans by OTLP over HTTP. What is no setting of ours (`OTEL_EXPORTER_OTLP_COMPRESSION` …), the transport asks the
 * environment for.
 * Loads the SDK (200 ms of CPU): called in a thread of its own, once the process serves, and only when there is an
 * endpoint. Its batches and its transport are used. Its tracer and its spans are not: ours have ended when they are made,
 * and are written as they are, which takes a third of the CPU.
 */
export async function startSpanExport(options: SpanExport): Promise<Pick<SpanSink, 'emit' | 'stop'>> {
  const [{ tracing: sdk, resources }, { createOtlpHttpExportDelegate, convertLegacyHttpOptions }] = await Promise.all([
    import('@opentelemetry/sdk-node'),
    import('@opentelemetry/otlp-exporter-base/node-http'),
  ])
  const { url, headers, resourceAttributes } = options.collector
  const resource = resources.resourceFromAttributes({
    ...resourceAttributes,
    'service.name': options.serviceName,
    'service.instance.id': options.instance,
    'service.version': options.version,
    'deployment.environment.name': options.environment,
  })
  const source = { resource: resource.attributes as Record<string, string>, version: options.version }
  const transport = createOtlpHttpExportDelegate<readonly SpanRecord[], undefined>(
    convertLegacyHttpOptions({ url, headers: { ...headers }, timeoutMillis: TIMEOUT_MS }, 'TRACES', 'v1/traces', {
      'Content-Type': 'application/json',
    }),
    {
      serializeRequest: (spans) => Buffer.from(JSON.stringify(toOtlpJson(spans, source))),
      deserializeResponse: () => undefined,
    },
    'otlp_http_span_exporter',
    { name: 'span', countItems: (spans) => spans.length },
    undefined,
  )
  let queued = 0
  const exporter: tracing.SpanExporter = {
    export(batch, done) {
      const spans = batch.map((span) => (span as Queued).record)
      const ended: typeof done = (result) => {
        queued = Math.max(0, queued - spans.length)
        options.onSpans(result.code === 0 ? 'exported' : 'dropped', spans.length)
        done(result)
      }
      try {
        transport.export(spans, ended)
      } catch (error) {
        // One of them cannot be written.
        ended({ code: FAILED, error: error as Error })
      }
    },
    shutdown: () => transport.shutdown(),
    forceFlush: () => transport.forceFlush(),
  }
  const processor = new sdk.BatchSpanProcessor(exporter, {
    maxQueueSize: QUEUE,
    maxExportBatchSize: BATCH,
    scheduledDelayMillis: LINGER_MS,
    exportTimeoutMillis: TIMEOUT_MS,
  })
  return {
    emit(spans) {
      const room = Math.max(0, QUEUE - queued)
      for (const record of spans.slice(0, room)) {
        queued++
        processor.onEnd({ record, resource, spanContext: () => contextOf(record) } as Queued)
      }
      if (spans.length > room) options.onSpans('dropped', spans.length - room)
    },
    // Its rejection says that the collector is away, which is no reason not to stop.
    stop: () => processor.shutdown().catch(() => {}),
  }
}

/** Of the SDK's results. */
const FAILED = 1
/** W3C flag of a trace that is taken: what arrives here is to be sent. */
const SAMPLED = 1

/** A span in the SDK's batches, which ask it whether it is to be sent, and whose it is. */
interface Queued extends tracing.ReadableSpan {
  readonly record: SpanRecord
}

function contextOf({ traceId, spanId }: SpanRecord): ReturnType<tracing.ReadableSpan['spanContext']> {
  return { traceId, spanId, traceFlags: SAMPLED }
}
