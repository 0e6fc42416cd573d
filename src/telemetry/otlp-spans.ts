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
 * Sends spans by OTLP over HTTP, a batch after the other. What is no setting of ours (`OTEL_EXPORTER_OTLP_COMPRESSION` …),
 * the transport asks the environment for.
 * Loads the SDK's transport (60 ms of CPU): called in a thread of its own, once the process serves, and only when there is
 * an endpoint. The SDK's tracer, spans and batches are not used: ours have ended when they are made, and it would make
 * each of them twice.
 */
export async function startSpanExport(options: SpanExport): Promise<Pick<SpanSink, 'emit' | 'stop'>> {
  const { createOtlpHttpExportDelegate, convertLegacyHttpOptions } =
    await import('@opentelemetry/otlp-exporter-base/node-http')
  const { url, headers, resourceAttributes } = options.collector
  const resource = {
    ...resourceAttributes,
    'service.name': options.serviceName,
    'service.instance.id': options.instance,
    'service.version': options.version,
    'deployment.environment.name': options.environment,
  }
  const transport = createOtlpHttpExportDelegate<readonly SpanRecord[], undefined>(
    convertLegacyHttpOptions({ url, headers: { ...headers }, timeoutMillis: TIMEOUT_MS }, 'TRACES', 'v1/traces', {
      'Content-Type': 'application/json',
    }),
    {
      serializeRequest: (spans) =>
        Buffer.from(JSON.stringify(toOtlpJson(spans, { resource, version: options.version }))),
      deserializeResponse: () => undefined,
    },
    'otlp_http_span_exporter',
    { name: 'span', countItems: (spans) => spans.length },
    undefined,
  )
  const waiting: SpanRecord[] = []
  let underWay: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let stopping = false

  /** Whether the collector took them. */
  function sent(spans: readonly SpanRecord[]): Promise<boolean> {
    return new Promise((resolve) => {
      try {
        transport.export(spans, ({ code }) => resolve(code === 0))
      } catch {
        // One of them cannot be written.
        resolve(false)
      }
    })
  }

  async function sendBatch(): Promise<void> {
    const batch = waiting.splice(0, BATCH)
    options.onSpans((await sent(batch)) ? 'exported' : 'dropped', batch.length)
    underWay = undefined
    next()
  }

  function begin(): void {
    clearTimeout(timer)
    timer = undefined
    underWay = sendBatch()
  }

  function next(): void {
    if (underWay || waiting.length === 0) return
    if (stopping || waiting.length >= BATCH) begin()
    else timer ??= setTimeout(begin, LINGER_MS).unref()
  }

  return {
    emit(spans) {
      const room = Math.max(0, QUEUE - waiting.length)
      for (const span of spans.slice(0, room)) waiting.push(span)
      if (spans.length > room) options.onSpans('dropped', spans.length - room)
      next()
    },
    async stop() {
      stopping = true
      next()
      while (underWay) await underWay
      await transport.shutdown()
    },
  }
}
