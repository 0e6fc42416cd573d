import { Fault, type AttackFamily, type CaseContext } from './attack-case.ts'
import { wellFormed } from './hostile-texts.ts'
import { identifierOf, literalOf, runStatement, sessionHeaders } from './statement.ts'

interface Words {
  /** A hostile text as a literal. */
  readonly l: () => string
  /** A hostile text as a quoted identifier. */
  readonly i: () => string
  /** A hostile text without quotes. */
  readonly x: () => string
}

/** Statements of every kind with hostile texts in all positions. */
const kinds: readonly ((words: Words) => string)[] = [
  ({ x }) => x(),
  ({ x }) => `SELECT ${x()}`,
  ({ i }) => `SELECT ${i()} FROM nation`,
  ({ i }) => `SELECT * FROM ${i()}`,
  ({ i }) => `SELECT * FROM ${i()}.${i()}.${i()}`,
  ({ i }) => `SELECT ${i()}.${i()} FROM nation AS ${i()}`,
  ({ i, l }) => `SELECT ${i()}(${l()})`,
  ({ i, l }) => `SELECT * FROM TABLE(${i()}(${l()}))`,
  ({ i, l }) => `SELECT count(*) AS ${i()} FROM nation WHERE name LIKE ${l()} OR comment = ${l()}`,
  ({ l }) => `SELECT name FROM nation WHERE name LIKE ${l()} ESCAPE '\\'`,
  ({ l }) => `SELECT regexp_like(name, ${l()}), regexp_replace(name, ${l()}, ${l()}) FROM nation LIMIT 2`,
  ({ l }) => `SELECT regexp_extract_all(${l()}, '.'), split(${l()}, ${l()})`,
  ({ l }) => `SELECT json_extract(${l()}, ${l()}), json_query(${l()}, ${l()}), json_value(${l()}, 'lax $.a')`,
  ({ l }) => `SELECT json_value('{"a":1}', ${l()})`,
  ({ l }) => `SELECT date_format(now(), ${l()}), date_parse(${l()}, ${l()})`,
  ({ l }) => `SELECT date_trunc(${l()}, now()), date_add(${l()}, 1, now()), date_diff(${l()}, now(), now())`,
  ({ l }) => `SELECT format(${l()}, ${l()}, 1), format_datetime(now(), ${l()})`,
  ({ l }) => `SELECT now() AT TIME ZONE ${l()}`,
  ({ l }) => `SELECT CAST(${l()} AS timestamp), TRY_CAST(${l()} AS double), CAST(${l()} AS json)`,
  ({ x }) => `SELECT CAST(1 AS ${x()})`,
  ({ x }) => `SELECT U&'${x().replaceAll("'", "''")}', X'${x().replaceAll("'", "''")}'`,
  ({ i }) => `WITH ${i()} AS (SELECT 1 AS ${i()}) SELECT * FROM ${i()}`,
  ({ i, l }) => `SELECT * FROM (VALUES (${l()}, ${l()})) AS ${i()} (${i()}, ${i()})`,
  ({ l }) => `SELECT listagg(name, ${l()}) WITHIN GROUP (ORDER BY name) FROM region`,
  ({ l }) =>
    `SELECT max(${l()}) OVER (PARTITION BY ${l()} ORDER BY ${l()} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM region`,
  ({ l, i }) =>
    `SELECT * FROM region MATCH_RECOGNIZE (ORDER BY name MEASURES ${l()} AS ${i()} PATTERN (A) DEFINE A AS name > ${l()})`,
  ({ l }) => `SHOW CATALOGS LIKE ${l()}`,
  ({ l, i }) => `SHOW SCHEMAS FROM ${i()} LIKE ${l()}`,
  ({ l }) => `SHOW TABLES FROM tpch.tiny LIKE ${l()} ESCAPE ${l()}`,
  ({ i }) => `SHOW COLUMNS FROM ${i()}`,
  ({ i }) => `SHOW CREATE TABLE ${i()}`,
  ({ i }) => `SHOW STATS FOR ${i()}`,
  ({ l }) => `SHOW STATS FOR (SELECT * FROM nation WHERE name = ${l()})`,
  ({ l }) => `SHOW FUNCTIONS LIKE ${l()}`,
  ({ l }) => `SHOW SESSION LIKE ${l()}`,
  ({ i }) => `DESCRIBE ${i()}`,
  ({ i }) => `DESCRIBE INPUT ${i()}`,
  ({ l }) => `EXPLAIN SELECT * FROM nation WHERE name = ${l()}`,
  ({ l, i }) => `EXPLAIN (TYPE VALIDATE, FORMAT JSON) SELECT ${l()} AS ${i()}`,
  ({ l, i }) => `EXPLAIN ANALYZE VERBOSE SELECT count(*) AS ${i()} FROM nation WHERE name = ${l()}`,
  ({ i, l }) => `PREPARE ${i()} FROM SELECT ${l()}, ?`,
  ({ i }) => `PREPARE p FROM SELECT * FROM ${i()} WHERE a = ?`,
  ({ i, l }) => `EXECUTE ${i()} USING ${l()}`,
  ({ i }) => `DEALLOCATE PREPARE ${i()}`,
  ({ l }) => `EXECUTE IMMEDIATE ${l()} USING ${l()}`,
  ({ i }) => `USE ${i()}.${i()}`,
  ({ i }) => `USE memory.${i()}`,
  ({ l }) => `SET TIME ZONE ${l()}`,
  ({ l }) => `SET SESSION query_max_run_time = ${l()}`,
  ({ i, l }) => `SET SESSION ${i()}.${i()} = ${l()}`,
  ({ i }) => `RESET SESSION ${i()}`,
  ({ i }) => `SET PATH ${i()}.${i()}, ${i()}`,
  ({ i }) => `SET ROLE ${i()}`,
  ({ l }) => `SET SESSION AUTHORIZATION ${l()}`,
  () => 'START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY',
  ({ i }) => `CREATE SCHEMA memory.${i()}`,
  ({ i }) => `DROP SCHEMA IF EXISTS memory.${i()} CASCADE`,
  ({ i }) => `CREATE TABLE memory.default.${i()} (${i()} varchar, b bigint)`,
  ({ i, l }) => `CREATE TABLE IF NOT EXISTS memory.default.attacked AS SELECT ${l()} AS ${i()}`,
  ({ l }) => `INSERT INTO memory.default.attacked VALUES (${l()})`,
  ({ i, l }) => `INSERT INTO memory.default.${i()} (${i()}) SELECT ${l()}`,
  ({ i }) => `DROP TABLE IF EXISTS memory.default.${i()}`,
  ({ i, l }) => `CREATE OR REPLACE VIEW memory.default.${i()} AS SELECT ${l()} AS ${i()} FROM tpch.tiny.region`,
  ({ i }) => `DROP VIEW IF EXISTS memory.default.${i()}`,
  ({ i }) => `ALTER TABLE memory.default.${i()} RENAME TO ${i()}`,
  ({ i, l }) => `COMMENT ON TABLE memory.default.${i()} IS ${l()}`,
  ({ i, l }) => `UPDATE memory.default.attacked SET ${i()} = ${l()}`,
  ({ l }) => `DELETE FROM memory.default.attacked WHERE 'a' = ${l()}`,
  ({ i }) => `MERGE INTO memory.default.attacked USING ${i()} ON true WHEN MATCHED THEN DELETE`,
  ({ i, l }) => `CALL ${i()}.${i()}(${l()})`,
  ({ l }) => `CALL system.runtime.kill_query(query_id => ${l()}, message => ${l()})`,
  ({ i }) => `GRANT SELECT ON ${i()} TO ${i()}`,
  ({ l }) => `SELECT 'password' AS password, password FROM (VALUES ${l()}) AS t(password) WHERE t.password = ${l()}`,
  ({ i, l }) => `WITH FUNCTION f(x varchar) RETURNS varchar RETURN x || ${l()} SELECT f(${l()}) AS ${i()}`,
  ({ i, l }) =>
    `WITH FUNCTION ${i()}(${i()} varchar) RETURNS varchar BEGIN DECLARE v varchar DEFAULT ${l()}; RETURN v; END SELECT 1`,
  ({ l }) => `SELECT * FROM system.runtime.queries WHERE query = ${l()} OR "user" = ${l()}`,
  ({ l }) => `SELECT * FROM system.jdbc.columns WHERE table_name LIKE ${l()}`,
  ({ i, l }) => `SELECT * FROM ${i()}.information_schema.tables WHERE table_name = ${l()}`,
]

/** Hostile statements: each must give a right result or a clear error. */
export const statements: AttackFamily = {
  name: 'statements',
  weight: 230,
  async run(context) {
    const sql = hostileStatement(context)
    const transactional = sql.startsWith('START')
    await runStatement(context, sql, transactional ? { 'x-trino-user': 'attack' } : sessionHeaders)
  },
}

function hostileStatement(context: CaseContext): string {
  const { random, texts } = context
  const sql = random.pick(kinds)({
    l: () => literalOf(texts.statement(), context),
    i: () => identifierOf(texts.statement()),
    x: () => texts.statement(),
  })
  return random.chance(0.1) ? mangled(sql, context) : sql
}

/** A cut, doubled or rotated statement, or one with a text in the middle. */
function mangled(sql: string, { random, texts }: CaseContext): string {
  const at = random.whole(0, sql.length)
  const kind = random.whole(0, 3)
  const broken =
    kind === 0
      ? sql.slice(0, at)
      : kind === 1
        ? `${sql}; ${sql}`
        : kind === 2
          ? sql.slice(0, at) + texts.statement() + sql.slice(at)
          : sql.slice(at) + sql.slice(0, at)
  return wellFormed(broken)
}

/** Request bodies that are not valid statements. */
export const bodies: AttackFamily = {
  name: 'bodies',
  weight: 15,
  async run(context) {
    const { random, texts } = context
    const kind = random.whole(0, 5)
    const big = (bytes: number): Buffer => Buffer.from(`SELECT '${'x'.repeat(bytes)}'`)
    const body =
      kind === 0
        ? Buffer.alloc(0)
        : kind === 1
          ? texts.bytes(2000)
          : kind === 2
            ? Buffer.from("SELECT '\xed\xa0\x80\xff'", 'latin1')
            : kind === 3
              ? big(random.pick([1000, 900_000, 1_048_576, 1_100_000]))
              : kind === 4
                ? Buffer.from(`SELECT ${'('.repeat(random.whole(1, 30_000))}1`)
                : Buffer.from(`SELECT 'a\0b'`)
    const ran = await runStatement(context, body)
    if (ran && kind === 0) throw new Fault('a statement without text has an id')
  },
}

/** Queries of system tables: their events must not contain the rows, which would grow with each query. */
export const systemTables: AttackFamily = {
  name: 'system tables',
  weight: 30,
  async run(context) {
    const { random, wire, bed } = context
    const table = random.pick([
      'system.runtime.queries',
      'system.runtime.tasks',
      'system.runtime.nodes',
      'system.runtime.events',
      'system.metadata.catalogs',
      'system.jdbc.tables',
      'system.jdbc.columns',
      'system.jdbc.types',
      'tpch.information_schema.columns',
      'memory.information_schema.tables',
      'system.information_schema.columns',
    ])
    const what = random.pick(['count(*)', '*', 'max(1)'])
    const limit = what === '*' ? ' LIMIT 20' : ''
    let ran: Awaited<ReturnType<typeof runStatement>>
    for (let times = random.whole(1, 3); times > 0; times--) {
      ran = await runStatement(context, `SELECT ${what} FROM ${table}${limit}`)
    }
    if (!ran || ran.error) return
    const { text } = await wire.ask(`${bed.coordinators[0].url}/v1/query/${ran.id}/events`)
    if (text.length > MOST_EVENTS)
      throw new Fault(`the events of a statement over ${table} have ${text.length} characters`)
  },
}

/** The most characters of the events of a small statement; its plan and 20 rows fit. */
const MOST_EVENTS = 200_000
