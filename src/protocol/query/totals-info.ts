import type { QueryListRow, StateTotals } from '../../readmodels/queries/queries.ts'
import { costOf, type Cost, type Prices } from '../../readmodels/history/prices.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'
import type { TotalsInfo } from '../info/schemas/query.ts'

/** The body of `GET /v1/query/totals`: totals of stored queries and of queries in memory, together and by state. */
export function totalsInfo(
  stored: readonly StateTotals[],
  live: readonly QueryListRow[],
  prices: Prices | undefined,
): TotalsInfo {
  const all = [...stored, ...live.map((row) => totalsOfRow(row, prices))]
  const figures = (totals: readonly StateTotals[]) => figuresOf(totals, prices?.currency)
  const states = [...new Set(all.map(({ state }) => state))].sort()
  return {
    ...figures(all),
    states: Object.fromEntries(states.map((state) => [state, figures(all.filter((one) => one.state === state))])),
  }
}

/** The cost of a listed query. */
export function costOfRow(prices: Prices | undefined, row: QueryListRow): Cost {
  return costOf(prices, {
    createdAt: row.created_at,
    cpuMs: row.cpu_ms ?? 0,
    rawInputBytes: row.raw_input_bytes ?? 0,
    cluster: row.cluster ?? undefined,
    ranMs: (row.elapsed_ms ?? 0) - (row.queued_ms ?? 0),
  })
}

function totalsOfRow(row: QueryListRow, prices: Prices | undefined): StateTotals {
  const { cost } = costOfRow(prices, row)
  return {
    state: row.state,
    queries: 1,
    cpuMs: row.cpu_ms ?? 0,
    elapsedMs: row.elapsed_ms ?? 0,
    inputBytes: row.raw_input_bytes ?? 0,
    outputRows: row.output_rows ?? 0,
    outputBytes: row.output_bytes ?? 0,
    ...(cost !== undefined && { cost }),
  }
}

function figuresOf(totals: readonly StateTotals[], currency: string | undefined) {
  const sum = (figure: Exclude<keyof StateTotals, 'state'>): number =>
    totals.reduce((total, one) => total + (one[figure] ?? 0), 0)
  const isPriced = currency !== undefined && totals.some(({ cost }) => cost !== undefined)
  return {
    queries: sum('queries'),
    cpuTime: formatDuration(sum('cpuMs') * 1e6),
    elapsedTime: formatDuration(sum('elapsedMs') * 1e6),
    rawInputDataSize: formatSize(sum('inputBytes')),
    outputPositions: sum('outputRows'),
    outputDataSize: formatSize(sum('outputBytes')),
    ...(isPriced && { cost: sum('cost'), currency }),
  }
}
