import { describe, expect, it } from 'vitest'
import { entitySpanId, formatTraceparent, isSampled, parseTraceparent } from '../../src/telemetry/trace-context.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

describe('The trace context', () => {
  it('reads and writes traceparent', () => {
    const context = parseTraceparent(`00-${traceId}-${spanId}-01`)
    expect(context).toEqual({ traceId, spanId, sampled: true })
    expect(formatTraceparent(context!)).toBe(`00-${traceId}-${spanId}-01`)
    expect(parseTraceparent(`00-${traceId}-${spanId}-00`)?.sampled).toBe(false)
  })

  it.each([
    '',
    'x',
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}`,
  ])('ignores the header %j', (header) => expect(parseTraceparent(header)).toBeUndefined())

  it('gives an entity the same span id every time', () => {
    expect(entitySpanId('query', 'a')).toBe(entitySpanId('query', 'a'))
    expect(entitySpanId('query', 'a')).not.toBe(entitySpanId('stage', 'a'))
    expect(entitySpanId('query', 'a')).toMatch(/^[0-9a-f]{16}$/)
  })

  it("prefers the client's flag to the ratio", () => {
    expect(isSampled({ traceId, spanId, sampled: true }, traceId, 0)).toBe(true)
    expect(isSampled({ traceId, spanId, sampled: false }, traceId, 1)).toBe(false)
    expect(isSampled(undefined, traceId, 0)).toBe(false)
    expect(isSampled(undefined, traceId, 1)).toBe(true)
    expect(isSampled(undefined, `${'0'.repeat(18)}00000000000000`, 0.01)).toBe(true)
    expect(isSampled(undefined, `${'0'.repeat(18)}ffffffffffffff`, 0.99)).toBe(false)
  })
})
