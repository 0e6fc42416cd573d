import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKafkaEventLog } from '../../src/events/kafka-beside-postgres.ts'
import { migrate } from '../../src/events/postgres/migrate.ts'
import { beginning, checkpointToJson } from '../../src/events/event-log.ts'
import { rebuildIfNeeded, rebuildReadModels } from '../../src/readmodels/rebuild.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { appendLives, queryLife, testQueryId } from '../support/query-life.ts'
import { openReadModelBed, tableHashes, type ReadModelBed } from '../support/read-models.ts'

describe.skipIf(!(await kafkaIsAvailable()))('A lost database beside a log in Kafka', () => {
  let bed: ReadModelBed
  beforeAll(async () => {
    bed = await openReadModelBed()
  })
  afterAll(() => bed.close())

  it('is filled again by a rebuild, and also by the running projection', { timeout: 240_000 }, async () => {
    const { brokers } = await sharedKafka()
    const topic = `lost-database-${randomBytes(4).toString('hex')}`
    const log = createKafkaEventLog({ brokers, topic, database: bed.config })
    try {
      await log.open()
      await log.claim({ address: 'http://127.0.0.1:8080', version: 'test' })
      const runner = await bed.startRunner({ log })
      await appendLives(
        log,
        Array.from({ length: 40 }, (_, index) => {
          const queryId = testQueryId(index)
          return { queryId, events: queryLife(queryId, { end: index % 3 === 0 ? 'failed' : 'finished' }) }
        }),
      )
      expect(await runner.barrier(60_000)).toBe(true)
      await runner.stop()
      const before = await tableHashes(bed)
      expect(before['queries']).toMatch(/^40 rows/)

      await bed.query('drop schema m cascade; drop schema quipu_log cascade')
      await migrate(bed.config)
      await rebuildReadModels({ log, database: bed.config, clock: systemClock })
      expect(await tableHashes(bed)).toEqual(before)

      await bed.query('drop schema m cascade; drop schema quipu_log cascade')
      await migrate(bed.config)
      // With few events the running projection is as fast as a rebuild.
      expect(await rebuildIfNeeded({ log, database: bed.config, clock: systemClock })).toBeUndefined()
      const again = await bed.startRunner({ log })
      expect(await again.barrier(60_000)).toBe(true)
      expect(await tableHashes(bed)).toEqual(before)
    } finally {
      await log.close()
    }
  })
})

it('`rebuildIfNeeded` rebuilds tables that an older projection filled', async () => {
  const bed = await openReadModelBed()
  try {
    const queryId = testQueryId(1)
    await appendLives(bed.log, [{ queryId, events: queryLife(queryId) }])
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    await runner.stop()
    const fresh = await tableHashes(bed)
    await bed.query(`update checkpoints set version = 0; update queries set state = 'of old'`)
    const rebuilt = await rebuildIfNeeded({ log: bed.log, database: bed.config, clock: systemClock })
    expect(rebuilt?.events).toBe(8)
    expect(await tableHashes(bed)).toEqual(fresh)
    expect(await rebuildIfNeeded({ log: bed.log, database: bed.config, clock: systemClock })).toBeUndefined()
    // The state after an interrupted call of quipu continue that was not repeated.
    await bed.query('update checkpoints set checkpoint = $1, events = 0', [checkpointToJson(beginning())])
    expect((await rebuildIfNeeded({ log: bed.log, database: bed.config, clock: systemClock }))?.events).toBe(8)
    expect(await tableHashes(bed)).toEqual(fresh)
  } finally {
    await bed.close()
  }
})
