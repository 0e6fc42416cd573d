import { beforeAll, describe, expect, it } from 'vitest'
import { run } from '../support/statement-client.ts'
import { both, gatewayOfFile, headers, seen, trinoUrl, untilHealthy } from './gateway.ts'

const gateway = gatewayOfFile()
beforeAll(() => untilHealthy(gateway))

const TYPES = `SELECT true AS b, tinyint '1' AS t, smallint '2' AS s, 42 AS i, bigint '9007199254740993' AS l, real '1.5' AS r, 1e0 AS d,
  nan() AS n, infinity() AS f, decimal '12.30' AS dec, decimal '12345678901234567890.123456789' AS long_dec, 'täxt €𝄞' AS v, cast('ab' AS char(4)) AS c,
  X'0102' AS bin, date '2020-02-29' AS da, time '01:02:03.456' AS ti, time '01:02:03.123456789' AS ti9, time '01:02:03.456+02:00' AS tiz,
  timestamp '2020-01-02 03:04:05.678' AS ts, timestamp '2020-01-02 03:04:05.123456789012' AS ts12, timestamp '2020-01-02 03:04:05.678 Europe/Berlin' AS tsz,
  interval '1' day AS dd, interval '2' month AS ym, array[1, null] AS a, map(array['k', 'j'], array[1.5, null]) AS m,
  cast(row(1, 'x', row(2)) AS row(a integer, b varchar, c row(d bigint))) AS ro, row(1, 'y') AS anonymous, json '{"a": [1, null]}' AS j,
  uuid '12151fd2-7586-11e9-8f9e-2a86e4085a59' AS u, ipaddress '10.0.0.1' AS ip, cast(NULL AS varchar) AS nil, NULL AS untyped`

const QUERIES = [
  'SELECT 1',
  TYPES,
  "VALUES (1, 'a'), (2, NULL), (3, 'c\"\\\\ü')",
  'SELECT \'],"stats":{\' AS a, \'"data":[[1]]\' AS "data", \'x\' AS "stats"',
  'TABLE tpch.tiny.region',
  'SELECT * FROM nation ORDER BY nationkey',
  'SELECT * FROM nation WHERE false',
  'SELECT count(*), sum(quantity), min(shipdate), max(comment) FROM lineitem',
  'SELECT returnflag, linestatus, sum(extendedprice * (1 - discount)), avg(quantity) FROM lineitem GROUP BY 1, 2 ORDER BY 1, 2',
  'SELECT n.name, r.name, count(*) OVER (PARTITION BY r.name) FROM nation n JOIN region r USING (regionkey) ORDER BY 1',
  'SELECT orderkey, linenumber, extendedprice, comment FROM lineitem ORDER BY orderkey, linenumber',
  'SELECT regionkey, name, grouping(regionkey, name) FROM nation GROUP BY ROLLUP (regionkey, name) ORDER BY 1, 2',
  'WITH RECURSIVE t(n) AS (VALUES 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t',
  "SELECT x, y FROM UNNEST(array[1, 2], array['a', 'b']) WITH ORDINALITY AS t(x, y, n) ORDER BY n DESC",
  'SELECT transform(array[1, 2], x -> x * 2), reduce(sequence(1, 5), 0, (s, x) -> s + x, s -> s)',
  'SELECT approx_distinct(custkey), approx_percentile(totalprice, 0.5) FROM orders WHERE orderkey < 100',
  'SELECT * FROM TABLE(sequence(1, 5)) ORDER BY 1 DESC',
  'SELECT * FROM TABLE(exclude_columns(TABLE(region), DESCRIPTOR(comment))) ORDER BY 1',
  `SELECT * FROM (VALUES (1, 1), (1, 2), (1, 1)) AS t(p, v) MATCH_RECOGNIZE (PARTITION BY p ORDER BY v MEASURES last(a.v) AS m ONE ROW PER MATCH PATTERN (a+) DEFINE a AS true)`,
  "SELECT json_query('{\"a\": {\"b\": 1}}', 'lax $.a'), json_value('{\"a\": 1}', 'lax $.a' RETURNING bigint), json_object('k': 1)",
  'SELECT cast(row(1, array[row(2)]) AS row(a bigint, b array(row(c smallint))))',
  'SELECT hyper_log_log FROM (SELECT cast(approx_set(1) AS varbinary) AS hyper_log_log)',
  'SELECT * FROM (VALUES 1) AS t(a) FETCH FIRST ROW ONLY',
  'SELECT current_user, current_catalog, current_schema',
  "SELECT name FROM nation WHERE regionkey IN (SELECT regionkey FROM region WHERE name LIKE 'A%') ORDER BY 1 OFFSET 2 LIMIT 3",
  "SELECT lower(listagg(name, ',') WITHIN GROUP (ORDER BY name)) FROM region",
  "SELECT date_trunc('month', orderdate), count(*) FROM orders GROUP BY 1 ORDER BY 1 LIMIT 5",
  'WITH FUNCTION double_it(x bigint) RETURNS bigint RETURN x * 2 SELECT double_it(21)',
  "SELECT rpad('', 2000000, 'é')",
  "SELECT n, rpad('', 100000, 'ab') FROM UNNEST(sequence(1, 60)) AS t(n) ORDER BY n",
  'SELECT a.nationkey FROM nation a CROSS JOIN nation b CROSS JOIN nation c ORDER BY 1',
  'SHOW SCHEMAS FROM tpch',
  'SHOW TABLES FROM tpch.tiny',
  "SHOW TABLES FROM tpch.tiny LIKE 'n%'",
  'SHOW COLUMNS FROM tpch.tiny.nation',
  'DESCRIBE nation',
  'SHOW CREATE TABLE tpch.tiny.nation',
  'SHOW CREATE SCHEMA tpch.tiny',
  'SHOW STATS FOR tpch.tiny.nation',
  'SHOW STATS FOR (SELECT * FROM nation WHERE nationkey < 5)',
  "SELECT table_name, column_name, data_type FROM tpch.information_schema.columns WHERE table_schema = 'tiny' ORDER BY 1, 2",
  'SELECT table_schema, count(*) FROM tpch.information_schema.tables GROUP BY 1 ORDER BY 1',
  'EXPLAIN (TYPE VALIDATE) SELECT * FROM nation',
  'EXPLAIN (TYPE IO, FORMAT JSON) SELECT count(*) FROM nation',
  'EXPLAIN (TYPE DISTRIBUTED, FORMAT GRAPHVIZ) SELECT count(*) FROM tpch.tiny.nation',
  "EXECUTE IMMEDIATE 'SELECT name FROM nation WHERE nationkey = ?' USING 3",
]

describe('A query', () => {
  it.each(QUERIES)('has the answer that Trino gives: %s', async (sql) => {
    const { direct, through } = await both(gateway, sql)
    expect(direct.error).toBeUndefined()
    expect(seen(through)).toEqual(seen(direct))
  })
})

it('EXPLAIN shows the plan of Trino below the route', async () => {
  const { direct, through } = await both(gateway, 'EXPLAIN (TYPE LOGICAL) SELECT count(*) FROM tpch.tiny.nation')
  const [route, ...plan] = String(through.rows[0]![0]).split('\n')
  expect(route).toMatch(/^Route: group big/)
  expect(plan.join('\n').trimStart()).toBe(String(direct.rows[0]![0]))
})

const ERRORS = [
  'SELECT nope FROM nation',
  'SELECT 1,\n  nope(2)\nFROM nation',
  'SELECT * FROM tpch.tiny.nothing',
  'SELECT * FROM tpch.nowhere.nothing',
  'SELECT 1 / 0 FROM nation',
  'SELECT cast(name AS bigint) FROM nation',
  "SELECT json_parse('{') FROM nation",
  'SELECT name + 1 FROM nation',
  'SELECT nationkey, count(*) FROM nation',
  'SELECT a.name FROM nation a, nation b WHERE name = 1',
  'INSERT INTO tpch.tiny.nation VALUES 1',
  'DROP TABLE tpch.tiny.nation',
  'CREATE TABLE tpch.tiny.t (a bigint)',
  "SELECT fail('ü: it failed') FROM nation",
  'SELECT element_at(array[1], 0), nationkey FROM nation',
  'SELECT nationkey FROM nation ORDER BY 7',
  'SELECT (SELECT nationkey FROM nation)',
  'EXECUTE missing',
  'SELECT sum(nationkey) OVER () FROM nation GROUP BY regionkey',
  'SHOW CREATE TABLE tpch.tiny.nothing',
  'SHOW TABLES FROM tpch.nowhere',
  'DESCRIBE tpch.tiny.nothing',
  'SET SESSION iceberg.nothing = 1',
  'USE tpch.nowhere',
  'TRUNCATE TABLE tpch.tiny.nation',
  'ALTER TABLE tpch.tiny.nation ADD COLUMN x bigint',
  "SELECT bigint '9223372036854775807' + 1 FROM nation",
]

describe('An error', () => {
  it.each(ERRORS)('has the name, code, position and message that Trino gives: %s', async (sql) => {
    const { direct, through } = await both(gateway, sql)
    expect(direct.error).toBeDefined()
    expect(seen(through)).toEqual(seen(direct))
  })
})

/** Each runs in a schema of its own, whose name stands for `@`. */
const CHANGES = [
  'CREATE SCHEMA iceberg.@',
  "CREATE TABLE iceberg.@.people (id bigint NOT NULL, name varchar COMMENT 'full name', born date) COMMENT 'all' WITH (format = 'PARQUET', partitioning = ARRAY['month(born)'])",
  "INSERT INTO iceberg.@.people VALUES (1, 'ana', date '2001-02-03'), (2, 'bob', NULL)",
  'INSERT INTO iceberg.@.people SELECT nationkey + 10, name, NULL FROM tpch.tiny.nation',
  'SELECT * FROM iceberg.@.people ORDER BY id',
  "UPDATE iceberg.@.people SET name = 'ann' WHERE id = 1",
  'UPDATE iceberg.@.people SET name = NULL WHERE id = 99999',
  'DELETE FROM iceberg.@.people WHERE id > 20',
  "MERGE INTO iceberg.@.people t USING (VALUES (1, 'x'), (5, 'new')) AS s(id, name) ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)",
  'SELECT count(*), max(name) FROM iceberg.@.people',
  "INSERT INTO iceberg.@.people VALUES (NULL, 'nobody', NULL)",
  'CREATE TABLE iceberg.@.copy AS SELECT id, name FROM iceberg.@.people WHERE id < 15',
  'CREATE TABLE iceberg.@.empty AS SELECT * FROM iceberg.@.people WITH NO DATA',
  'CREATE TABLE IF NOT EXISTS iceberg.@.copy AS SELECT 1 AS id',
  'CREATE TABLE iceberg.@.copy (id bigint)',
  'CREATE VIEW iceberg.@.names AS SELECT name FROM iceberg.@.people',
  'SELECT count(*) FROM iceberg.@.names',
  "COMMENT ON TABLE iceberg.@.people IS 'everybody'",
  "COMMENT ON COLUMN iceberg.@.people.id IS 'key'",
  'ALTER TABLE iceberg.@.people ADD COLUMN height double',
  'ALTER TABLE iceberg.@.people RENAME COLUMN height TO size',
  'ALTER TABLE iceberg.@.people DROP COLUMN size',
  'ALTER TABLE iceberg.@.copy RENAME TO iceberg.@.copied',
  'ANALYZE iceberg.@.people',
  'SHOW STATS FOR iceberg.@.empty',
  'SELECT count(*) FROM iceberg.@."people$snapshots"',
  'ALTER TABLE iceberg.@.people EXECUTE optimize',
  'TRUNCATE TABLE iceberg.@.copied',
  "EXPLAIN ANALYZE INSERT INTO iceberg.@.copied SELECT 1, 'x'",
  'DROP VIEW iceberg.@.names',
  'DROP TABLE iceberg.@.copied',
  'DROP TABLE iceberg.@.nothing',
  'DROP TABLE IF EXISTS iceberg.@.nothing',
  'DROP SCHEMA iceberg.@ CASCADE',
]

describe('Changes', () => {
  it('have the answers and the effects that Trino gives', async () => {
    const own = (schema: string) => (text: string) => text.replaceAll('@', schema)
    const [there, here] = [own('direct'), own('through')]
    for (const change of CHANGES) {
      const direct = seen(await run(trinoUrl, there(change), headers))
      const through = seen(await run(gateway.url, here(change), headers))
      const named = (answer: unknown): unknown =>
        JSON.parse(JSON.stringify(answer).replaceAll('through', '@').replaceAll('direct', '@'))
      // EXPLAIN ANALYZE prints times.
      const compared = (answer: typeof direct) => (change.startsWith('EXPLAIN ANALYZE') ? answer['columns'] : answer)
      expect(named(compared(through)), change).toEqual(named(compared(direct)))
    }
  })
})
