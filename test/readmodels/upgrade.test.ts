import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createSystemJournal } from '../../src/coordinator/system/system-journal.ts'
import type { Finding } from '../../src/events/audit/finding.ts'
import { PostgresRecordStore } from '../../src/events/postgres/postgres-record-store.ts'
import { startUpgrading } from '../../src/processes/coordinator/upgrading.ts'
import { verifyLog } from '../../src/readmodels/audit/verify-log.ts'
import { adoptOlderTables, hasOlderTables } from '../../src/readmodels/older-tables.ts'
import { READ_MODELS } from '../../src/readmodels/projection.ts'
import { rebuildIfNeeded } from '../../src/readmodels/rebuild.ts'
import { systemClock } from '../../src/shared/clock.ts'
import type { Logger } from '../../src/telemetry/logger.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { appendLives, queryLife, testQueryId } from '../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'
import { FULL_TESTS } from '../support/full-tests.ts'

const QUERIES = FULL_TESTS ? 100_000 : 2_000
const AT_ONCE = 100

const logger = { info() {}, warn() {} } as unknown as Logger
let bed: ReadModelBed
beforeEach(async () => {
  bed = await openReadModelBed()
})
afterEach(() => bed.close())

async function append(from: number, to: number): Promise<void> {
  for (let first = from; first < to; first += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, to - first) }, (_, index) => first + index)
    await appendLives(
      bed.log,
      numbers.map((number) => ({ queryId: testQueryId(number), events: queryLife(testQueryId(number)) })),
    )
  }
}

/** Leaves the tables as an earlier version of the projection does: without the source and without the read columns. */
async function fillAsEarlier(version: number): Promise<void> {
  await append(0, QUERIES)
  const runner = await bed.startRunner()
  expect(await runner.barrier(600_000)).toBe(true)
  await runner.stop()
  await bed.query('update queries set source = $1', ['not known then'])
  await bed.query('delete from columns_read')
  await bed.query('update checkpoints set version = $1', [version])
}

async function countOf(where: string): Promise<number> {
  return Number((await bed.query<{ count: string }>(`select count(*) from queries where ${where}`))[0]!.count)
}

async function findings(): Promise<readonly Finding[]> {
  const found: Finding[] = []
  const store = new PostgresRecordStore(bed.config)
  try {
    const { partitions } = await store.open()
    const onFinding = (finding: Finding): void => void found.push(finding)
    const { tables } = await verifyLog({ store, partitions, database: bed.config, compareWith: bed.log, onFinding })
    expect(tables).toBeGreaterThan(0)
    return found
  } finally {
    await store.close()
  }
}

it(
  'Tables of an earlier version stay readable and get new queries, while tables of this version are built',
  { timeout: 3_600_000 },
  async () => {
    await fillAsEarlier(READ_MODELS.readable)
    await adoptOlderTables(bed.config)
    expect(await rebuildIfNeeded({ log: bed.log, database: bed.config, clock: systemClock })).toBeUndefined()
    const runner = await bed.startRunner()
    expect(await runner.barrier(60_000)).toBe(true)
    // Before the rebuild the tables have the old rows, and new rows are added.
    await append(QUERIES, QUERIES + 1)
    expect(await runner.barrier(60_000)).toBe(true)
    expect(await countOf('true')).toBe(QUERIES + 1)
    expect(await countOf(`source = 'not known then'`)).toBe(QUERIES)
    expect(await hasOlderTables(bed.config)).toBe(true)

    const upgrading = startUpgrading({
      log: bed.log,
      logsBefore: async () => [],
      connection: bed.config,
      journal: createSystemJournal(bed.log, systemClock),
      caughtUp: Promise.resolve(),
      clock: systemClock,
      logger,
    })
    let appended = QUERIES + 1
    // During the rebuild every read succeeds, and no query disappears.
    let seen = 0
    while (await hasOlderTables(bed.config)) {
      await append(appended, ++appended)
      expect(await runner.barrier(60_000)).toBe(true)
      const count = await countOf('true')
      expect(count).toBeGreaterThanOrEqual(Math.max(seen, appended))
      seen = count
      await nextLoopPass()
    }
    expect(await countOf(`source = 'not known then'`)).toBe(0)
    await append(appended, ++appended)
    expect(await runner.barrier(60_000)).toBe(true)
    expect(await countOf('true')).toBe(appended)
    await waitUntil('the log says so', async () => {
      await runner.barrier(60_000)
      return (await bed.query(`select from audit_log where kind = 'ProjectionRebuilt'`)).length === 1
    })
    upgrading.stop()
    await runner.stop()
    expect(await findings()).toEqual([])
  },
)

it('Tables that this version cannot read are rebuilt at once', async () => {
  await append(0, 1)
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  await runner.stop()
  await bed.query('update checkpoints set version = $1', [READ_MODELS.readable - 1])
  await adoptOlderTables(bed.config)
  expect(await rebuildIfNeeded({ log: bed.log, database: bed.config, clock: systemClock })).toMatchObject({
    deadLetters: 0,
  })
})

it('The upgrade mends queries with events that an older version could not read in between', async () => {
  await append(0, 2)
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  const whole = await bed.query('select * from queries order by query_id')
  const [refused, damaged] = [testQueryId(0), testQueryId(1)]
  await bed.query('update queries set ended_at = null, incomplete = true')
  await bed.query(
    `insert into dead_letters (projection, stream, sequence, kind, "position", "partition", type, v, "time", sqlstate, error_message, data)
     select $1, stream, sequence, 'failed', 0, 0, type, v, now(), case stream when $2 then '23514' end, 'unknown here', ''
     from query_events where type = 'QueryPlanned' and stream in ($2, $3)`,
    [READ_MODELS.name, damaged, refused],
  )
  const upgrading = startUpgrading({
    log: bed.log,
    logsBefore: async () => [],
    connection: bed.config,
    journal: createSystemJournal(bed.log, systemClock),
    caughtUp: Promise.resolve(),
    clock: systemClock,
    logger,
  })
  const open = (): Promise<readonly unknown[]> =>
    bed.query(`select stream from dead_letters where kind = 'failed' and resolved_at is null order by 1`)
  await waitUntil('one is mended', async () => (await open()).length < 2)
  expect(await open()).toEqual([{ stream: damaged }])
  expect(await bed.query('select * from queries where query_id = $1', [refused])).toEqual([whole[0]])
  await append(2, 3)
  expect(await runner.barrier(60_000)).toBe(true)
  upgrading.stop()
  await runner.stop()
})
