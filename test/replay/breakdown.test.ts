import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LineGroups } from '../../src/replay/breakdown.ts'
import { DurationHistogram } from '../../src/replay/duration-histogram.ts'
import type { ReplayLine } from '../../src/replay/replay-line.ts'

const line = (more: Partial<ReplayLine>): ReplayLine =>
  ({ queryId: 'q', createdAt: '2026-01-01T00:00:00.000Z', verdict: 'SAME', ...more }) as ReplayLine

it('`DurationHistogram` gives quantiles that differ from the exact ones by at most 2.5 %', () => {
  const durations = fc.array(fc.double({ min: 0.02, max: 1e7, noNaN: true }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(durations, fc.constantFrom(0.5, 0.95, 1), (all, share) => {
      const histogram = new DurationHistogram()
      for (const ms of all) histogram.add(ms)
      const exact = all.toSorted((a, b) => a - b)[Math.ceil(share * all.length) - 1]!
      expect(histogram.quantile(share)! / exact).toBeGreaterThan(0.975)
      expect(histogram.quantile(share)! / exact).toBeLessThan(1.025)
    }),
  )
  expect(new DurationHistogram().quantile(0.5)).toBeUndefined()
})

it('`LineGroups` counts verdicts and compares times by fingerprint, program and user', () => {
  const groups = new LineGroups()
  groups.add(line({ fingerprint: 'v1-a', app: 'dbt', user: 'ann', recordedMs: 100, thereMs: 200 }))
  groups.add(line({ fingerprint: 'v1-a', user: '__proto__', verdict: 'SKIPPED', reason: 'write' }))
  const { total, fingerprints, apps, users } = groups.breakdown()
  expect(total).toMatchObject({ statements: 2, verdicts: { SAME: 1, SKIPPED: 1 }, latency: { statements: 1 } })
  expect(fingerprints['v1-a']!.latency!.ratio.p50).toBeCloseTo(2, 0)
  expect(apps).toMatchObject({ dbt: { statements: 1 } })
  expect(Object.keys(users)).toEqual(['ann', '__proto__'])
})

it('`LineGroups` has at most 1,001 entries of each kind', () => {
  const groups = new LineGroups()
  for (let i = 0; i < 1500; i++) groups.add(line({ fingerprint: `v1-${i}` }))
  const { fingerprints, total } = groups.breakdown()
  expect(Object.keys(fingerprints)).toHaveLength(1001)
  expect(fingerprints['other']!.statements).toBe(500)
  expect(total.statements).toBe(1500)
})
