import { describe, expect, it } from 'vitest'
import { serverOfFile } from '../support/server-of-file.ts'
import { rowsOrUpdate, run, trinoHeaders } from '../support/statement-client.ts'

const server = serverOfFile('error')
const headers = { ...trinoHeaders, 'x-trino-catalog': 'memory', 'x-trino-schema': 'default' }

/** The rows of a query, the update type and count of any other statement, or the name and message of the error. */
async function answer(sql: string): Promise<unknown> {
  const ran = await run(server.url, sql, headers)
  if (ran.error) return `${ran.error.errorName}: ${ran.error.message.replace(/^line \d+:\d+: /, '')}`
  return rowsOrUpdate(ran)
}

const FRESHNESS =
  'SELECT freshness, last_fresh_time IS NULL, comment FROM system.metadata.materialized_views WHERE name = '

/** Statements with their answers, in order. */
const story: readonly (readonly [sql: string, answer: unknown])[] = [
  ['CREATE TABLE t (k bigint, v varchar)', 'CREATE TABLE'],
  ["INSERT INTO t VALUES (1, 'a'), (2, 'b')", ['INSERT', 2]],
  ["CREATE MATERIALIZED VIEW m COMMENT 'sums' AS SELECT k % 2 AS odd, count(*) AS n, max(v) AS v FROM t GROUP BY 1", 'CREATE MATERIALIZED VIEW'], // prettier-ignore
  ['CREATE MATERIALIZED VIEW m AS SELECT 1 x', "ALREADY_EXISTS: Materialized view already exists: 'memory.default.m'"],
  ['CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT 1 x', 'CREATE MATERIALIZED VIEW'],
  ['CREATE MATERIALIZED VIEW t AS SELECT 1 x', "TABLE_ALREADY_EXISTS: Table already exists: 'memory.default.t'"],
  // Until the first refresh the query runs.
  ['SELECT * FROM m ORDER BY odd', [[0, 1, 'b'], [1, 1, 'a']]], // prettier-ignore
  [`${FRESHNESS}'m'`, [['STALE', true, 'sums']]],
  ['REFRESH MATERIALIZED VIEW m', ['REFRESH MATERIALIZED VIEW', 2]],
  ['REFRESH MATERIALIZED VIEW m', ['REFRESH MATERIALIZED VIEW', 0]],
  [`${FRESHNESS}'m'`, [['FRESH', true, 'sums']]],
  ["INSERT INTO t VALUES (3, 'c')", ['INSERT', 1]],
  [`${FRESHNESS}'m'`, [['STALE', false, 'sums']]],
  // Without GRACE PERIOD the stored rows are read however old they are.
  ['SELECT * FROM m ORDER BY odd', [[0, 1, 'b'], [1, 1, 'a']]], // prettier-ignore
  ['REFRESH MATERIALIZED VIEW m', ['REFRESH MATERIALIZED VIEW', 2]],
  ['SELECT n FROM m WHERE odd = 1', [[2]]],
  // With a grace period of 0 they are read only while they are fresh.
  ["CREATE MATERIALIZED VIEW z GRACE PERIOD INTERVAL '0' SECOND AS SELECT count(*) AS n FROM t", 'CREATE MATERIALIZED VIEW'], // prettier-ignore
  ['REFRESH MATERIALIZED VIEW z', ['REFRESH MATERIALIZED VIEW', 1]],
  ["CREATE MATERIALIZED VIEW h GRACE PERIOD INTERVAL '3' HOUR AS SELECT count(*) AS n FROM t", 'CREATE MATERIALIZED VIEW'], // prettier-ignore
  ['REFRESH MATERIALIZED VIEW h', ['REFRESH MATERIALIZED VIEW', 1]],
  ['DELETE FROM t WHERE k = 1', ['DELETE', 1]],
  ['SELECT z.n, h.n FROM z, h', [[2, 3]]],
  // A view over a materialized view, and one over the other.
  ['CREATE VIEW w AS SELECT sum(n) AS n FROM m', 'CREATE VIEW'],
  ['SELECT * FROM w', [[3]]],
  ['CREATE MATERIALIZED VIEW mm AS SELECT odd FROM m WHERE n > 1', 'CREATE MATERIALIZED VIEW'],
  ['REFRESH MATERIALIZED VIEW mm', ['REFRESH MATERIALIZED VIEW', 1]],
  ['REFRESH MATERIALIZED VIEW m', ['REFRESH MATERIALIZED VIEW', 2]],
  ['REFRESH MATERIALIZED VIEW mm', ['REFRESH MATERIALIZED VIEW', 0]],
  ['SELECT count(*) FROM mm', [[0]]],
  ['CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT * FROM m', 'VIEW_IS_RECURSIVE: Statement would create a recursive materialized view'], // prettier-ignore
  // Where they are listed.
  ["SHOW TABLES LIKE 'm%'", [['m'], ['mm']]],
  ["SELECT table_type FROM information_schema.tables WHERE table_name = 'm' AND table_schema = 'default'", [['BASE TABLE']]], // prettier-ignore
  ["SELECT count(*) FROM information_schema.views WHERE table_name = 'm'", [[0]]],
  ['SHOW COLUMNS FROM m', [['odd', 'bigint', '', ''], ['n', 'bigint', '', ''], ['v', 'varchar', '', '']]], // prettier-ignore
  ['SHOW CREATE MATERIALIZED VIEW h', [["CREATE MATERIALIZED VIEW memory.default.h\nGRACE PERIOD INTERVAL '3' HOUR AS\nSELECT count(*) n\nFROM\n  t"]]], // prettier-ignore
  ['SHOW CREATE VIEW m', "NOT_SUPPORTED: Relation 'memory.default.m' is a materialized view, not a view"],
  ['SHOW CREATE MATERIALIZED VIEW t', "NOT_SUPPORTED: Relation 'memory.default.t' is a table, not a materialized view"],
  ["SELECT storage_schema, storage_table, definition FROM system.metadata.materialized_views WHERE name = 'z'", [['default', 'z$materialized_view_storage', 'SELECT count(*) n\nFROM\n  t']]], // prettier-ignore
  // The values of EXECUTE … USING are stored.
  ["EXECUTE IMMEDIATE 'CREATE MATERIALIZED VIEW given AS SELECT k + ? AS k, ? AS d FROM t WHERE v < ?' USING -1, DATE '2020-01-01', 'it''s'", 'CREATE MATERIALIZED VIEW'], // prettier-ignore
  ['SHOW CREATE MATERIALIZED VIEW given', [["CREATE MATERIALIZED VIEW memory.default.given AS\nSELECT\n  (k + -1) k\n, DATE '2020-01-01' d\nFROM\n  t\nWHERE (v < 'it''s')"]]], // prettier-ignore
  ['SELECT * FROM given ORDER BY k', [[1, '2020-01-01'], [2, '2020-01-01']]], // prettier-ignore
  ["EXECUTE IMMEDIATE 'CREATE VIEW given_view AS SELECT k FROM t WHERE k > ?' USING 2", 'CREATE VIEW'],
  ['SELECT * FROM given_view', [[3]]],
  ["EXECUTE IMMEDIATE 'CREATE VIEW other AS SELECT ? AS x' USING now()", 'NOT_SUPPORTED: The query of a view takes only literals as values of its parameters'], // prettier-ignore
  ["EXECUTE IMMEDIATE 'CREATE VIEW other AS SELECT ? AS x' USING 1, 2", 'INVALID_PARAMETER_USAGE: Incorrect number of parameters: expected 1 but found 2'], // prettier-ignore
  ['DROP MATERIALIZED VIEW given', 'DROP MATERIALIZED VIEW'],
  // It is no table and no view.
  ['INSERT INTO m VALUES (1, 1, null)', 'NOT_SUPPORTED: Inserting into materialized views is not supported'],
  ['UPDATE m SET n = 1', 'NOT_SUPPORTED: Updating materialized views is not supported'],
  ['DELETE FROM m', 'NOT_SUPPORTED: Deleting from materialized views is not supported'],
  ['TRUNCATE TABLE m', 'NOT_SUPPORTED: Cannot truncate a materialized view'],
  ['DROP TABLE m', "GENERIC_USER_ERROR: Table 'memory.default.m' does not exist, but a materialized view with that name exists. Did you mean DROP MATERIALIZED VIEW memory.default.m?"], // prettier-ignore
  ['DROP VIEW IF EXISTS m', "GENERIC_USER_ERROR: View 'memory.default.m' does not exist, but a materialized view with that name exists. Did you mean DROP MATERIALIZED VIEW memory.default.m?"], // prettier-ignore
  ['CREATE TABLE m (a bigint)', "TABLE_ALREADY_EXISTS: Table 'memory.default.m' already exists"],
  ['ALTER TABLE m ADD COLUMN x bigint', "TABLE_NOT_FOUND: Table 'memory.default.m' does not exist"],
  ['REFRESH MATERIALIZED VIEW t', "TABLE_NOT_FOUND: Materialized view 'memory.default.t' does not exist"],
  ["COMMENT ON TABLE m IS 'x'", "TABLE_NOT_FOUND: Table 'memory.default.m' does not exist, but a materialized view with that name exists. Setting comments on materialized views is unsupported."], // prettier-ignore
  ["COMMENT ON COLUMN m.n IS 'how many'", 'COMMENT'],
  ["SHOW COLUMNS FROM m LIKE 'n'", [['n', 'bigint', '', 'how many']]],
  ['ALTER MATERIALIZED VIEW m SET PROPERTIES x = 1', 'NOT_SUPPORTED: This connector does not support setting materialized view properties'], // prettier-ignore
  ['ALTER MATERIALIZED VIEW m RENAME TO renamed', 'RENAME MATERIALIZED VIEW'],
  ['SELECT sum(n) FROM renamed', [[2]]],
  ['SELECT * FROM w', "INVALID_VIEW: Failed analyzing stored view 'memory.default.w': line 3:3: Table 'memory.default.m' does not exist"], // prettier-ignore
  ['ALTER MATERIALIZED VIEW IF EXISTS m RENAME TO renamed', 'RENAME MATERIALIZED VIEW'],
  ['CREATE SCHEMA one', 'CREATE SCHEMA'],
  ['ALTER MATERIALIZED VIEW renamed RENAME TO one.m', 'RENAME MATERIALIZED VIEW'],
  ['ALTER SCHEMA one RENAME TO two', 'RENAME SCHEMA'],
  ['SELECT sum(n) FROM two.m', [[2]]],
  ['DROP MATERIALIZED VIEW two.m', 'DROP MATERIALIZED VIEW'],
  ['DROP MATERIALIZED VIEW IF EXISTS two.m', 'DROP MATERIALIZED VIEW'],
  ['CREATE OR REPLACE MATERIALIZED VIEW z AS SELECT 7 AS n', 'CREATE MATERIALIZED VIEW'],
  ['SELECT * FROM z', [[7]]],
  ['REFRESH MATERIALIZED VIEW z', ['REFRESH MATERIALIZED VIEW', 1]],
  ['SELECT * FROM z FOR VERSION AS OF 99', [[7]]],
  ['CREATE MATERIALIZED VIEW c AS SELECT query_id FROM system.runtime.queries', 'CREATE MATERIALIZED VIEW'],
  // The stored rows are no longer those of the query, although no table has changed.
  ['CREATE VIEW changing AS SELECT 1 AS x', 'CREATE VIEW'],
  ['CREATE MATERIALIZED VIEW above AS SELECT x FROM changing', 'CREATE MATERIALIZED VIEW'],
  ['REFRESH MATERIALIZED VIEW above', ['REFRESH MATERIALIZED VIEW', 1]],
  ['CREATE OR REPLACE VIEW changing AS SELECT 2 AS x', 'CREATE VIEW'],
  ['REFRESH MATERIALIZED VIEW above', ['REFRESH MATERIALIZED VIEW', 1]],
  ['REFRESH MATERIALIZED VIEW above', ['REFRESH MATERIALIZED VIEW', 0]],
  ['SELECT * FROM above', [[2]]],
  ...['now()', 'current_timestamp', 'random()', 'array_agg(uuid())'].flatMap((value): typeof story => [
    [`CREATE OR REPLACE MATERIALIZED VIEW above AS SELECT ${value} AS x`, 'CREATE MATERIALIZED VIEW'],
    ['REFRESH MATERIALIZED VIEW above', ['REFRESH MATERIALIZED VIEW', 1]],
    ['REFRESH MATERIALIZED VIEW above', ['REFRESH MATERIALIZED VIEW', 1]],
  ]),
  ['DROP TABLE t', 'DROP TABLE'],
  ['SELECT * FROM h', "INVALID_VIEW: Failed analyzing stored view 'memory.default.h': line 3:3: Table 'memory.default.t' does not exist"], // prettier-ignore
]

describe('Materialized views', () => {
  it("give Trino's answers, one after the other", { timeout: 240_000 }, async () => {
    for (const [sql, expected] of story) expect(await answer(sql), sql).toEqual(expected)
  })

  it('are refreshed once by several statements at the same time', { timeout: 240_000 }, async () => {
    await answer('CREATE TABLE base AS SELECT 1 AS a')
    await answer('CREATE MATERIALIZED VIEW once AS SELECT * FROM base')
    const counts = await Promise.all([1, 2, 3].map(() => answer('REFRESH MATERIALIZED VIEW once')))
    expect(counts.map((said) => (said as [string, number])[1]).sort()).toEqual([0, 0, 1])
    // Rows that are inserted while a refresh runs are in it, or make the view stale.
    const running = Promise.all([1, 2, 3, 4].map(() => answer('REFRESH MATERIALIZED VIEW once')))
    for (let i = 0; i < 3; i++) expect(await answer('INSERT INTO base VALUES 2')).toEqual(['INSERT', 1])
    await running
    await answer('REFRESH MATERIALIZED VIEW once')
    expect(await answer('SELECT count(*) FROM once')).toEqual([[4]])
    expect(await answer(`${FRESHNESS}'once'`)).toEqual([['FRESH', true, '']])
  })

  it('are recorded with the tables that their refresh reads and writes', { timeout: 240_000 }, async () => {
    await answer('INSERT INTO base VALUES 3')
    const { last } = await run(server.url, 'REFRESH MATERIALIZED VIEW once', headers)
    const info = (await fetch(`${server.url}/v1/query/${last.json.id}`).then((response) => response.json())) as {
      readonly inputs: readonly { readonly table: string }[]
      readonly outputs: readonly { readonly table: string }[]
    }
    expect(info).toMatchObject({ inputs: [{ table: 'base' }], outputs: [{ table: 'once' }] })
    const events = await fetch(`${server.url}/v1/query/${last.json.id}/events`).then((response) => response.text())
    expect(events).toContain('"operation":"refreshMaterializedView"')
    // Rules of the owner may read further tables.
    expect(events).not.toContain('"sources":[{"catalog"')
  })
})
