import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { forgetQuery } from '../../../src/coordinator/system/forget-query.ts'
import { createSystemJournal, type SystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import type { StoredEnvelope } from '../../../src/events/envelope.ts'
import { beginning, LogChanged, Unforgettable, type EventLog } from '../../../src/events/event-log.ts'
import { createKafkaEventLog, KafkaStoreBesidePostgres } from '../../../src/events/kafka-beside-postgres.ts'
import type { ProjectionRunner } from '../../../src/events/projection-runner.ts'
import { rebuildReadModels } from '../../../src/readmodels/rebuild.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { collect, me, readAll } from '../../support/event-log/log-fixture.ts'
import { openKafkaAuditBed, type KafkaAuditBed } from '../../support/kafka-audit-bed.ts'
import { kafkaIsAvailable } from '../../support/kafka.ts'
import { leaksOfTables } from '../../support/leaks.ts'
import { waitUntil } from '../../support/quipu-process.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'

const streams = [0, 1, 2, 3].map(testQueryId)
const victim = streams[1]!
const sequences = [1, 2, 3, 4, 5, 6, 7]
const available = await kafkaIsAvailable()

describe.runIf(available)('A log in Kafka with data that is encrypted by keys of the queries', () => {
  let bed: KafkaAuditBed
  let log: EventLog
  let journal: SystemJournal
  let runner: ProjectionRunner
  const file = 'writer.jsonl'
  const forget = (queryId = victim) => forgetQuery({ log, journal }, queryId, { by: 'officer' })
  const recordsOf = async (stream: string) => (await bed.recordsOf()).filter((record) => record.stream === stream)

  beforeAll(async () => {
    bed = await openKafkaAuditBed()
    log = createKafkaEventLog(bed.optionsOf(file))
    await log.open()
    await log.claim(me)
    runner = await bed.project(log)
    journal = createSystemJournal(log, systemClock)
    await appendLives(
      log,
      streams.map((queryId) => ({ queryId, events: queryLife(queryId) })),
    )
    expect(await runner.barrier(30_000)).toBe(true)
  })
  afterAll(async () => {
    await runner.stop()
    await log.close()
    await bed.close()
  })

  it('has no clear text in its records, and every reader can decrypt them', async () => {
    const records = await recordsOf(victim)
    expect(records).toHaveLength(7)
    for (const { text } of records) expect(text).not.toContain('alice')
    const names = new Set(records.map(({ text }) => (JSON.parse(text) as StoredEnvelope).enc.split(':')[1]))
    expect(names.size).toBe(1)
    const own = (await readAll(log)).filter((event) => event.stream === victim)
    expect(JSON.stringify(own[0]!.data)).toContain('alice')
    expect(own.map((event) => event.key)).toEqual(own.map(() => [...names][0]))
    expect(await collect(log.readStream(victim))).toEqual(own.map(({ typed: _, ...event }) => event))
    const other = createKafkaEventLog(bed.optionsOf('reader.jsonl'))
    await other.open()
    expect((await readAll(other)).filter((event) => event.stream === victim)).toEqual(
      own.map(({ typed: _, ...event }) => event),
    )
    await other.close()
    expect(statSync(join(bed.folder, file)).mode & 0o777).toBe(0o600)
  })

  it('forgets a query, and an audit and a rebuild still succeed', async () => {
    const before = await recordsOf(victim)
    expect(await forget()).toEqual({ kind: 'forgotten', events: 7 })
    expect(await forget()).toEqual({ kind: 'forgotten', events: 0 })
    // A late event of a forgotten query gets a new key.
    const data = { token: 0, rows: 1, bytes: 1 }
    await log.append(victim, 7, [{ type: 'ResultsDelivered', v: 1, time: new Date().toISOString(), data }])
    expect(await runner.barrier(30_000)).toBe(true)
    // The records are unchanged, but neither the writer nor a new process can decrypt them.
    expect((await recordsOf(victim)).slice(0, 7)).toEqual(before)
    const anew = createKafkaEventLog(bed.optionsOf('anew.jsonl'))
    await anew.open()
    for (const reader of [log, anew]) {
      const own = (await readAll(reader)).filter((event) => event.stream === victim)
      expect(own).toHaveLength(8)
      for (const event of own.slice(0, 7)) expect(event).toMatchObject({ data: null, stored: '', forgotten: true })
      expect(own[7]).toMatchObject({ data })
    }
    await anew.close()
    expect((await bed.pool.query('select query_id from queries order by 1')).rows).toEqual(
      streams.filter((one) => one !== victim).map((query_id) => ({ query_id })),
    )
    expect(await bed.audit({ compareWith: log })).toEqual([])
    await rebuildReadModels({ log, database: bed.connection, clock: systemClock })
    expect(await bed.audit({ compareWith: log })).toEqual([])
  })

  it('has no words of a forgotten query in its records, in tables and for readers, and no key for them', async () => {
    const words = /Rosalinde/g
    const reported = testQueryId(5)
    const life = queryLife(reported, {
      user: 'Rosalinde',
      source: 'Rosalinde',
      sql: `SELECT 'Rosalinde'`,
      end: 'failed',
    })
    await appendLives(log, [{ queryId: reported, events: life }])
    expect(await runner.barrier(30_000)).toBe(true)
    const key = (await collect(log.readStream(reported)))[0]!.key!
    const inReaders = async () => JSON.stringify((await readAll(log)).map(({ stored, data }) => [stored, data]))
    expect(await leaksOfTables(bed.connection.connectionString, words)).not.toEqual([])
    expect(await inReaders()).toMatch(words)
    expect(await forget(reported)).toMatchObject({ kind: 'forgotten' })
    expect(await runner.barrier(30_000)).toBe(true)
    expect(await leaksOfTables(bed.connection.connectionString, words)).toEqual([])
    expect(await inReaders()).not.toMatch(words)
    // The records stay in the topic, and never contained clear text.
    const texts = (await recordsOf(reported)).map(({ text }) => (JSON.parse(text) as StoredEnvelope).data)
    expect(texts).toHaveLength(life.length)
    for (const text of texts) expect(Buffer.from(text, 'base64').toString('latin1') + text).not.toMatch(words)
    // A new process with the remaining keys cannot read the query either.
    const anew = createKafkaEventLog(bed.optionsOf('later.jsonl'))
    await anew.open()
    const own = (await readAll(anew)).filter((event) => event.stream === reported)
    expect(own.map(({ key: name, forgotten, data }) => [name, forgotten, data])).toEqual(
      own.map(() => [key, true, null]),
    )
    await anew.close()
  })

  it('fails an audit if a key is gone without a record, or exists in spite of a record', async () => {
    const [said, silent] = [streams[2]!, streams[3]!]
    await journal.record('DataForgotten', { stream: said, sequences, by: 'officer' })
    const last = await collect(log.readStream(silent))
    const store = new KafkaStoreBesidePostgres(bed.optionsOf('other.jsonl'))
    await store.open()
    await store.cipher!.forget([last[0]!.key!])
    await store.close()
    const findings = await bed.audit()
    expect(findings.map(({ kind, stream, sequence }) => [kind, stream, sequence])).toEqual([
      ...sequences.map((sequence) => ['forgotten', silent, sequence]),
      ...sequences.map((sequence) => ['forgotten', said, sequence]),
    ])
    await forget(said)
    expect((await bed.audit()).map(({ stream }) => stream)).toEqual(sequences.map(() => silent))
  })

  it('restores its keys from the file after the database was lost', async () => {
    expect(readFileSync(join(bed.folder, file), 'utf8')).toContain(bed.topic)
    // The running log would restore the keys before the audit.
    await runner.stop()
    await log.close()
    await bed.pool.query('truncate quipu_log.data_keys, quipu_log.key_blocks')
    const findings = await bed.audit()
    expect(findings[0]).toMatchObject({ kind: 'key', stream: streams[0], sequence: 1 })
    expect(findings.some(({ stream }) => stream === victim)).toBe(true)
    const alone = createKafkaEventLog(bed.optionsOf('nothing.jsonl'))
    await alone.open()
    await expect(readAll(alone)).rejects.toThrow(LogChanged)
    await alone.close()
    const back = createKafkaEventLog(bed.optionsOf(file))
    await back.open()
    const events = await readAll(back)
    expect(events.find((event) => event.stream === streams[0])?.data).toBeTruthy()
    expect(events.find((event) => event.stream === victim)).toMatchObject({ forgotten: true })
    await waitUntil('the table has them again', async () => !(await bed.audit()).some(({ kind }) => kind === 'key'))
    await back.close()
  })
})

it.runIf(available)(
  '`forgetQuery` throws Unforgettable for a query that was written to Kafka without encryption',
  { timeout: 240_000 },
  async () => {
    const bed = await openKafkaAuditBed()
    try {
      const { dataKeys: _, ...old } = bed.optionsOf('old')
      const before = createKafkaEventLog(old)
      await before.open()
      await before.claim(me)
      await before.append(victim, 0, toLogEvents(queryLife(victim)))
      await before.close()
      const log = createKafkaEventLog(bed.optionsOf('new.jsonl'))
      await log.open()
      await log.claim(me)
      const runner = await bed.project(log)
      const journal = createSystemJournal(log, systemClock)
      await log.append(streams[0]!, 0, toLogEvents(queryLife(streams[0]!)))
      await expect(forgetQuery({ log, journal }, victim, { by: 'officer' })).rejects.toThrow(Unforgettable)
      expect(await forgetQuery({ log, journal }, streams[0]!, { by: 'officer' })).toMatchObject({ kind: 'forgotten' })
      const { events } = await log.read(beginning(), 1000)
      expect(JSON.stringify(events.find((event) => event.stream === victim)!.data)).toContain('alice')
      expect(events.filter(({ type }) => type === 'DataForgotten')).toHaveLength(1)
      expect(await bed.audit()).toEqual([])
      await runner.stop()
      await log.close()
    } finally {
      await bed.close()
    }
  },
)
