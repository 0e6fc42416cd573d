import { expect, it } from 'vitest'
import { metricNames } from '../../src/telemetry/metric-names.ts'
import { buckets, type MetricDefinition } from '../../src/telemetry/metrics/metric-definition.ts'

const metrics: readonly MetricDefinition[] = Object.values(metricNames)
const UNITS: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes' }

it('Metrics have unique names', () => {
  for (const key of ['name', 'text'] as const)
    expect(new Set(metrics.map((metric) => metric[key])).size).toBe(metrics.length)
})

it.each(metrics)('$text is the dotted name, the unit, and _total for a counter', ({ name, text, kind, unit }) => {
  expect(name).toMatch(/^[a-z]+(?:[._][a-z0-9]+)+$/)
  const parts = name.replaceAll('.', '_') + (UNITS[unit] ?? '')
  expect([parts, `${parts}_ratio`]).toContain(kind === 'counter' ? text.replace(/_total$/, '') : text)
  expect(text.endsWith('_total')).toBe(kind === 'counter')
})

it('Bounds of buckets are in ascending order', () => {
  for (const bounds of Object.values(buckets)) expect(bounds).toEqual(bounds.toSorted((a, b) => a - b))
})
