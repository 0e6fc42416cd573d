import type { Meters } from '../../../telemetry/meters.ts'
import type { QueryRegistry } from './query-registry.ts'

const OPEN_STATES = ['QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING'] as const

/** Counts open queries by state before each scrape. */
export function observeOpenQueries(registry: Pick<QueryRegistry, 'list'>, meters: Meters): void {
  meters.onScrape(() => {
    const counts = new Map<string, number>()
    for (const { aggregate } of registry.list()) {
      const { kind } = aggregate.state
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    }
    for (const state of OPEN_STATES) meters.set('queriesOpen', { state }, counts.get(state) ?? 0)
  })
}
