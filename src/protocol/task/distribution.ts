import type { Distribution } from '../../execution/api/task.ts'

/** Exact percentiles (nearest rank) of all values, so `maxError` is 0; all zeros without values. */
export function percentilesOf(values: readonly number[]): Distribution {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (percent: number): number => sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0
  return {
    maxError: 0,
    count: sorted.length,
    total: sorted.reduce((sum, value) => sum + value, 0),
    p01: at(1),
    p05: at(5),
    p10: at(10),
    p25: at(25),
    p50: at(50),
    p75: at(75),
    p90: at(90),
    p95: at(95),
    p99: at(99),
    min: sorted[0] ?? 0,
    max: sorted.at(-1) ?? 0,
  }
}
