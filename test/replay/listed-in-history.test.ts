import fc from 'fast-check'
import { expect, it } from 'vitest'
import { listWhere, type AskInSql } from '../../src/replay/listed-in-history.ts'
import { REPLAY_SOURCE, type ReplayFilter } from '../../src/replay/replay-source.ts'
import { parseStatement } from '../../src/sql/syntax/parser.ts'

interface Row {
  readonly id: string
  readonly at: number
  readonly source: string | null
  readonly user: string
}

const BEGIN = Date.parse('2026-03-01T00:00:00.000Z')
const sqlTime = (at: number): string => `${new Date(at).toISOString().replace('T', ' ').replace('Z', '')} UTC`

/** A server with these rows. It adds each statement that it gets to `asked`. */
function serverWith(rows: readonly Row[], asked: string[]): AskInSql {
  return async function* (sql) {
    asked.push(sql)
    parseStatement(sql)
    const [until, since] = [...sql.matchAll(/TIMESTAMP '([^']+) UTC'/g)].map(([, time]) =>
      Date.parse(`${time!.replace(' ', 'T')}Z`),
    )
    const most = Number(/LIMIT (\d+)/.exec(sql)![1])
    const found = rows
      .filter(({ at }) => at <= until! && at >= since!)
      .sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1))
      .slice(0, most)
    for (const { id, at, source, user } of found) yield [id, sqlTime(at), source, user, null, 1.5]
  }
}

async function listed(rows: readonly Row[], filter: ReplayFilter, asked: string[] = []): Promise<string[]> {
  const ids: string[] = []
  for await (const { queryId } of listWhere(serverWith(rows, asked), `state = 'FAILED' OR user = 'it''s'`, filter))
    ids.push(queryId)
  return ids
}

it('`listWhere` lists every query once over many pages, however many queries have the same time', async () => {
  const number = (i: number): string => String(i).padStart(6, '0')
  for (const perInstant of [1, 7, 4_000, 25_000]) {
    const rows = Array.from({ length: 25_001 }, (_, i) => ({
      id: number(i),
      at: BEGIN + Math.floor(i / perInstant),
      source: null,
      user: 'ann',
    }))
    const asked: string[] = []
    expect(await listed(rows, {}, asked)).toEqual(rows.map(({ id }) => id).reverse())
    expect(asked.length).toBeGreaterThan(2)
    for (const sql of asked) expect(sql.replaceAll(/\s+/g, ' ')).toContain(`((state = 'FAILED') OR (user = 'it''s'))`)
  }
})

it('`listWhere` applies the rest of the filter, and leaves out queries that replays sent', async () => {
  const row = fc.record({
    at: fc.integer({ min: 0, max: 20 }).map((ms) => BEGIN + ms),
    source: fc.constantFrom(null, 'test', REPLAY_SOURCE),
    user: fc.constantFrom('ann', 'bob'),
  })
  const time = fc.integer({ min: 0, max: 20 }).map((ms) => new Date(BEGIN + ms).toISOString())
  const filter = fc.record(
    { since: time, until: time, user: fc.constant('bob'), source: fc.constant('test') },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(row, { maxLength: 30 }), filter, async (drawn, given) => {
      const rows = drawn.map((one, i) => ({ ...one, id: `q${i}` }))
      const wanted = rows.filter(
        ({ at, source, user }) =>
          (given.since === undefined || at >= Date.parse(given.since)) &&
          (given.until === undefined || at < Date.parse(given.until)) &&
          (given.user === undefined || user === given.user) &&
          (given.source === undefined ? source !== REPLAY_SOURCE : source === given.source),
      )
      expect((await listed(rows, given)).sort()).toEqual(wanted.map(({ id }) => id).sort())
    }),
    { numRuns: 60 },
  )
})

it('`listWhere` refuses a condition that is not a single SQL expression', async () => {
  const ask = serverWith([], [])
  await expect(listWhere(ask, '1 = 1) UNION SELECT 2, 3', {}).next()).rejects.toThrow(/mismatched input/)
})
