import { describe, expect, it } from 'vitest'
import { analyze, analyzeQuery } from '../support/front-end.ts'

const nested = (times: number, wrap: (inner: string) => string, start: string): string =>
  Array.from({ length: times }).reduce<string>((inner) => wrap(inner), start)

describe('The properties of a rendered query', () => {
  it.each([
    ['SELECT id FROM orders WHERE total > 10', true],
    ['SELECT id, tag FROM orders CROSS JOIN UNNEST(tags) AS u (tag)', true],
    ['SELECT count(*) FROM orders', false],
    ['SELECT id FROM orders ORDER BY id', false],
    ['SELECT id FROM orders LIMIT 1', false],
    ['SELECT DISTINCT id FROM orders', false],
    ['SELECT row_number() OVER () FROM orders', false],
    ['SELECT id FROM orders WHERE id IN (SELECT id FROM customers)', false],
    ['SELECT o.id FROM orders o, customers c', false],
    ['SELECT id FROM orders UNION ALL SELECT id FROM orders', false],
    ['SELECT 1', false],
  ])('%s streams: %s', async (sql, streams) => {
    expect((await analyzeQuery(sql)).query.streams).toBe(streams)
  })

  it('`ordered` is set by an ORDER BY at the top, and not by one inside', async () => {
    expect((await analyzeQuery('SELECT id FROM orders ORDER BY 1')).query.ordered).toBe(true)
    expect((await analyzeQuery('SELECT * FROM (SELECT id FROM orders ORDER BY 1)')).query.ordered).toBe(false)
  })

  it('its scans read only the used columns, and none to count rows', async () => {
    const scans = async (sql: string): Promise<readonly (readonly string[])[]> =>
      (await analyzeQuery(sql)).query.scans.map((scan) => scan.columns)
    expect(await scans('SELECT name FROM (SELECT * FROM customers) WHERE id > 1')).toEqual([['id', 'name']])
    expect(await scans('SELECT count(*) FROM orders')).toEqual([[]])
    expect(await scans('SELECT id FROM (SELECT id, total FROM orders UNION ALL SELECT id, 1 FROM customers)')).toEqual([
      ['id'],
      ['id'],
    ])
  })

  it('`risky` is set by a function that makes large values from small ones', async () => {
    expect((await analyzeQuery(`SELECT repeat('x', 1000)`)).query.risky).toBe(true)
    expect((await analyzeQuery('SELECT id + 1 FROM orders')).query.risky).toBe(false)
  })
})

describe('The size of the rendered SQL', () => {
  it.each([
    ['integer division', (inner: string) => `(100 / ${inner})`],
    ['casts', (inner: string) => `cast(cast(${inner} AS varchar) AS bigint)`],
    ['NULLIF', (inner: string) => `nullif(${inner}, 1)`],
    ['CASE of a value', (inner: string) => `CASE ${inner} WHEN 1 THEN 2 ELSE 3 END`],
    ['subscripts', (inner: string) => `ARRAY[1, 2, 3][${inner}]`],
  ])('grows linearly with the nesting of %s', async (_name, wrap) => {
    const length = async (times: number): Promise<number> =>
      (await analyzeQuery(`SELECT ${nested(times, wrap, 'id')} FROM orders`)).query.sql.length
    const [ten, twenty] = [await length(10), await length(20)]
    expect(twenty).toBeLessThan(3 * ten)
  })

  it('is limited if columns of common tables double', async () => {
    const tables = Array.from({ length: 22 }, (_, i) =>
      i === 0 ? 't0 AS (SELECT 1 AS a)' : `t${i} AS (SELECT *, * FROM t${i - 1})`,
    )
    await expect(analyze(`WITH ${tables.join(', ')} SELECT count(*) FROM t21`)).rejects.toMatchObject({
      errorName: 'QUERY_EXCEEDED_COMPILER_LIMIT',
    })
  })
})

describe('LIKE in the rendered SQL', () => {
  it.each([
    [`'abc%'`, 'starts_with('],
    [`'%abc'`, 'ends_with('],
    [`'%abc%'`, 'contains('],
    [`'a_c'`, ' LIKE '],
    [`'%a_%b%'`, 'regexp_full_match('],
    [`'50!%%' ESCAPE '!'`, 'starts_with('],
    [`name`, 'regexp_full_match('],
  ])('LIKE %s becomes a call that takes linear time: %s', async (pattern, rendering) => {
    const { query } = await analyzeQuery(`SELECT id FROM customers WHERE name LIKE ${pattern}`)
    expect(query.sql).toContain(rendering)
  })
})
