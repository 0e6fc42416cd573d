import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { follow, post, raw, run } from '../support/statement-client.ts'

const folder = temporaryFolder()
const dataDir = join(folder.path, 'data')
let server: QuipuProcess
let base: string

beforeAll(async () => {
  server = spawnQuipu(['start', '--data-dir', dataDir, '--port', '0', '--log-level', 'error'])
  base = await server.url
}, 240_000)

afterAll(async () => {
  server.signal('SIGTERM')
  await server.exit
  await folder.remove()
}, 240_000)

describe('EXPLAIN ANALYZE', () => {
  it('runs the statement and tells what each operator did', async () => {
    const { rows, columns, error } = await run(
      base,
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

  it('is told from EXPLAIN by what is known before: rows of tables, and what follows from them', async () => {
    const { rows } = await run(base, 'EXPLAIN SELECT * FROM nation CROSS JOIN region ORDER BY 1 LIMIT 10')
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
    const stats = await run(base, 'SHOW STATS FOR nation')
    expect(stats.rows.find(([column]) => column === null)?.[4]).toBe(25)
  })

  it('killed while it is measured, ends cleanly: rows of the statement are never its answer', async () => {
    const first = await post(
      base,
      'EXPLAIN ANALYZE SELECT count(*) FROM lineitem a, lineitem b, nation c WHERE a.comment > b.comment',
    )
    await waitUntil('its task is created', async () => (await raw(first.json.infoUri)).text.includes('"totalTasks":1'))
    process.kill(processesOf(dataDir).children[0]!, 'SIGKILL')
    const { rows, error } = await follow(first)
    expect(rows).toEqual([])
    expect(error).toMatchObject({ errorName: 'COORDINATOR_RESTARTED', errorType: 'INTERNAL_ERROR' })
  }, 240_000)
})
