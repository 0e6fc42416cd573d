import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { killAll, processesOf, waitUntil } from '../support/quipu-process.ts'
import { catalogsOf } from '../support/server-catalogs.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { follow, post, raw, run, trinoHeaders, type RawAnswer } from '../support/statement-client.ts'

const server = serverOfFile('error', (own) => {
  mkdirSync(join(own.folder, 'lake', 's', 'many'), { recursive: true })
  return {
    ...catalogsOf(own, {
      tpch: { connector: 'tpch' },
      memory: { connector: 'memory' },
      lake: { connector: 'lake', location: join(own.folder, 'lake') },
    }),
    // Limits that a test can reach: a plan of 64 kB, 4 MB of statements for a user, 8 MB for an address.
    QUIPU_TASK_BODY_BYTES: '64kB',
    QUIPU_USER_STATEMENT_BYTES: '4MB',
    QUIPU_ADDRESS_STATEMENT_BYTES: '8MB',
    QUIPU_FIRST_FOLLOW_MS: '1h',
  }
})
const table = join(server.folder, 'lake', 's', 'many')
const MB = 1024 * 1024
let base: string

beforeAll(() => {
  base = server.url
})

const as = (user: string) => ({ ...trinoHeaders, 'x-trino-user': user })

async function restart(): Promise<void> {
  const [coordinator] = processesOf(server.data).children
  killAll([coordinator!])
  await waitUntil('another coordinator is there', () => processesOf(server.data).children[0] !== coordinator)
}

/** The plan of a query, as its event has it. */
async function planOf(id: string): Promise<string> {
  const events = (await (await fetch(`${base}/v1/query/${id}/events`)).json()) as { type: string; data: unknown }[]
  return JSON.stringify(events.find(({ type }) => type.startsWith('quipu.query.planned'))!.data)
}

describe('A statement over system tables', () => {
  it('leaves events of the same size, however often it runs', async () => {
    const ids: string[] = []
    for (let round = 0; round < 100; round++) {
      const ran = await run(base, 'SELECT count(*), max(length(data)) FROM system.runtime.events')
      expect(ran.error).toBeUndefined()
      expect(Number(ran.rows[0]![0])).toBeGreaterThan(round)
      ids.push(ran.id)
    }
    const [first, last] = [await planOf(ids[0]!), await planOf(ids.at(-1)!)]
    expect(last.length).toBeLessThan(first.length + 100)
  })

  it.each([
    ['alone', "SELECT count(*) FROM system.runtime.queries WHERE query LIKE '%marked-7%'"],
    ['information_schema', "SELECT count(*) FROM tpch.information_schema.columns WHERE table_name <> 'marked-7'"],
    ['jdbc', "SELECT count(*) FROM system.jdbc.columns WHERE table_name <> 'marked-7'"],
    [
      'beside a table that a worker reads',
      `SELECT count(*) FROM tpch.tiny.nation n JOIN system.runtime.queries q ON q.query LIKE '%marked-7%' AND n.nationkey < 1`,
    ],
    [
      'information_schema beside a table that a worker reads',
      'SELECT count(*) FROM nation, tpch.information_schema.tables',
    ],
  ])('has no rows of system tables in its plan: %s', async (_name, sql) => {
    await run(base, "SELECT 'marked-7 and more'")
    const ran = await run(base, sql)
    expect(ran.error).toBeUndefined()
    expect(Number(ran.rows[0]![0])).toBeGreaterThan(0)
    const plan = await planOf(ran.id)
    expect(plan).not.toContain('marked-7 and more')
    // Rows of a split, that is; `rows` in the lineage names the sources that decide about rows.
    expect(plan).not.toMatch(/"rows":\[(?!\{"source")/)
    expect(plan.length).toBeLessThan(8000)
  })

  it('can write rows of system tables to a table', async () => {
    const written = await run(
      base,
      'CREATE TABLE memory.default.seen AS SELECT query_id, state FROM system.runtime.queries',
    )
    expect(written.error).toBeUndefined()
    const [[count]] = (await run(base, 'SELECT count(*) FROM memory.default.seen')).rows as [[number]]
    expect(count).toBeGreaterThan(0)
  })
})

describe('A plan that is too large', () => {
  it('fails with an error that names the number of files', async () => {
    const first = join(table, '0.csv')
    writeFileSync(first, 'a,b\n1,2\n')
    for (let file = 1; file < 250; file++) copyFileSync(first, join(table, `${'x'.repeat(200)}${file}.csv`))
    const ran = await run(base, 'SELECT sum(a) FROM lake.s.many')
    expect(ran.error).toMatchObject({ errorName: 'EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY' })
    expect(ran.error!.message).toContain('250 files')
  })

  it('fails with a compiler limit for a long statement, and other statements run on', async () => {
    const words = Array.from({ length: 20_000 }, (_, index) => `'word ${index}'`).join(', ')
    const ran = await run(base, `SELECT count(*) FROM nation WHERE name IN (${words})`)
    expect(ran.error).toMatchObject({ errorName: 'QUERY_EXCEEDED_COMPILER_LIMIT' })
    expect((await run(base, 'SELECT 1')).rows).toEqual([[1]])
  })
})

describe('Statements that no client follows', () => {
  /** A statement that has no effect before its first GET. */
  const open = () => `CREATE TABLE memory.default.later_${made++} AS SELECT 1 AS one /* ${'x'.repeat(0.9 * MB)} */`
  let made = 0
  let accepted: RawAnswer[] = []

  async function fill(user: string): Promise<{ accepted: RawAnswer[]; refused: RawAnswer }> {
    const taken: RawAnswer[] = []
    for (;;) {
      const answer = await post(base, open(), as(user))
      if (answer.status !== 200) return { accepted: taken, refused: answer }
      taken.push(answer)
      expect(taken.length).toBeLessThan(20)
    }
  }

  it('get 429 above the memory limit of their user, and the client can read the reason and try again', async () => {
    const filled = await fill('eve')
    accepted = filled.accepted
    expect(accepted).toHaveLength(4)
    expect(filled.refused).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    expect(filled.refused.text).toContain('The open statements of this user take')
    const unannounced = await raw(`${base}/v1/statement`, {
      method: 'POST',
      body: open(),
      chunked: true,
      headers: { ...as('eve'), accept: 'application/json' },
    })
    expect(unannounced.status).toBe(429)
    expect(unannounced.json).toMatchObject({ status: 429, detail: expect.stringContaining('this user') })
    // Other users have room, and so has a small statement.
    expect((await run(base, 'SELECT 1', as('ana'))).rows).toEqual([[1]])
    expect((await run(base, 'SELECT 1', as('eve'))).rows).toEqual([[1]])
  })

  it('survive a kill of the coordinator, and still count against the limit', async () => {
    await restart()
    expect((await run(base, 'SELECT 1', as('ana'))).rows).toEqual([[1]])
    expect((await follow(accepted[0]!)).error).toBeUndefined()
    // The statement that has ended made room for one.
    const again = await fill('eve')
    expect(again.accepted).toHaveLength(1)
    accepted.push(...again.accepted)
  })

  it('free their memory when they are canceled', async () => {
    for (const answer of accepted.slice(1))
      expect((await raw(answer.json.nextUri!, { method: 'DELETE' })).status).toBe(204)
    for (let round = 0; round < 20; round++) {
      const answer = await post(base, open(), as('eve'))
      expect(answer.status).toBe(200)
      expect((await raw(answer.json.nextUri!, { method: 'DELETE' })).status).toBe(204)
    }
    expect((await run(base, 'SELECT 1', as('eve'))).rows).toEqual([[1]])
    expect(server.process.stderr()).not.toContain('ended with')
  })
})
