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

/** Every place of the database where the text of a statement may be. */
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

describe('a forgotten query', () => {
  it('leaves the log and the read models, and all still verifies and rebuilds to the same rows', async () => {
    const runner = await bed.startRunner()
    expect(await runner.barrier(60_000)).toBe(true)
    // The text is the same in all: forget all to see that nothing is left of it.
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

  it('is the same whatever the batches were in which it was projected', async () => {
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

  it('is forgotten once, however often that is asked', async () => {
    expect(await forget()).toEqual({ kind: 'forgotten', events: 7 })
    expect(await forget()).toEqual({ kind: 'forgotten', events: 0 })
    const reported = await bed.query(`select 1 from quipu_log.events where data like '%DataForgotten%'`)
    expect(reported).toHaveLength(1)
  })

  it('has no result pages any more', async () => {
    const queryId = testQueryId(7)
    const pages = [{ token: 0, bytes: Buffer.from('[[1]]') }]
    await bed.log.append(queryId, 0, toLogEvents(queryLife(queryId)), pages)
    expect(await bed.log.readPage(queryId, 0)).toBeDefined()
    await forget(queryId)
    expect(await bed.log.readPage(queryId, 0)).toBeUndefined()
  })

  it('is not handed out from memory either', async () => {
    await forget()
    const { events } = await bed.log.read(beginning(), 1000)
    const own = events.filter((event) => event.stream === forgotten)
    expect(own).toHaveLength(7)
    for (const event of own) expect(event).toMatchObject({ data: null, stored: '', forgotten: true })
  })

  it('must have ended, and must be there', async () => {
    const open = testQueryId(8)
    await bed.log.append(open, 0, toLogEvents(queryLife(open, { end: 'open' })))
    expect(await forget(open)).toEqual({ kind: 'open' })
    expect(await forget(testQueryId(9))).toEqual({ kind: 'unknown' })
    expect(await audit()).toEqual([])
  })

  it('that was only said to be forgotten is found, and forgetting again mends it', async () => {
    await journal.record('DataForgotten', { stream: forgotten, sequences: [1, 2, 3, 4, 5, 6, 7], by: 'officer' })
    expect((await audit()).map(({ kind, stream }) => [kind, stream])).toEqual(
      Array.from({ length: 7 }, () => ['forgotten', forgotten]),
    )
    await forget()
    expect(await audit()).toEqual([])
  })
})

it('a command that writes a fact while no coordinator runs takes over no query', async () => {
  const open = testQueryId(8)
  await bed.log.append(open, 0, toLogEvents(queryLife(open, { end: 'open' })))
  const visitor = createPostgresEventLog(bed.config)
  await visitor.open()
  await visitor.claim({ address: '', version: 'test' })
  await visitor.close()
  expect(await audit()).toEqual([])
})

describe('what the database said of a forgotten event', () => {
  // The word is where only the database's own words have it, and where only the event has.
  const poisoned = (queryId: string, word: string) => {
    const events = toLogEvents(queryLife(queryId))
    return events.map((event) => {
      if (event.type !== 'QueryCreated') return event
      const { typed: _typed, ...untyped } = event
      return { ...untyped, data: { ...(event.data as object), sampled: `${word} is no boolean` } }
    })
  }

  it.each([1, 2000])('is forgotten with it, in batches of %s', async (maxBatch) => {
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

  it('is not kept either when both come in one batch', async () => {
    const queryId = testQueryId(9)
    await bed.log.append(queryId, 0, poisoned(queryId, 'Leporello'))
    const { events } = await bed.log.read(beginning(), 1000)
    await forget(queryId)
    const after = await bed.log.read(beginning(), 1000)
    // As a reader has it that was between the two.
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

it('what was said of a killed query goes with it, who ended it stays', async () => {
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
