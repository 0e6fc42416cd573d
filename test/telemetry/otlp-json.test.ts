import fc from 'fast-check'
import { expect, it } from 'vitest'
import { toOtlpJson } from '../../src/telemetry/otlp-json.ts'
import type { SpanRecord } from '../../src/telemetry/span.ts'

const bare: SpanRecord = {
  name: 'x',
  kind: 'INTERNAL',
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  startMs: 0,
  endMs: 0,
  attributes: {},
  status: 'UNSET',
  events: [],
  links: [],
}

function written(span: SpanRecord): Record<string, unknown> {
  const { resourceSpans } = JSON.parse(JSON.stringify(toOtlpJson([span], { resource: {} }))) as {
    resourceSpans: { scopeSpans: { spans: Record<string, unknown>[] }[] }[]
  }
  return resourceSpans[0]!.scopeSpans[0]!.spans[0]!
}

it('`toOtlpJson` writes any time as whole nanoseconds', () => {
  const times = fc.oneof(
    fc.double({ min: 0, max: 8.64e15, noNaN: true }),
    fc.double({ min: 0, max: 10, noNaN: true }),
    fc.constantFrom(0.9999999, 7.9999999, 1_700_000_000_000.25, 1),
  )
  fc.assert(
    fc.property(times, (startMs) => {
      const whole = Math.floor(startMs)
      const nanos = BigInt(whole) * 1_000_000n + BigInt(Math.round((startMs - whole) * 1e6))
      expect(written({ ...bare, startMs })['startTimeUnixNano']).toBe(String(nanos))
    }),
  )
})

it.each([Number.NaN, Infinity, -Infinity])('`toOtlpJson` refuses %d as a time', (startMs) => {
  expect(() => toOtlpJson([{ ...bare, startMs }], { resource: {} })).toThrow()
})

it('`toOtlpJson` omits absent fields of a span', () => {
  expect(written(bare)).not.toHaveProperty('parentSpanId')
  expect(written(bare)['status']).toEqual({ code: 0 })
  expect(written({ ...bare, status: 'ERROR', statusMessage: 'no' })['status']).toEqual({ code: 2, message: 'no' })
})
