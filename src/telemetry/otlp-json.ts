import type { AttributeValue, SpanRecord } from './span.ts'

/** Attributes of a resource or span in OTLP's JSON. */
interface OtlpAttribute {
  readonly key: string
  readonly value: object
}

/** A trace in OTLP's JSON form. Trace viewers accept it as a file. */
export interface OtlpTrace {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string; readonly version?: string }
      readonly spans: readonly object[]
    }[]
  }[]
}

const KINDS = { INTERNAL: 1, SERVER: 2, CLIENT: 3, PRODUCER: 4, CONSUMER: 5 } as const
/** W3C flag of a sampled trace. */
const SAMPLED = 1
const STATUS = { UNSET: 0, OK: 1, ERROR: 2 } as const

/** The process that the spans come from. */
export interface OtlpSource {
  readonly resource: Readonly<Record<string, AttributeValue>>
  readonly version?: string
}

export function toOtlpJson(spans: readonly SpanRecord[], { resource, version }: OtlpSource): OtlpTrace {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [
          { scope: { name: 'quipu', ...(version === undefined ? {} : { version }) }, spans: spans.map(spanOf) },
        ],
      },
    ],
  }
}

/**
 * A span in JSON. Absent fields are undefined, which JSON leaves out: spreads between the keys would cost more than
 * everything else here.
 */
function spanOf(span: SpanRecord): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: nanosOf(span.startMs),
    endTimeUnixNano: nanosOf(span.endMs),
    attributes: attributesOf(span.attributes),
    events: span.events.map((event) => ({
      name: event.name,
      timeUnixNano: nanosOf(event.atMs),
      attributes: attributesOf(event.attributes),
    })),
    links: span.links,
    flags: SAMPLED,
    status: { code: STATUS[span.status], message: span.statusMessage },
  }
}

function attributesOf(attributes: Readonly<Record<string, AttributeValue>>): readonly OtlpAttribute[] {
  return Object.keys(attributes).map((key) => ({ key, value: valueOf(attributes[key]!) }))
}

function valueOf(value: AttributeValue): object {
  switch (typeof value) {
    case 'string':
      return { stringValue: value }
    case 'boolean':
      return { boolValue: value }
    case 'number':
      return Number.isInteger(value) ? { intValue: value } : { doubleValue: value }
    default:
      return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } }
  }
}

/**
 * Nanoseconds since the epoch as text, the form of 64-bit numbers in OTLP's JSON.
 * @throws RangeError when the value is no number
 */
function nanosOf(milliseconds: number): string {
  const whole = Math.floor(milliseconds)
  const nanos = Math.round((milliseconds - whole) * 1e6)
  if (whole <= 0 || !Number.isFinite(milliseconds)) return String(BigInt(whole) * 1_000_000n + BigInt(nanos))
  return nanos === 1e6 ? `${whole + 1}000000` : `${whole}${String(nanos).padStart(6, '0')}`
}
