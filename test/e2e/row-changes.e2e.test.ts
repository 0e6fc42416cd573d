import { describe, expect, it } from 'vitest'
import { FULL_TESTS } from '../support/full-tests.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { raw, rowsOrUpdate, run, trinoHeaders } from '../support/statement-client.ts'

const server = serverOfFile('error')
const headers = { ...trinoHeaders, 'x-trino-catalog': 'memory', 'x-trino-schema': 'default' }

/** The rows of a query, the update type and count of any other statement, or the name of the error. */
async function answer(sql: string): Promise<unknown> {
  const ran = await run(server.url, sql, headers)
  if (ran.error) return ran.error.errorName
  return rowsOrUpdate(ran)
}

/** Statements with their answers, in order. */
const story: readonly (readonly [sql: string, answer: unknown])[] = [
  ['CREATE TABLE t (a bigint NOT NULL, b varchar, c double)', 'CREATE TABLE'],
  ["INSERT INTO t VALUES (1, 'x', 1.5), (2, 'y', 2.5), (3, 'z', 3.5)", ['INSERT', 3]],
  ['INSERT INTO t (b) VALUES NULL', 'CONSTRAINT_VIOLATION'],
  ['DELETE FROM t WHERE a = 2', ['DELETE', 1]],
  ["UPDATE t SET b = 'w' || b, c = a WHERE a IN (SELECT 3)", ['UPDATE', 1]],
  ['UPDATE t SET a = NULL', 'INVALID_ARGUMENTS'],
  ['UPDATE t SET a = NULL WHERE false', ['UPDATE', 0]],
  [
    'SELECT * FROM t ORDER BY a',
    [
      [1, 'x', 1.5],
      [3, 'wz', 3],
    ],
  ],
  [
    "MERGE INTO t USING (VALUES (1, 'm'), (9, 'n')) s(k, v) ON t.a = s.k WHEN MATCHED THEN UPDATE SET b = s.v WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.k, s.v)",
    ['MERGE', 2],
  ],
  [
    'MERGE INTO t USING (VALUES 1, 1) s(k) ON a = k WHEN MATCHED AND false THEN DELETE',
    'MERGE_TARGET_ROW_MULTIPLE_MATCHES',
  ],
  ['MERGE INTO t USING (VALUES 1, 9) s(k) ON a = k WHEN MATCHED AND a = 9 THEN DELETE', ['MERGE', 1]],
  ['ALTER TABLE t ADD COLUMN IF NOT EXISTS d integer', 'ADD COLUMN'],
  ['ALTER TABLE t ADD COLUMN IF NOT EXISTS d varchar', 'ADD COLUMN'],
  ['UPDATE t SET d = 1.5', ['UPDATE', 2]],
  ['ALTER TABLE t RENAME COLUMN d TO e', 'RENAME COLUMN'],
  ['ALTER TABLE t ALTER COLUMN e SET DATA TYPE bigint', 'SET COLUMN TYPE'],
  ['ALTER TABLE t ALTER COLUMN a DROP NOT NULL', 'DROP NOT NULL'],
  ['ALTER TABLE t DROP COLUMN c', 'DROP COLUMN'],
  ['ALTER TABLE IF EXISTS nowhere DROP COLUMN c', 'DROP COLUMN'],
  ['ALTER TABLE t RENAME TO u', 'RENAME TABLE'],
  ['ALTER TABLE IF EXISTS t RENAME TO u', 'RENAME TABLE'],
  ["COMMENT ON TABLE u IS 'all'", 'COMMENT'],
  ["COMMENT ON COLUMN u.e IS 'one'", 'COMMENT'],
  [
    'SHOW CREATE TABLE u',
    [["CREATE TABLE memory.default.u (\n   a bigint,\n   b varchar,\n   e bigint COMMENT 'one'\n)\nCOMMENT 'all'"]],
  ],
  ['ALTER TABLE u EXECUTE optimize', 'ALTER TABLE EXECUTE'],
  [
    'SELECT * FROM u ORDER BY a',
    [
      [1, 'm', 2],
      [3, 'wz', 2],
    ],
  ],
  ['CREATE VIEW v AS SELECT a FROM u', 'CREATE VIEW'],
  ['ALTER VIEW v RENAME TO w', 'RENAME VIEW'],
  ['ALTER TABLE u DROP COLUMN a', 'DROP COLUMN'],
  ['SELECT * FROM w', 'INVALID_VIEW'],
  ['TRUNCATE TABLE u', 'TRUNCATE TABLE'],
  ['SELECT count(*) FROM u', [[0]]],
  ['CREATE TABLE vb (k integer, v bigint, d decimal(9,1))', 'CREATE TABLE'],
  ['INSERT INTO vb VALUES (1, 2, 3.5)', ['INSERT', 1]],
  ['CREATE VIEW vw AS SELECT * FROM vb', 'CREATE VIEW'],
  ['SELECT count(*) FROM vw', [[1]]],
  ['ALTER TABLE vb ADD COLUMN b integer NOT NULL', 'NOT_SUPPORTED'],
  ['ALTER TABLE vb DROP COLUMN v', 'DROP COLUMN'],
  ['ALTER TABLE vb ADD COLUMN q varchar', 'ADD COLUMN'],
  ['SELECT * FROM vw', 'VIEW_IS_STALE'],
  // The statements of dbt: a swap of tables, an incremental model, a snapshot, a wider column.
  ['create table "memory"."default"."orders" as (select 1 as id, cast(null as varchar) as note)', ['CREATE TABLE', 1]],
  ['create table "memory"."default"."orders__dbt_tmp" as (select 2 as id, \'b\' as note)', ['CREATE TABLE', 1]],
  ['alter table "memory"."default"."orders" rename to "memory"."default"."orders__dbt_backup"', 'RENAME TABLE'],
  ['alter table "memory"."default"."orders__dbt_tmp" rename to "memory"."default"."orders"', 'RENAME TABLE'],
  [
    'delete from "memory"."default"."orders" where (id) in (select id from "memory"."default"."orders__dbt_backup")',
    ['DELETE', 0],
  ],
  [
    'merge into "memory"."default"."orders" as DBT_INTERNAL_DEST using "memory"."default"."orders__dbt_backup" as DBT_INTERNAL_SOURCE on ((DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id)) when matched then update set note = DBT_INTERNAL_SOURCE.note when not matched then insert ("id", "note") values (DBT_INTERNAL_SOURCE.id, DBT_INTERNAL_SOURCE.note)',
    ['MERGE', 1],
  ],
  ['drop table if exists "memory"."default"."orders__dbt_backup"', 'DROP TABLE'],
  ['alter table "memory"."default"."orders" add column "note__dbt_alter" varchar', 'ADD COLUMN'],
  ['update "memory"."default"."orders" set "note__dbt_alter" = CAST("note" AS varchar)', ['UPDATE', 2]],
  ['alter table "memory"."default"."orders" drop column "note" ', 'DROP COLUMN'],
  ['alter table "memory"."default"."orders" rename column "note__dbt_alter" to "note"', 'RENAME COLUMN'],
  [
    'SELECT * FROM orders ORDER BY id',
    [
      [1, null],
      [2, 'b'],
    ],
  ],
  ['SHOW FUNCTIONS FROM memory.default', []],
  ['drop function if exists "memory"."default"."abs"(bigint)', 'DROP FUNCTION'],
  ['drop materialized view if exists "memory"."default"."orders_mv"', 'DROP MATERIALIZED VIEW'],
  ['CREATE SCHEMA one', 'CREATE SCHEMA'],
  ['CREATE TABLE one.x AS SELECT 1 AS y', ['CREATE TABLE', 1]],
  ['ALTER SCHEMA one RENAME TO two', 'RENAME SCHEMA'],
  ['TABLE two.x', [[1]]],
]

describe('Statements that change rows, columns and names', () => {
  it("give Trino's answers, one after the other", { timeout: 240_000 }, async () => {
    for (const [sql, expected] of story) expect(await answer(sql), sql).toEqual(expected)
  })

  it('all succeed when clients change different rows of one table at once', { timeout: 600_000 }, async () => {
    const [clients, changes] = FULL_TESTS ? [8, 20] : [4, 5]
    const keys = Array.from({ length: clients }, (_, index) => index + 1)
    await answer(`CREATE TABLE counters AS SELECT n, 0 AS c FROM UNNEST(sequence(1, ${clients})) x(n)`)
    const client = async (n: number): Promise<void> => {
      for (let i = 0; i < changes; i++)
        expect(await answer(`UPDATE counters SET c = c + 1 WHERE n = ${n}`)).toEqual(['UPDATE', 1])
    }
    await Promise.all(keys.map(client))
    expect(await answer('SELECT n, c FROM counters ORDER BY n')).toEqual(keys.map((n) => [n, changes]))
  })

  it('show readers one table at a time while tables exchange their names', { timeout: 3_600_000 }, async () => {
    const swaps = FULL_TESTS ? 1000 : 5
    let done = false
    const create = (name: string, version: number) =>
      answer(`CREATE TABLE ${name} AS SELECT ${version} AS version, n FROM UNNEST(sequence(1, 100)) x(n)`)
    await create('swapped', 0)
    const seen = { whole: 0, missing: 0 }
    const read = async (): Promise<void> => {
      let newest = 0
      while (!done) {
        const found = await answer('SELECT min(version), max(version), count(*), sum(n) FROM swapped')
        // As in Trino, the name has no table between the two statements that rename.
        if (found === 'TABLE_NOT_FOUND') {
          seen.missing++
          continue
        }
        const [[least, most, rows, sum]] = found as [[number, number, number, number]]
        expect([most, rows, sum]).toEqual([least, 100, 5050])
        expect(least).toBeGreaterThanOrEqual(newest)
        newest = least
        seen.whole++
      }
    }
    const swap = async (): Promise<void> => {
      for (let version = 1; version <= swaps; version++) {
        await create('swapped_tmp', version)
        expect(await answer('ALTER TABLE swapped RENAME TO swapped_old')).toBe('RENAME TABLE')
        expect(await answer('ALTER TABLE swapped_tmp RENAME TO swapped')).toBe('RENAME TABLE')
        expect(await answer('DROP TABLE swapped_old')).toBe('DROP TABLE')
      }
    }
    await Promise.all([read(), read(), swap().finally(() => (done = true))])
    expect(seen.whole).toBeGreaterThan(0)
    if (FULL_TESTS) console.log(`${swaps} swaps: ${seen.whole} reads of a whole table, ${seen.missing} without a table`)
  })

  it('show readers one whole table while CREATE OR REPLACE TABLE replaces it', { timeout: 3_600_000 }, async () => {
    const swaps = FULL_TESTS ? 1000 : 30
    let done = false
    const replace = (version: number) =>
      answer(`CREATE OR REPLACE TABLE replaced AS SELECT ${version} AS version, n FROM UNNEST(sequence(1, 100)) x(n)`)
    await replace(0)
    let reads = 0
    const read = async (): Promise<void> => {
      for (let newest = 0; !done; reads++) {
        const found = await answer('SELECT min(version), max(version), count(*), sum(n) FROM replaced')
        const [[least, most, rows, sum]] = found as [[number, number, number, number]]
        expect([most, rows, sum]).toEqual([least, 100, 5050])
        expect(least).toBeGreaterThanOrEqual(newest)
        newest = least
      }
    }
    const swap = async (): Promise<void> => {
      for (let version = 1; version <= swaps; version++) expect(await replace(version)).toEqual(['CREATE TABLE', 100])
    }
    await Promise.all([read(), read(), swap().finally(() => (done = true))])
    expect(reads).toBeGreaterThan(0)
    if (FULL_TESTS) console.log(`${swaps} replacements: ${reads} reads of a whole table`)
  })

  it.runIf(FULL_TESTS)('merge 10 million rows within the memory of the engine', { timeout: 3_600_000 }, async () => {
    const rows = 'FROM UNNEST(sequence(1, 1000)) a(a) CROSS JOIN UNNEST(sequence(1, 10000)) b(b)'
    await answer(`CREATE TABLE large AS SELECT a * 10000 + b AS k, a AS x, b AS y, cast(b AS varchar) AS s ${rows}`)
    const merge = `MERGE INTO large t USING (SELECT a * 10000 + b + 5000000 AS k, b AS y ${rows}) s ON t.k = s.k
      WHEN MATCHED AND t.y % 10 = 0 THEN DELETE
      WHEN MATCHED THEN UPDATE SET x = 0, y = s.y
      WHEN NOT MATCHED THEN INSERT (k, y) VALUES (s.k, s.y)`
    const { id, error } = await run(server.url, merge, headers)
    expect(error).toBeUndefined()
    const { queryStats } = (await raw(`${server.url}/v1/query/${id}`)).json as unknown as {
      readonly queryStats: Readonly<Record<string, unknown>>
    }
    console.log(
      `MERGE of 10 M rows: peak memory ${String(queryStats['peakTotalMemoryReservation'])}, spilled ${String(queryStats['spilledDataSize'])}`,
    )
    expect(await answer('SELECT count(*), count(DISTINCT k), count_if(x = 0), count_if(x IS NULL) FROM large')).toEqual(
      [[14_500_000, 14_500_000, 4_500_000, 5_000_000]],
    )
  })
})

describe('EXPLAIN of a statement that changes rows', () => {
  const explained = async (sql: string): Promise<string> => {
    const { rows, error } = await run(server.url, sql, headers)
    return error?.message ?? String(rows[0]?.[0])
  }

  it('shows the target, the plan of the rows and the tables that it reads', { timeout: 240_000 }, async () => {
    await answer('CREATE TABLE explained AS SELECT * FROM tpch.tiny.nation')
    const merge =
      'MERGE INTO explained e USING tpch.tiny.region r ON e.regionkey = r.regionkey WHEN MATCHED THEN DELETE'
    expect(await explained(`EXPLAIN (TYPE LOGICAL) ${merge}`)).toMatch(
      /^TableCommit\[target = memory:default:explained\][^]*MergeWriter[^]*InnerJoin[^]*memory:default:explained[^]*rows: 25 /,
    )
    expect(await explained(`EXPLAIN ${merge}`)).toMatch(/Fragment 1 \[SINGLE\][^]*TableCommit[^]*MergeWriter/)
    expect(await explained('EXPLAIN INSERT INTO explained TABLE explained')).toMatch(/TableCommit[^]*TableWriter/)
    const table = (catalog: string, schema: string, name: string) => ({ catalog, schemaTable: { schema, table: name } })
    const io = JSON.parse(await explained(`EXPLAIN (TYPE IO) ${merge}`)) as Record<string, unknown>
    expect(io).toMatchObject({
      inputTableColumnInfos: [
        { table: table('memory', 'default', 'explained') },
        { table: table('tpch', 'tiny', 'region') },
      ],
      outputTable: table('memory', 'default', 'explained'),
    })
    expect(await explained('EXPLAIN (TYPE VALIDATE) DELETE FROM explained WHERE nope = 1')).toContain("Column 'nope'")
    // Nothing was changed.
    expect(await answer('SELECT count(*) FROM explained')).toEqual([[25]])
  })

  it('prints a statement of definitions, which has no plan, as Trino does', { timeout: 240_000 }, async () => {
    for (const [sql, text] of DEFINITIONS)
      for (const options of ['', '(TYPE IO, FORMAT JSON) '])
        expect(await explained(`EXPLAIN ${options}${sql}`), sql).toBe(text)
    expect(await explained("EXPLAIN EXECUTE IMMEDIATE 'DROP TABLE explained'")).toBe('DROP TABLE explained')
    expect(await answer('SELECT count(*) FROM explained')).toEqual([[25]])
  })
})

const DEFINITIONS: readonly (readonly [sql: string, text: string])[] = [
  ['CREATE SCHEMA Memory.shop', 'CREATE SCHEMA memory.shop'],
  ['CREATE TABLE Made (a bigint)', 'CREATE TABLE made'],
  ['CREATE OR REPLACE VIEW seen AS SELECT 1 x', 'CREATE VIEW seen'],
  ['CREATE MATERIALIZED VIEW stored AS SELECT 1 x', 'CREATE MATERIALIZED VIEW stored'],
  ['drop table explained', 'DROP TABLE explained'],
  ['ALTER TABLE explained ADD COLUMN z bigint', 'ALTER TABLE explained ADD COLUMN z bigint'],
  ['ALTER TABLE explained RENAME TO other', 'ALTER TABLE explained RENAME TO other'],
  ["COMMENT ON TABLE explained IS 'x'", "COMMENT ON TABLE explained IS 'x'"],
  ['TRUNCATE TABLE explained', 'TRUNCATE TABLE explained'],
  ["SET SESSION query_max_run_time = '1h'", "SET SESSION query_max_run_time = '1h'"],
  ['PREPARE q FROM SELECT 1', 'PREPARE q'],
]
