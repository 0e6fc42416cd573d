import { describe, expect, it } from 'vitest'
import { processesOf, waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { follow, post, raw, run } from '../support/statement-client.ts'

const server = serverOfFile()

describe('EXPLAIN ANALYZE', () => {
  it('runs the statement and shows the output of each operator', async () => {
    const { rows, columns, error } = await run(
      server.url,
      'EXPLAIN ANALYZE SELECT n.name, count(*) FROM customer c JOIN nation n ON c.nationkey = n.nationkey GROUP BY 1',
    )
    expect(error).toBeUndefined()
    expect(columns).toMatchObject([{ name: 'Query Plan', type: 'varchar' }])
    expect(rows).toHaveLength(1)
    const text = String(rows[0]![0])
    expect(text).toContain('Fragment 1 [SINGLE]')
    expect(text).toMatch(/LookupJoin\[HASH_JOIN\]\n.*Output: 1500 rows\n +Estimates: \{rows: \d+ /)
    expect(text).toMatch(/TableScan\[TABLE_SCAN\]\n.*Output: 25 rows\n +Estimates: \{rows: 25 /)
  })

  it('EXPLAIN without ANALYZE estimates rows from the sizes of tables, products and limits', async () => {
    const { rows } = await run(server.url, 'EXPLAIN SELECT * FROM nation CROSS JOIN region ORDER BY 1 LIMIT 10')
    const estimates = String(rows[0]![0]).matchAll(
      /(\w+)(?:\[[^\n]*)?\n[^\n]*Layout[^\n]*\n[^\n]*rows: (\S+) \((\S+)\)/g,
    )
    const known = [...estimates].map(([, name, count, size]) => [name, count, size])
    expect(known).toEqual([
      ['Output', '10', '?'],
      ['TopN', '10', '?'],
      ['CrossJoin', '125', '?'],
      ['TableScan', '25', expect.stringMatching(/^[\d.]+k?B$/)],
      ['TableScan', '5', expect.stringMatching(/^[\d.]+k?B$/)],
    ])
    const stats = await run(server.url, 'SHOW STATS FOR nation')
    expect(stats.rows.find(([column]) => column === null)?.[4]).toBe(25)
  })

  it('returns COORDINATOR_RESTARTED and no rows if the coordinator is killed while the statement runs', async () => {
    const first = await post(
      server.url,
      'EXPLAIN ANALYZE SELECT count(*) FROM lineitem a, lineitem b, nation c WHERE a.comment > b.comment',
    )
    await waitUntil('its task is created', async () => (await raw(first.json.infoUri)).text.includes('"totalTasks":1'))
    process.kill(processesOf(server.data).children[0]!, 'SIGKILL')
    const { rows, error } = await follow(first)
    expect(rows).toEqual([])
    expect(error).toMatchObject({ errorName: 'COORDINATOR_RESTARTED', errorType: 'INTERNAL_ERROR' })
  }, 240_000)
})
