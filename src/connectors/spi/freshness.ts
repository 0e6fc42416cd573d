import type { ConnectorTable, MaterializedView, SourceTable } from './connector.ts'

/** FRESH: no table that the stored rows were made from has changed since. UNKNOWN: some tables do not say it. */
export type Freshness = 'FRESH' | 'STALE' | 'UNKNOWN'

/** @param tableOf the table of today; not called for a source without snapshot, which cannot be compared */
export async function freshnessOf(
  { stored }: MaterializedView,
  tableOf: (source: SourceTable) => Promise<Pick<ConnectorTable, 'snapshot'> | undefined> | undefined,
): Promise<Freshness> {
  if (!stored) return 'STALE'
  const today = await Promise.all(
    stored.sources.map((source) => (source.snapshot === undefined ? undefined : tableOf(source))),
  )
  // A table that is gone, or that another table has replaced, has changed too.
  if (stored.sources.some(({ snapshot }, i) => today[i]?.snapshot !== snapshot)) return 'STALE'
  return stored.sources.every(({ snapshot }) => snapshot !== undefined) ? 'FRESH' : 'UNKNOWN'
}

/**
 * Whether a statement that began at a time may read the stored rows.
 * Source: Trino 476, StatementAnalyzer.isMaterializedViewSufficientlyFresh.
 * @param startMillis milliseconds since the epoch
 */
export function mayReadStored(
  { stored, gracePeriodMillis }: MaterializedView,
  freshness: Freshness,
  startMillis: number,
): boolean {
  if (!stored) return false
  if (freshness === 'FRESH' || gracePeriodMillis === undefined) return true
  return gracePeriodMillis !== 0 && startMillis - stored.refreshedAt <= gracePeriodMillis
}
