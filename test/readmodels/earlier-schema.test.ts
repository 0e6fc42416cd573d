import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Finding } from '../../src/events/audit/finding.ts'
import { beginning, checkpointToJson } from '../../src/events/event-log.ts'
import { migrate, readMigrations } from '../../src/events/postgres/migrate.ts'
import { createPostgresEventLog } from '../../src/events/postgres/postgres-event-log.ts'
import { PostgresRecordStore } from '../../src/events/postgres/postgres-record-store.ts'
import { verifyLog } from '../../src/readmodels/audit/verify-log.ts'
import { READ_MODELS } from '../../src/readmodels/projection.ts'
import { rebuildIfNeeded } from '../../src/readmodels/rebuild.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { createDatabase, type TestDatabase } from '../support/postgres.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'
import { openReadModelBed, tableHashes, type ReadModelBed } from '../support/read-models.ts'

const MIGRATIONS = new URL('../../migrations/', import.meta.url).pathname
/** The newest migration of the last version without archives. */
const BEFORE = 15
let bed: ReadModelBed
let earlier: TestDatabase
let folder: string

beforeEach(async () => {
  bed = await openReadModelBed()
  earlier = await createDatabase()
  folder = await mkdtemp(join(tmpdir(), 'quipu-earlier-'))
  for (const name of await readdir(MIGRATIONS))
    if (Number(name.slice(0, 4)) <= BEFORE) await cp(join(MIGRATIONS, name), join(folder, name))
})
afterEach(async () => {
  await bed.close()
  await earlier.drop()
  await rm(folder, { recursive: true, force: true })
})

async function audit(config: pg.ClientConfig): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const store = new PostgresRecordStore(config)
  const log = createPostgresEventLog(config)
  try {
    const { partitions } = await store.open()
    await log.open()
    const onFinding = (finding: Finding): void => void findings.push(finding)
    await verifyLog({ store, partitions, database: config, compareWith: log, onFinding })
    return findings
  } finally {
    await Promise.all([store.close(), log.close()])
  }
}

it('A database of an earlier version is migrated, and the earlier version then refuses it', async () => {
  await appendLives(
    bed.log,
    [0, 1].map((n) => ({ queryId: testQueryId(n), events: queryLife(testQueryId(n)) })),
  )
  const rows = await bed.query('select * from quipu_log.events order by position')
  const config = { connectionString: earlier.url }
  expect((await migrate(config, folder)).at(-1)).toBe(BEFORE)
  const client = new pg.Client(earlier.url)
  await client.connect()
  await client.query('insert into quipu_log.events select * from json_populate_recordset(null::quipu_log.events, $1)', [
    JSON.stringify(rows),
  ])
  // The checkpoint of the earlier projection, in its old form.
  await client.query(
    `insert into m.checkpoints (name, version, revision, checkpoint, events, updated_at) values ($1, $2, 0, $4, $3, now())`,
    [READ_MODELS.name, READ_MODELS.version - 1, rows.length, checkpointToJson(beginning())],
  )
  const later = (await readMigrations()).map(({ number }) => number).filter((number) => number > BEFORE)
  expect(await migrate(config)).toEqual(later)
  const log = createPostgresEventLog(config)
  await log.open()
  expect(await rebuildIfNeeded({ log, database: config, clock: systemClock })).toMatchObject({ deadLetters: 0 })
  expect(await audit(config)).toEqual([])
  expect(await log.claim({ address: 'http://127.0.0.1:8080', version: 'test' })).toBe(2)
  await log.close()
  const kept = await client.query('select * from quipu_log.events where position < $1 order by position', [rows.length])
  expect(kept.rows).toEqual(rows)
  await expect(migrate(config, folder)).rejects.toThrow(
    /^The database has migration \w+\.sql, which this version of Quipu does not know$/,
  )
  await client.end()
})

it('The projection skips event types of a later version, and the log keeps them', async () => {
  const queryId = testQueryId(0)
  const life = toLogEvents(queryLife(queryId))
  const time = life.at(-1)!.time
  const data = { later: true }
  await bed.log.append(queryId, 0, [life[0]!, { type: 'QueryTeleported', v: 1, time, data }, ...life.slice(1)])
  await bed.log.append('system', 1, [{ type: 'SystemTeleported', v: 1, time, data }])
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  await runner.stop()
  expect(await bed.query('select type, error_message from dead_letters')).toEqual([])
  expect(await bed.query('select state from queries')).toEqual([{ state: 'FINISHED' }])
  expect(await bed.query('select type, v from query_events where data like $1 order by 1', ['%later%'])).toHaveLength(2)
  expect(Object.keys(await tableHashes(bed))).not.toEqual([])
  expect(await audit(bed.config)).toEqual([])
})
