import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An exported span. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  /** Milliseconds since the epoch. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly statusCode: number
}

/** A received request. */
export interface ReceivedExport {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Attributes of the first resource. */
  readonly resource: Readonly<Record<string, unknown>>
}

export interface OtlpReceiver {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  readonly exports: readonly ReceivedExport[]
  /** The spans of a trace. A span that is sent twice counts once. */
  trace(traceId: string): readonly ReceivedSpan[]
  close(): Promise<void>
}

/** Receives traces by OTLP over HTTP in JSON, as a collector does. */
export async function startOtlpReceiver(answer: 'at once' | 'never' | 'with 503' = 'at once'): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const exports: ReceivedExport[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      if (answer === 'never') return
      if (answer === 'with 503') return void response.writeHead(503).end()
      const json = JSON.parse(Buffer.concat(parts).toString()) as OtlpJson
      spans.push(...readOtlp(json))
      const resource = attributesOf(json.resourceSpans[0]?.resource?.attributes ?? [])
      exports.push({ path: request.url ?? '', headers: request.headers, resource })
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    exports,
    trace: (traceId) => [
      ...new Map(spans.filter((span) => span.traceId === traceId).map((span) => [span.spanId, span])).values(),
    ],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface OtlpValue {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
  readonly boolValue?: boolean
  readonly arrayValue?: { readonly values: readonly OtlpValue[] }
}
type OtlpAttributes = readonly { readonly key: string; readonly value: OtlpValue }[]

export interface OtlpJson {
  readonly resourceSpans: readonly {
    readonly resource?: { readonly attributes?: OtlpAttributes }
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly traceId: string
        readonly spanId: string
        readonly parentSpanId?: string
        readonly name: string
        readonly kind: number
        readonly startTimeUnixNano: string
        readonly endTimeUnixNano: string
        readonly attributes: OtlpAttributes
        readonly events?: readonly { readonly name: string; readonly attributes: OtlpAttributes }[]
        readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
        readonly status?: { readonly code?: number }
      }[]
    }[]
  }[]
}

export function readOtlp({ resourceSpans }: OtlpJson): readonly ReceivedSpan[] {
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .map((span) => ({
      traceId: span.traceId,
      spanId: span.spanId,
      parentSpanId: span.parentSpanId,
      name: span.name,
      kind: span.kind,
      startMs: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
      endMs: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
      attributes: attributesOf(span.attributes),
      events: (span.events ?? []).map(({ name, attributes }) => ({ name, attributes: attributesOf(attributes) })),
      links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
      statusCode: span.status?.code ?? 0,
    }))
}

function attributesOf(attributes: OtlpAttributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))
}

function valueOf(value: OtlpValue): unknown {
  if (value.arrayValue) return value.arrayValue.values.map(valueOf)
  if (value.intValue !== undefined) return Number(value.intValue)
  return value.stringValue ?? value.doubleValue ?? value.boolValue
}
