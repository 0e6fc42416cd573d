import type { Attributes, Context, ContextManager, HrTime, SpanKind, Tracer } from '@opentelemetry/api'
import type { SpanRecord, SpanSink } from './span.ts'

export interface SpanExport {
  readonly serviceName: string
  readonly instance: string
  readonly version: string
  readonly environment: string
  /** Told how many spans left, and how many the queue had no room for. */
  readonly onSpans: (result: 'exported' | 'dropped', count: number) => void
}

const QUEUE = 16_384
const BATCH = 512

/**
 * Sends spans by OTLP over HTTP; where to is the standard environment's say (`OTEL_EXPORTER_OTLP_ENDPOINT` …). Loads
 * the SDK (200 ms of CPU): called in a thread of its own, once the process serves, and only when there is an endpoint.
 */
export async function startSpanExport(options: SpanExport): Promise<Pick<SpanSink, 'emit' | 'stop'>> {
  const [api, { NodeSDK, tracing, resources }, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-node'),
    import('@opentelemetry/exporter-trace-otlp-http'),
  ])
  /** Ids of the span that is started next: spans of entities have their own. */
  const next: { traceId?: string; spanId?: string } = {}
  const random = new tracing.RandomIdGenerator()
  const exporter = new OTLPTraceExporter({ timeoutMillis: 1000 })
  let queued = 0
  const counted = {
    export(spans: Parameters<typeof exporter.export>[0], done: Parameters<typeof exporter.export>[1]) {
      exporter.export(spans, (result) => {
        queued = Math.max(0, queued - spans.length)
        options.onSpans(result.code === 0 ? 'exported' : 'dropped', spans.length)
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  }
  const processor = new tracing.BatchSpanProcessor(counted, {
    maxQueueSize: QUEUE,
    maxExportBatchSize: BATCH,
    scheduledDelayMillis: 500,
    exportTimeoutMillis: 1000,
  })
  const sdk = new NodeSDK({
    resource: resources.resourceFromAttributes({
      'service.name': options.serviceName,
      'service.instance.id': options.instance,
      'service.version': options.version,
      'deployment.environment.name': options.environment,
    }),
    idGenerator: {
      generateTraceId: () => next.traceId ?? random.generateTraceId(),
      generateSpanId: () => next.spanId ?? random.generateSpanId(),
    },
    // Whether a trace is taken was decided when the query came; what arrives here is to be sent.
    sampler: new tracing.AlwaysOnSampler(),
    spanProcessors: [processor],
    instrumentations: [],
    // Contexts are passed by hand. The SDK's own manager would switch async hooks on for the whole process.
    contextManager: noContexts(api.ROOT_CONTEXT),
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
  })
  sdk.start()
  const tracer: Tracer = api.trace.getTracer('quipu', options.version)
  const kinds: Record<SpanRecord['kind'], SpanKind> = {
    INTERNAL: api.SpanKind.INTERNAL,
    SERVER: api.SpanKind.SERVER,
    CLIENT: api.SpanKind.CLIENT,
    PRODUCER: api.SpanKind.PRODUCER,
    CONSUMER: api.SpanKind.CONSUMER,
  }
  const flags = api.TraceFlags.SAMPLED

  function parentOf(span: SpanRecord): Context {
    if (span.parentSpanId === undefined) return api.ROOT_CONTEXT
    return api.trace.setSpanContext(api.ROOT_CONTEXT, {
      traceId: span.traceId,
      spanId: span.parentSpanId,
      traceFlags: flags,
      isRemote: true,
    })
  }

  return {
    emit(spans) {
      for (const span of spans) {
        if (queued >= QUEUE) {
          options.onSpans('dropped', 1)
          continue
        }
        queued++
        next.traceId = span.traceId
        next.spanId = span.spanId
        const made = tracer.startSpan(
          span.name,
          {
            kind: kinds[span.kind],
            startTime: hrTime(span.startMs),
            attributes: span.attributes as Attributes,
            links: span.links.map((link) => ({ context: { ...link, traceFlags: flags } })),
          },
          parentOf(span),
        )
        delete next.traceId
        delete next.spanId
        for (const event of span.events) made.addEvent(event.name, event.attributes as Attributes, hrTime(event.atMs))
        if (span.status !== 'UNSET')
          made.setStatus({
            code: span.status === 'OK' ? api.SpanStatusCode.OK : api.SpanStatusCode.ERROR,
            ...(span.statusMessage === undefined ? {} : { message: span.statusMessage }),
          })
        made.end(hrTime(span.endMs))
      }
    },
    // Its rejection says that the collector is away, which is no reason not to stop.
    stop: () => sdk.shutdown().catch(() => {}),
  }
}

function noContexts(root: Context): ContextManager {
  const manager: ContextManager = {
    active: () => root,
    with: (_, work, thisArg, ...args) => work.call(thisArg as ThisParameterType<typeof work>, ...args),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  }
  return manager
}

/** Seconds and nanoseconds: a Date has whole milliseconds, which most operators do not take. */
function hrTime(milliseconds: number): HrTime {
  const seconds = Math.floor(milliseconds / 1000)
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)]
}
