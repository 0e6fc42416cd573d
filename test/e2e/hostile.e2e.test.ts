import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { serverOfFile } from '../support/server-of-file.ts'
import { post, raw, run } from '../support/statement-client.ts'

const server = serverOfFile()

const sides = Array.from({ length: 2000 }, (_, i) => `(a = ${i} AND b <> ${i})`).join(' OR ')
const joins = Array.from({ length: 100 }, (_, i) => `JOIN region r${i} ON n.regionkey = r${i}.regionkey`).join(' ')
const calls = `${'abs('.repeat(900)}a${')'.repeat(900)}`
const doubling = [
  'c0 AS (SELECT 1 AS a)',
  ...Array.from({ length: 22 }, (_, i) => `c${i + 1} AS (SELECT *, * FROM c${i})`),
].join(', ')

/** Statements in Trino's dialect that make DuckDB use too much memory or time while it plans or runs them. */
const hostile: readonly (readonly [string, string])[] = [
  ['LIKE with many wildcards', "SELECT lpad('', 60, 'a') LIKE '%a_%a_%a_%a_%a_%a_%b'"],
  [
    'LIKE with many wildcards from a column',
    "SELECT count(*) FROM nation WHERE lpad('', 60, 'a') LIKE concat('%a%a%a%a%a%a%', name)",
  ],
  ['levenshtein of long texts', "SELECT levenshtein_distance(lpad('', 60000, 'a'), lpad('', 60000, 'b'))"],
  ['a text of gigabytes', "SELECT length(lpad('', 2000000000, 'x'))"],
  [
    'values that grow while running',
    "SELECT max(length(lpad('x', 1000000 * (100 + cast(regionkey AS integer)), 'y'))) FROM nation",
  ],
  ['2,000 ORs of ANDs', `SELECT count(*) FROM (VALUES (1, 2)) AS t(a, b) WHERE ${sides}`],
  ['100 joins', `SELECT count(*) FROM nation n ${joins}`],
  ['900 nested calls', `SELECT ${calls} FROM (VALUES 1) AS t(a)`],
  ['22 CTEs doubling their columns', `WITH ${doubling} SELECT * FROM c22`],
  [
    'a sequence of dates without end',
    "SELECT cardinality(sequence(timestamp '1000-01-01', timestamp '9999-01-01', interval '1' second))",
  ],
  ['a join without a condition', 'SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.comment > b.comment'],
  ['10,000 parentheses', `SELECT ${'('.repeat(10_000)}1${')'.repeat(10_000)}`],
  ['5,000 additions', `SELECT ${Array.from({ length: 5000 }, () => '1').join(' + ')}`],
]

describe('Statements that use too much memory or time', () => {
  it.each(hostile)(
    '%s: the statement ends without an internal error or can be canceled, and other statements run on',
    async (_name, sql) => {
      const first = await post(server.url, sql)
      expect(first.status).toBe(200)
      const neighbours = Array.from({ length: 4 }, async (_, index) => {
        await sleep(index * 150)
        return (await run(server.url, `SELECT count(*) + ${index} FROM orders`)).rows
      })
      const tiny = (await run(server.url, 'SELECT 3 - 2')).rows
      expect(tiny).toEqual([[1]])
      expect(await Promise.all(neighbours)).toEqual([[[15_000]], [[15_001]], [[15_002]], [[15_003]]])
      // By now the statement has ended by itself, or it only takes long: then the test cancels it.
      let answer = first
      const until = Date.now() + 6000
      while (answer.json.nextUri && Date.now() < until) answer = await raw(answer.json.nextUri)
      if (answer.json.nextUri) {
        expect((await raw(answer.json.nextUri, { method: 'DELETE' })).status).toBe(204)
        answer = await raw(answer.json.nextUri)
      }
      const { error } = answer.json
      if (error) {
        expect(error.errorName).not.toBe('GENERIC_INTERNAL_ERROR')
        expect(error.message).not.toMatch(/DuckDB|duckdb|Binder|Catalog Error|Parser Error/)
      } else expect(answer.json.stats.state).toBe('FINISHED')
    },
    120_000,
  )

  it('the coordinator and the worker have not restarted', async () => {
    const metrics = (await raw(`${server.url}/metrics`)).text
    expect(metrics).not.toMatch(/quipu_process_restarts_total\{[^}]*\} [1-9]/)
  })
})
