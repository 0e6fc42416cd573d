import type { QueryRows } from '../events/projection.ts'
import type { ProjectedBatch, ProjectionRunner } from '../events/projection-runner.ts'
import { eventsBelow } from '../events/projection-store.ts'
import type { Meters } from '../telemetry/meters.ts'
import { rebuildProgress } from './rebuild.ts'

const PROJECTION = 'readmodels'

/** Counts a batch that was projected. */
export function countProjected(meters: Meters, batch: ProjectedBatch): void {
  meters.count('projectionEvents', { projection: PROJECTION }, batch.events)
  meters.observe('postgresQueryDuration', { operation: 'project' }, batch.milliseconds / 1000)
}

/** Reports before each scrape how far the read models are behind the log, and how much of a rebuild is done. */
export function observeProjection(
  projection: Pick<ProjectionRunner, 'deadLetters' | 'condition' | 'lag' | 'committed'>,
  read: QueryRows,
  meters: Meters,
): void {
  meters.onScrape(async () => {
    meters.set('deadLetters', { projection: PROJECTION }, projection.deadLetters)
    meters.set('projectionStopped', { projection: PROJECTION }, projection.condition.kind === 'stopped' ? 1 : 0)
    const lag = await projection.lag()
    meters.set('projectionLagEvents', { projection: PROJECTION }, lag.events)
    meters.set('projectionLag', { projection: PROJECTION }, lag.oldestMillis / 1000)
    const events = eventsBelow(projection.committed) + lag.events
    meters.set('projectionRebuildRatio', { projection: PROJECTION }, await rebuildProgress(read, events))
  })
}
