import type { QueryListRow, StateTotals } from '../../readmodels/queries/queries.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'
import type { TotalsInfo } from '../info/wire-schemas.ts'

/** The body of `GET /v1/query/totals`: totals of stored queries and of queries in memory, together and by state. */
export function totalsInfo(stored: readonly StateTotals[], live: readonly QueryListRow[]): TotalsInfo {
  const all = [...stored, ...live.map(totalsOfRow)]
  const states = [...new Set(all.map(({ state }) => state))].sort()
  return {
    ...figures(all),
    states: Object.fromEntries(states.map((state) => [state, figures(all.filter((one) => one.state === state))])),
  }
}

function totalsOfRow(row: QueryListRow): StateTotals {
  return {
    state: row.state,
    queries: 1,
    cpuMs: row.cpu_ms ?? 0,
    elapsedMs: row.elapsed_ms ?? 0,
    inputBytes: row.raw_input_bytes ?? 0,
    outputRows: row.output_rows ?? 0,
    outputBytes: row.output_bytes ?? 0,
  }
}

function figures(totals: readonly StateTotals[]) {
  const sum = (figure: Exclude<keyof StateTotals, 'state'>): number =>
    totals.reduce((total, one) => total + one[figure], 0)
  return {
    queries: sum('queries'),
    cpuTime: formatDuration(sum('cpuMs') * 1e6),
    elapsedTime: formatDuration(sum('elapsedMs') * 1e6),
    rawInputDataSize: formatSize(sum('inputBytes')),
    outputPositions: sum('outputRows'),
    outputDataSize: formatSize(sum('outputBytes')),
  }
}
