import { createProjectionRunner } from '../dist/events/projection-runner.js'
import { createPostgresEventLog } from '../dist/events/postgres/postgres-event-log.js'
import { createReadModelsProjection } from '../dist/readmodels/projection.js'
import { systemClock } from '../dist/shared/clock.js'
import { queryEvents } from './query-events.mjs'

const TOGETHER = 64

/** The log grows while its projection follows. @returns how many events */
export async function append(connectionString, queries) {
  const log = createPostgresEventLog({ connectionString })
  await log.open()
  await log.claim({ address: 'bench', version: '0' })
  const runner = createProjectionRunner({
    log,
    projection: createReadModelsProjection(),
    database: { connectionString },
    clock: systemClock,
  })
  await runner.start()
  const started = performance.now()
  for (let done = 0; done < queries; done += TOGETHER) {
    const batch = Array.from({ length: Math.min(TOGETHER, queries - done) }, (_, index) => queryEvents(done + index))
    for (let step = 0; step < batch[0].events.length; step++)
      await Promise.all(batch.map(({ queryId, events }) => log.append(queryId, step, [events[step]])))
    // As a coordinator does that has too much to project: what is far behind is not grown further.
    if (done % (100 * TOGETHER) === 0) await runner.barrier(3_600_000)
  }
  await runner.barrier(3_600_000)
  const count = (await log.tip()).at[0].state.count
  const seconds = (performance.now() - started) / 1000
  console.log(`appended and projected: ${Math.round(count / seconds)} events a second, ${Math.round(seconds)} s`)
  await runner.stop()
  await log.close()
  return count
}
