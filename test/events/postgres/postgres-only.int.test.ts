import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { dropResultPages, makeEventPartition, makePagePartitions } from '../../../src/events/postgres/partitions.ts'
import { audit, events, expectKept, me, until, within, type LogFixture } from '../../support/event-log/log-fixture.ts'
import { postgresAdapter } from '../../support/event-log/postgres-fixture.ts'

let fixture: LogFixture
let client: pg.Client

beforeEach(async () => {
  fixture = await postgresAdapter.fixture()
  client = new pg.Client(fixture.details['url'])
  await client.connect()
})
afterEach(async () => {
  await client.end()
  await fixture.close()
})

describe('The Postgres event log', () => {
  it('27 lets a new writer claim the log if the old one stopped between Execute and Sync', async () => {
    const old = await fixture.open()
    await old.claim(me)
    const acknowledged = [await old.append('s', 0, events(1))]
    const frozen = new pg.Client(fixture.details['url'])
    frozen.on('error', () => {})
    await frozen.connect()
    executeWithoutSync(
      frozen,
      `insert into quipu_log.events select position + 1, 'event', epoch, writer, number + 1, stream, sequence + 1, time, seen, data
       from quipu_log.events order by position desc limit 1`,
    )
    await until(async () => {
      const { rows } = await client.query(
        `select 1 from pg_locks where mode = 'RowExclusiveLock' and pid <> pg_backend_pid()`,
      )
      return rows.length > 0
    })
    const gone = new Promise((resolve) => frozen.once('end', resolve))
    const next = await fixture.open()
    expect(await within(4000, next.claim(me), 'the claim')).toBe(2)
    acknowledged.push(await next.append('s', 1, events(1)))
    await within(1000, gone, 'the end of the frozen session')
    expectKept(await audit(fixture), acknowledged)
  })

  it('creates event partitions ahead of need, each once', async () => {
    await makeEventPartition(client, 2n)
    await makeEventPartition(client, 2n)
    const { rows } = await client.query<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'quipu_log.events'::regclass order by 1`,
    )
    expect(rows.map((row) => row.name)).toEqual(['quipu_log.events_0', 'quipu_log.events_1', 'quipu_log.events_2'])
  })

  it('keeps result pages until they are dropped, also with a wrong clock', async () => {
    const log = await fixture.open()
    await log.claim(me)
    const old = Date.now() - 7_200_000
    await makePagePartitions(client, old)
    await makePagePartitions(client, Date.now())
    const earlier = await fixture.open({ now: () => old })
    await earlier.claim(me)
    const page = (text: string) => [{ token: 0, bytes: Buffer.from(text) }]
    await earlier.append('old', 0, events(1), page('old'))
    const later = await fixture.open({ now: () => Date.now() + 72_000_000 })
    await later.claim(me)
    await later.append('far', 0, events(1), page('far'))
    const now = await fixture.open()
    await now.claim(me)
    await now.append('new', 0, events(1), page('new'))
    expect(Buffer.from((await now.readPage('old', 0))!).toString()).toBe('old')
    expect(await dropResultPages(client, new Date(Date.now() - 3_600_000))).toBeGreaterThan(0)
    expect(await now.readPage('old', 0)).toBeUndefined()
    expect(Buffer.from((await now.readPage('new', 0))!).toString()).toBe('new')
    expect(Buffer.from((await now.readPage('far', 0))!).toString()).toBe('far')
  })

  it('drops result pages that are no longer needed automatically', async () => {
    const old = Date.now() - 7_200_000
    await makePagePartitions(client, old)
    const earlier = await fixture.open({ now: () => old })
    await earlier.claim(me)
    await earlier.append('old', 0, events(1), [{ token: 0, bytes: Buffer.from('old') }])
    const now = await fixture.open({ pagesNeededSince: () => new Date(Date.now() - 3_600_000) })
    expect(await now.readPage('old', 0)).toBeDefined()
    await now.claim(me)
    await until(async () => (await now.readPage('old', 0)) === undefined)
  })

  it('refuses a database without the events table', async () => {
    await client.query('drop table quipu_log.events')
    await expect(fixture.open()).rejects.toMatchObject({ name: 'MisconfiguredLog' })
  })
})

/** Acts as a writer that stops in the middle of a statement: the server waits for more, and keeps the row locked. */
function executeWithoutSync(client: pg.Client, text: string): void {
  const { connection } = client as unknown as {
    connection: { parse(query: object): void; bind(query: object): void; execute(query: object): void; flush(): void }
  }
  connection.parse({ text })
  connection.bind({})
  connection.execute({})
  connection.flush()
}
