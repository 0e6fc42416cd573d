import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load-config.ts'
import { isPersonalEvent } from '../../src/coordinator/system/events.ts'
import { createSystemJournal, type SystemJournal } from '../../src/coordinator/system/system-journal.ts'
import { carryOut } from '../../src/erasure/erase.ts'
import type { ErasureResult } from '../../src/erasure/erasure-store.ts'
import type { Subject } from '../../src/erasure/subject.ts'
import type { StoredEnvelope } from '../../src/events/envelope.ts'
import type { EventLog } from '../../src/events/event-log.ts'
import { createKafkaEventLog, type KafkaEventLogOptions } from '../../src/events/kafka-beside-postgres.ts'
import { PublicTopic } from '../../src/events/kafka/public-topic.ts'
import type { ProjectionRunner } from '../../src/events/projection-runner.ts'
import { openErasing, type Erasing } from '../../src/processes/event-log/erasing.ts'
import { rebuildReadModels } from '../../src/readmodels/rebuild.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { me, readAll } from '../support/event-log/log-fixture.ts'
import { openKafkaAuditBed, type KafkaAuditBed } from '../support/kafka-audit-bed.ts'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { leaksOfTables } from '../support/leaks.ts'
import { appendLives, queryLife, testQueryId } from '../support/query-life.ts'

const VALUE = 'eva.lund@example.com'
const minute = '2026-11-27T10:00'
const loggedIn = (user: string) => ({ user, principal: user, method: 'password', groups: [], count: 1, minute })

describe.runIf(await kafkaIsAvailable())('An erasure from a log in Kafka', () => {
  let bed: KafkaAuditBed
  let log: EventLog
  let journal: SystemJournal
  let runner: ProjectionRunner
  let erasing: Erasing
  const publicTopic = `test-public-${randomBytes(6).toString('hex')}`

  beforeAll(async () => {
    bed = await openKafkaAuditBed()
    const options = bed.optionsOf('writer.jsonl')
    const brokers = (await sharedKafka()).brokers.join()
    // An earlier version wrote the events of the system in clear.
    const earlier = createKafkaEventLog(options)
    await earlier.open()
    await earlier.claim(me)
    await createSystemJournal(earlier, systemClock).record('LoggedIn', loggedIn('eva'))
    await earlier.close()
    log = createKafkaEventLog({
      ...options,
      dataKeys: { ...options.dataKeys!, encryptsAlone: isPersonalEvent },
    } satisfies KafkaEventLogOptions)
    await log.open()
    await log.claim(me)
    runner = await bed.project(log)
    journal = createSystemJournal(log, systemClock)
    const settings = ['--data-dir', join(bed.folder, 'data'), '--kafka-brokers', brokers, '--kafka-topic', bed.topic]
    const published = ['--public-kafka-brokers', brokers, '--public-kafka-topic', publicTopic]
    const config = loadConfig([...settings, ...published], {})
    erasing = openErasing({ config, secret: 'a secret of the tests', connection: bed.connection, log })
  })
  afterAll(async () => {
    await erasing.close()
    await runner.stop()
    await log.close()
    await bed.close()
  })

  async function projected(): Promise<void> {
    expect(await runner.barrier(60_000)).toBe(true)
  }

  async function erase(subject: Subject): Promise<ErasureResult> {
    const id = crypto.randomUUID()
    await erasing.store.add(id, { subject, mentions: false }, { by: 'officer' })
    return carryOut({ ...erasing.deps({ journal, projected }), waitMs: 0 }, id)
  }

  it('deletes the keys of queries and of single events; the audit finds no fault, and a rebuild brings nothing back', async () => {
    await appendLives(log, [
      { queryId: testQueryId(0), events: queryLife(testQueryId(0), { sql: `SELECT '${VALUE}'` }) },
      { queryId: testQueryId(1), events: queryLife(testQueryId(1), { sql: `SELECT 'zerlina'` }) },
    ])
    await journal.record('AccessDenied', { user: 'bob', action: 'view', object: VALUE, count: 1, minute })
    await journal.record('AccessDenied', { user: 'bob', action: 'view', object: 'zerlina', count: 1, minute })
    await projected()
    const texts = (await bed.recordsOf()).map(({ text }) => text)
    expect(texts.filter((text) => text.includes('eva.lund') || text.includes('zerlina'))).toEqual([])
    expect(await leaksOfTables(bed.connection.connectionString, /eva\.lund/g)).not.toEqual([])

    expect(await erase({ value: VALUE })).toMatchObject({ queries: 1, records: 1, waiting: [], remains: [] })
    expect(await leaksOfTables(bed.connection.connectionString, /eva\.lund/g)).toEqual([])
    const refusals = (await readAll(log)).filter(({ type }) => type === 'AccessDenied')
    expect(
      refusals.map(({ forgotten, data }) => [forgotten ?? false, (data as { object?: string } | null)?.object]),
    ).toEqual([
      [true, undefined],
      [false, 'zerlina'],
    ])
    expect(await bed.audit({ compareWith: log })).toEqual([])
    await rebuildReadModels({ log, database: bed.connection, clock: systemClock })
    expect(await leaksOfTables(bed.connection.connectionString, /eva\.lund/g)).toEqual([])
    expect((await bed.pool.query('select query_id from queries')).rows).toEqual([{ query_id: testQueryId(1) }])
  })

  it('says that an earlier version wrote a record in clear, and until when published messages stay', async () => {
    await journal.record('LoggedIn', loggedIn('eva'))
    await journal.record('LoggedIn', loggedIn('bob'))
    await appendLives(log, [{ queryId: testQueryId(2), events: queryLife(testQueryId(2), { user: 'eva' }) }])
    await projected()
    const topic = new PublicTopic({
      brokers: (await sharedKafka()).brokers,
      topic: publicTopic,
      retentionMs: 86_400_000,
    })
    const sent = Date.now()
    const messages = ['eva', 'bob', 'eva'].map((user) => ({ key: user, text: JSON.stringify({ user }) }))
    expect(await topic.deliver(messages)).toMatchObject({ taken: 3 })
    await topic.close()

    const result = await erase({ user: 'eva' })
    expect(result).toMatchObject({ queries: 1, records: 1, waiting: [] })
    expect(result.remains).toMatchObject([
      { location: 'event log, unencrypted records', found: 1 },
      { location: 'table m.audit_log', found: 1 },
      { location: 'table m.query_events', found: 1 },
      { location: `topic ${publicTopic}`, found: 2 },
    ])
    const { until } = result.remains.at(-1)!
    expect(Date.parse(until!)).toBeGreaterThanOrEqual(sent + 86_400_000)
    const envelopes = (await bed.recordsOf()).flatMap(({ text, header }) =>
      header?.kind === 'event' ? [JSON.parse(text) as StoredEnvelope] : [],
    )
    expect(envelopes.filter(({ type, enc }) => type === 'LoggedIn' && !enc.startsWith('aes'))).toHaveLength(1)
    expect(await bed.audit({ compareWith: log })).toEqual([])
  })
})
