import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { forgetQuery } from '../../../src/coordinator/system/forget-query.ts'
import { createSystemJournal, type SystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import { beginning } from '../../../src/events/event-log.ts'
import type { Finding } from '../../../src/events/audit/finding.ts'
import { createPostgresEventLog } from '../../../src/events/postgres/postgres-event-log.ts'
import { PostgresRecordStore } from '../../../src/events/postgres/postgres-record-store.ts'
import { verifyLog } from '../../../src/readmodels/audit/verify-log.ts'
import { createReadModelsProjection } from '../../../src/readmodels/projection.ts'
import { rebuildReadModels } from '../../../src/readmodels/rebuild.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { openReadModelBed, tableHashes, type ReadModelBed } from '../../support/read-models.ts'

let bed: ReadModelBed
let journal: SystemJournal
const streams = [0, 1, 2].map(testQueryId)
const forgotten = streams[1]!

beforeEach(async () => {
  bed = await openReadModelBed()
  journal = createSystemJournal(bed.log, systemClock)
  for (const queryId of streams) await appendLives(bed.log, [{ queryId, events: queryLife(queryId) }])
})
afterEach(() => bed.close())

const forget = (queryId = forgotten) => forgetQuery({ log: bed.log, journal }, queryId, { by: 'officer' })

async function audit(): Promise<Finding[]> {
  const store = new PostgresRecordStore(bed.config)
  const findings: Finding[] = []
  try {
    const { partitions } = await store.open()
    const onFinding = (finding: Finding): void => void findings.push(finding)
    await verifyLog({ store, partitions, database: bed.config, compareWith: bed.log, onFinding })
    return findings
  } finally {
    await store.close()
  }
}

/** Returns the tables of the database that contain the text. */
async function tracesOf(text: string): Promise<string[]> {
  const tables = await bed.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('m', 'quipu_log')`,
  )
  const found = []
  for (const { name } of tables) {
    const rows = await bed.query(`select 1 from ${name} t where t::text like $1 limit 1`, [`%${text}%`])
    if (rows.length > 0) found.push(name)
  }
  return found
}

describe('A forgotten query', () => {
  it('is removed from the log and the read models, and an audit and a rebuild still succeed', async () => {
    const runner = await bed.startRunner()
    expect(await runner.barrier(60_000)).toBe(true)
    // All queries have the same text, so the test forgets all of them to check that no text is left.
    expect(await tracesOf('alice')).not.toEqual([])
    for (const queryId of streams) expect(await forget(queryId)).toEqual({ kind: 'forgotten', events: 7 })
    expect(await runner.barrier(60_000)).toBe(true)
    await runner.stop()
    expect(await tracesOf('alice')).toEqual([])
    expect(await bed.query('select count(*) from queries')).toEqual([{ count: '0' }])
    expect(await audit()).toEqual([])
    const before = await tableHashes(bed)
    expect(before['query_events']).toMatch(/^25 rows/)
    await rebuildReadModels({ log: bed.log, database: bed.config, clock: systemClock })
    expect(await tableHashes(bed)).toEqual(before)
  })

  it('has the same rows for any batch size of the projection', async () => {
    await forget()
    const [end] = toLogEvents(queryLife(forgotten)).slice(-1)
    await bed.log.append(forgotten, 7, [
      { ...end!, type: 'ResultsDelivered', v: 1, data: { token: 0, rows: 1, bytes: 1 } },
    ])
    const hashes = []
    for (const maxBatch of [1, 3, 2000]) {
      await bed.query(`truncate queries, stages, tasks, operators, table_access, query_events, audit_log, checkpoints`)
      const runner = await bed.startRunner({ maxBatch })
      expect(await runner.barrier(60_000)).toBe(true)
      await runner.stop()
      hashes.push(await tableHashes(bed))
      expect(await bed.query('select query_id from queries order by 1')).toEqual(
        streams.filter((one) => one !== forgotten).map((query_id) => ({ query_id })),
      )
    }
    expect(hashes[1]).toEqual(hashes[0])
    expect(hashes[2]).toEqual(hashes[0])
  })

  it('is recorded as forgotten only once after repeated requests', async () => {
    expect(await forget()).toEqual({ kind: 'forgotten', events: 7 })
    expect(await forget()).toEqual({ kind: 'forgotten', events: 0 })
    const reported = await bed.query(`select 1 from quipu_log.events where data like '%DataForgotten%'`)
    expect(reported).toHaveLength(1)
  })

  it('has no result pages', async () => {
    const queryId = testQueryId(7)
    const pages = [{ token: 0, bytes: Buffer.from('[[1]]') }]
    await bed.log.append(queryId, 0, toLogEvents(queryLife(queryId)), pages)
    expect(await bed.log.readPage(queryId, 0)).toBeDefined()
    await forget(queryId)
    expect(await bed.log.readPage(queryId, 0)).toBeUndefined()
  })

  it('is not returned from the memory of the log', async () => {
    await forget()
    const { events } = await bed.log.read(beginning(), 1000)
    const own = events.filter((event) => event.stream === forgotten)
    expect(own).toHaveLength(7)
    for (const event of own) expect(event).toMatchObject({ data: null, stored: '', forgotten: true })
  })

  it('cannot be an open or an unknown query', async () => {
    const open = testQueryId(8)
    await bed.log.append(open, 0, toLogEvents(queryLife(open, { end: 'open' })))
    expect(await forget(open)).toEqual({ kind: 'open' })
    expect(await forget(testQueryId(9))).toEqual({ kind: 'unknown' })
    expect(await audit()).toEqual([])
  })

  it('is reported by an audit if it is only recorded as forgotten, until it is forgotten again', async () => {
    await journal.record('DataForgotten', { stream: forgotten, sequences: [1, 2, 3, 4, 5, 6, 7], by: 'officer' })
    expect((await audit()).map(({ kind, stream }) => [kind, stream])).toEqual(
      Array.from({ length: 7 }, () => ['forgotten', forgotten]),
    )
    await forget()
    expect(await audit()).toEqual([])
  })
})

it('An audit finds no fault in an open query after a command claimed the log without a coordinator', async () => {
  const open = testQueryId(8)
  await bed.log.append(open, 0, toLogEvents(queryLife(open, { end: 'open' })))
  const visitor = createPostgresEventLog(bed.config)
  await visitor.open()
  await visitor.claim({ address: '', version: 'test' })
  await visitor.close()
  expect(await audit()).toEqual([])
})

describe('The database error of a forgotten event', () => {
  // The word is both in the error message of the database and in the event.
  const poisoned = (queryId: string, word: string) => {
    const events = toLogEvents(queryLife(queryId))
    return events.map((event) => {
      if (event.type !== 'QueryCreated') return event
      const { typed: _typed, ...untyped } = event
      return { ...untyped, data: { ...(event.data as object), sampled: `${word} is no boolean` } }
    })
  }

  it.each([1, 2000])('is removed together with the event, in batches of %s', async (maxBatch) => {
    const queryId = testQueryId(9)
    await bed.log.append(queryId, 0, poisoned(queryId, 'Leporello'))
    const runner = await bed.startRunner({ maxBatch })
    expect(await runner.barrier(60_000)).toBe(true)
    await bed.query(`update dead_letters set error_message = 'invalid input syntax: "Leporello"' where kind = 'failed'`)
    expect(await tracesOf('Leporello')).toContain('m.dead_letters')
    expect(await forget(queryId)).toMatchObject({ kind: 'forgotten' })
    expect(await runner.barrier(60_000)).toBe(true)
    await runner.stop()
    expect(await tracesOf('Leporello')).toEqual([])
  })

  it('is not stored if the event and its forgetting are in one batch', async () => {
    const queryId = testQueryId(9)
    await bed.log.append(queryId, 0, poisoned(queryId, 'Leporello'))
    const { events } = await bed.log.read(beginning(), 1000)
    await forget(queryId)
    const after = await bed.log.read(beginning(), 1000)
    // The batch of a reader that read the events before they were forgotten.
    const batch = [...events, ...after.events.slice(events.length)]
    const folded = await createReadModelsProjection().fold(batch, {
      query: async () => [],
      parked: new Set(),
      refused: new Map(),
    })
    const letters = folded.dead.filter(({ event }) => event.stream === queryId)
    expect(letters.length).toBeGreaterThan(0)
    for (const letter of letters) {
      expect(letter.event).toMatchObject({ stored: '', data: null, forgotten: true })
      if (letter.kind === 'failed') expect(letter.error).toBeUndefined()
    }
  })
})

it('Forgetting a killed query removes the message of the kill, but keeps the user who killed it', async () => {
  await journal.record('QueryKilled', { queryId: forgotten, by: 'don', how: 'killed', message: 'because of Zerlina' })
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  expect(await bed.query(`select 1 from audit_log where details::text like '%Zerlina%'`)).toHaveLength(1)
  await forget()
  expect(await runner.barrier(60_000)).toBe(true)
  await runner.stop()
  expect(await bed.query(`select 1 from audit_log where audit_log::text like '%Zerlina%'`)).toEqual([])
  expect(await bed.query(`select user_name from audit_log where kind = 'QueryKilled'`)).toEqual([{ user_name: 'don' }])
})
