import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TableSource } from '../../../src/connectors/spi/table-source.ts'
import type { EngineQuery } from '../../../src/execution/engine/engine-query.ts'
import { checkQuery, statementText } from '../../../src/execution/engine/statement-text.ts'
import { engineVocabulary } from '../../../src/duckdb/engine-vocabulary.ts'
import { openEngineConnection } from '../../support/duckdb-in-process.ts'

let duckdb: Awaited<ReturnType<typeof openEngineConnection>>
beforeAll(async () => {
  duckdb = await openEngineConnection()
})
afterAll(() => duckdb.close())

const table = (...rows: readonly (readonly number[])[]): TableSource => [
  {
    kind: 'rows',
    columns: rows[0]!.map((_, i) => ({ name: `k${i}`, shape: 'BIGINT' })),
    rows: rows.map((row) => Object.fromEntries(row.map((value, i) => [`k${i}`, value]))),
  },
]

const query = (sql: string, ...scans: EngineQuery['scans']): EngineQuery => ({
  sql,
  scans,
  row: { kind: 'json', values: ['c0'] },
})

function textOf(asked: EngineQuery): string {
  return statementText(asked, checkQuery(asked, engineVocabulary).scans)
}

const rowsOf = async (sql: string): Promise<unknown[]> =>
  (await duckdb.connection.runAndReadAll(sql)).getRowsJson().map(([row]) => JSON.parse(String(row)))

describe('Scans in the text of a statement', () => {
  it('replace each reference of the statement to a scan, with any alias', async () => {
    const asked = query(
      `SELECT a.k0 * 100 + b.k0 * 10 + x0 AS c0 FROM "$s1" AS a CROSS JOIN "$s0" b CROSS JOIN (SELECT "k0" AS x0 FROM "$s1") ` +
        `WHERE '"$s0"' <> 'FROM "$s1"' AND EXISTS (SELECT 1 FROM "$s0" WHERE x0 = k0 + 1) ORDER BY c0`,
      table([1], [2]),
      table([3], [4]),
    )
    expect(await rowsOf(textOf(asked))).toEqual([313, 323, 413, 423].map((value) => [value]))
  })

  it('are joined once in a correlated subquery, not once per row of the outer query', async () => {
    const asked = query(
      `SELECT x0 AS c0 FROM (SELECT "k0" AS x0 FROM "$s0") WHERE x0 = (SELECT min(x2) FROM (SELECT "k0" AS x1, "k1" AS x2 ` +
        `FROM "$s1") CROSS JOIN (SELECT "k0" AS x3 FROM "$s2") WHERE (x1 = x0) AND (x2 = x3)) ORDER BY c0`,
      table([1], [2], [3]),
      table([1, 1], [2, 5], [3, 3]),
      table([1], [3], [4]),
    )
    const text = textOf(asked)
    expect(await rowsOf(text)).toEqual([[1], [3]])
    const plan = await duckdb.connection.runAndReadAll(`EXPLAIN ${text}`)
    expect(String(plan.getRowsJson()[0]![1])).not.toContain('CROSS_PRODUCT')
  })
})
