import { describe, expect, it } from 'vitest'
import { createSampler } from '../../src/telemetry/sampler.ts'
import { newSpanId, newTraceId } from '../../src/telemetry/trace-context.ts'

describe('The sampler', () => {
  const client = (sampled: boolean) => ({ traceId: newTraceId(), spanId: newSpanId(), sampled })

  it('limits new traces per second', () => {
    let now = 500
    const sample = createSampler({ ratio: 1, perSecond: 50, monotonicMs: () => now })
    const taken = (): number =>
      Array.from({ length: 200 }, () => sample(undefined, newTraceId())).filter(Boolean).length
    expect(taken()).toBe(50)
    now = 1400
    expect(taken()).toBe(50)
    expect(taken()).toBe(0)
  })

  it("follows the client's flag, whatever the limit or the ratio is", () => {
    const sample = createSampler({ ratio: 0, perSecond: 1, monotonicMs: () => 0 })
    for (let count = 0; count < 10; count++) {
      expect(sample(client(true), newTraceId())).toBe(true)
      expect(sample(client(false), newTraceId())).toBe(false)
    }
    expect(sample(undefined, newTraceId())).toBe(false)
  })

  it('takes about the share that the ratio says, by trace id alone', () => {
    const sample = createSampler({ ratio: 0.25, perSecond: 10_000, monotonicMs: () => 0 })
    const ids = Array.from({ length: 4000 }, newTraceId)
    const taken = ids.filter((id) => sample(undefined, id))
    expect(taken.length / ids.length).toBeGreaterThan(0.2)
    expect(taken.length / ids.length).toBeLessThan(0.3)
    expect(ids.filter((id) => sample(undefined, id))).toEqual(taken)
  })
})
