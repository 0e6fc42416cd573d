import type { tracing } from '@opentelemetry/sdk-node'
import { toOtlpJson } from './otlp-json.ts'
import type { SpanRecord, SpanSink } from './span.ts'

/** The collector that spans are sent to. */
export interface SpanCollector {
  /** The whole address, with its path. */
  readonly url: string
  /** Headers of every request, in addition to the exporter's own. */
  readonly headers: Readonly<Record<string, string>>
  /** Attributes of the resource. The process's own attributes take precedence. */
  readonly resourceAttributes: Readonly<Record<string, string>>
}

export interface SpanExport {
  readonly collector: SpanCollector
  readonly serviceName: string
  readonly instance: string
  readonly version: string
  readonly environment: string
  /** Called with the number of spans that were sent, or that the queue had no room for. */
  readonly onSpans: (result: 'exported' | 'dropped', count: number) => void
}

const QUEUE = 16_384
const BATCH = 512

/** How long an incomplete batch waits for more spans. */
const LINGER_MS = 500
const TIMEOUT_MS = 1000

/**
 * Sends spans by OTLP over HTTP. The transport reads further options, which are no settings of Quipu
 * (`OTEL_EXPORTER_OTLP_COMPRESSION` …), from the environment. It loads the SDK (200 ms of CPU), so it runs in a thread
 * of its own, once the process serves, and only with an endpoint. It uses the SDK's batches and its transport, but not
 * its tracer and its spans: Quipu's spans are complete when they are made, and writing them directly takes a third of
 * the CPU.
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
        // One of the spans cannot be written.
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
    // It rejects if the collector is away, which must not prevent the stop.
    stop: () => processor.shutdown().catch(() => {}),
  }
}

/** The SDK's code for a failed export. */
const FAILED = 1
/** W3C flag of a sampled trace: every span that arrives here is to be sent. */
const SAMPLED = 1

/** A span in the SDK's batches. The SDK asks it for its context and for the sampled flag. */
interface Queued extends tracing.ReadableSpan {
  readonly record: SpanRecord
}

function contextOf({ traceId, spanId }: SpanRecord): ReturnType<tracing.ReadableSpan['spanContext']> {
  return { traceId, spanId, traceFlags: SAMPLED }
}
