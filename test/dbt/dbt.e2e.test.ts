import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FULL_TESTS } from '../support/full-tests.ts'
import { withLake } from '../support/lake-catalog.ts'
import { pythonDataTools } from '../support/real-clients.ts'
import { repository } from '../support/repository.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { run, trinoHeaders } from '../support/statement-client.ts'

const server = serverOfFile('error', withLake)
const python = await pythonDataTools()
const source = join(repository, 'test', 'dbt')

interface CatalogJson {
  readonly nodes: Readonly<
    Record<string, { readonly metadata: Described; readonly columns: Readonly<Record<string, Described>> }>
  >
}

interface Described {
  readonly type: string
  readonly comment: string | null
}

/** The rows of queries about the tables after two builds. The second one repeats two orders, and adds one. */
const expected: Readonly<Record<string, readonly unknown[]>> = {
  'SELECT max(build), count(*) FROM builds': [[2, 2]],
  'SELECT id, amount, build FROM orders_merged ORDER BY id': [
    [10, '14.50', 2],
    [11, '0.00', 1],
    [12, '100001.99', 2],
    [13, '-5.25', 1],
    [15, '7.00', 2],
  ],
  'SELECT id, amount, build FROM orders_merged EXCEPT SELECT id, amount, build FROM orders_replaced': [],
  'SELECT id, amount, build FROM orders_merged EXCEPT SELECT id, amount, build FROM orders_of_days': [],
  'SELECT build, count(*) FROM orders_appended GROUP BY 1 ORDER BY 1': [
    [1, 4],
    [2, 3],
  ],
  'SELECT * FROM orders_wider ORDER BY id': [
    [10, 'a longer text', 2],
    [11, 'short', null],
    [12, 'a longer text', 2],
    [13, 'short', null],
    [15, 'a longer text', 2],
  ],
  'SELECT id, count(*), count_if(dbt_valid_to IS NULL) FROM batches_checked GROUP BY 1 ORDER BY 1': [
    [10, 2, 1],
    [11, 1, 0],
    [12, 2, 1],
    [13, 1, 0],
    [15, 1, 1],
  ],
  "SELECT id, count(*), count_if(dbt_is_deleted = 'True') FROM batches_stamped GROUP BY 1 ORDER BY 1": [
    [10, 2, 0],
    [11, 2, 1],
    [12, 2, 0],
    [13, 2, 1],
    [15, 1, 0],
  ],
  'SELECT * FROM customer_orders ORDER BY customer_id': [
    [1, 'Åse', 2, '12.50'],
    [2, "O'Brien, Pat", 1, '99999.99'],
    [3, '小林', 1, '-5.25'],
    [4, 'Zoë', 0, '0.00'],
  ],
  'SELECT * FROM totals': [[2, 3, '100023.49']],
  'SELECT name FROM nations WHERE nationkey = 6': [['FRANCE']],
}

/** Each target has its own copy of the project, so that the targets can be built at the same time. */
describe.runIf(python)('dbt-core with dbt-trino', () => {
  it.concurrent.each(FULL_TESTS ? ['memory', 'lake'] : ['lake'])(
    'builds, builds again, and documents a project of all materializations in %s',
    { timeout: 600_000 },
    async (target) => {
      const project = join(server.folder, target === 'lake' ? 'dbt-lake' : 'dbt-memory')
      cpSync(join(source, 'project'), project, { recursive: true })
      const { hostname, port } = new URL(server.url)
      const { stdout, stderr } = await python!(
        readFileSync(join(source, 'build.py'), 'utf8'),
        [project, target, 'build', 'build', 'docs generate'],
        { QUIPU_HOST: hostname, QUIPU_PORT: port },
      )
      expect(stdout, stderr).toMatch(/^build: done, 28 steps\nbuild: done, 28 steps\ndocs generate: done, 0 steps\n$/)

      const headers = { ...trinoHeaders, 'x-trino-catalog': target, 'x-trino-schema': 'proof' }
      for (const [sql, rows] of Object.entries(expected)) {
        const { rows: found, error } = await run(server.url, sql, headers)
        expect(error ?? found, sql).toEqual(rows)
      }
      const { nodes } = JSON.parse(readFileSync(join(project, 'target', 'catalog.json'), 'utf8')) as CatalogJson
      const described = nodes['model.proof.customer_orders']!
      expect(described.metadata.comment).toBe('One row per customer.\nCustomers without orders too.\n')
      expect(described.columns['customer_id']).toMatchObject({ type: 'integer', comment: 'The customer' })
      expect(nodes['model.proof.stg_orders']!.columns['id']!.comment).toBe("Key, don't reuse")
    },
  )
})
