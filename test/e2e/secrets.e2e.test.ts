import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventsOf, leaksOfLog, leaksOfResources, leaksOfTables } from '../support/leaks.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { type TestDatabase } from '../support/postgres.ts'
import { spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'
import { run, trinoHeaders, type Ran } from '../support/statement-client.ts'

/*
 * A real server runs statements of every kind with a secret in them. The client gets its result, and the secret is in
 * no event, row, resource or log line. Each statement has a word of its own, `hunter<n>marker`.
 */
const WORDS = /hunter\d+marker/gi

interface Case {
  readonly sql: (word: string) => string
  readonly headers?: (word: string) => Readonly<Record<string, string>>
  readonly error?: string
}

const form = encodeURIComponent
const prepared = (sql: string) => ({ 'x-trino-prepared-statement': `p=${form(sql)}` })

const cases: Readonly<Record<string, Case>> = {
  literal: { sql: (w) => `SELECT 'password=${w}' AS a` },
  constants: { sql: (w) => `SELECT upper('${w}') AS password` },
  worker: { sql: (w) => `SELECT count(*) FROM nation n(a, password, c, d) WHERE password = '${w}'` },
  functions: {
    sql: (w) => `SELECT count(*) FROM nation n(a, password, c, d) WHERE concat('x', password) <> lower('${w}')`,
  },
  joined: { sql: (w) => `SELECT count(*) FROM nation n(a, token, c, d) JOIN (VALUES '${w}') v(x) ON token = x` },
  ordered: { sql: (w) => `SELECT name, 'Bearer ${w}' FROM nation ORDER BY 1 LIMIT 3` },
  column: { sql: (w) => `SELECT name AS "password=${w}" FROM region` },
  engineFails: {
    sql: (w) => `SELECT CAST(concat('${w}', name) AS integer) AS secret FROM region`,
    error: 'INVALID_CAST_ARGUMENT',
  },
  constantFails: {
    sql: (w) => `SELECT CAST(reverse(reverse('${w}')) AS date) AS secret`,
    error: 'INVALID_CAST_ARGUMENT',
  },
  regexpFails: {
    sql: (w) => `SELECT regexp_like(name, '(${w}') AS password FROM region`,
    error: 'INVALID_FUNCTION_ARGUMENT',
  },
  noColumn: { sql: (w) => `SELECT nosuch FROM nation WHERE password = '${w}'`, error: 'COLUMN_NOT_FOUND' },
  noParse: { sql: (w) => `CREATE USER bob PASSWORD ${w}`, error: 'SYNTAX_ERROR' },
  open: { sql: (w) => `SELECT password = '${w}`, error: 'SYNTAX_ERROR' },
  explain: { sql: (w) => `EXPLAIN SELECT * FROM nation n(a, password, c, d) WHERE password = '${w}'` },
  explainAnalyze: { sql: (w) => `EXPLAIN ANALYZE SELECT * FROM nation n(a, password, c, d) WHERE password = '${w}'` },
  prepare: { sql: (w) => `PREPARE q FROM SELECT * FROM nation n(a, password, c, d) WHERE password = '${w}'` },
  execute: {
    sql: () => 'EXECUTE p',
    headers: (w) => prepared(`SELECT count(*) FROM nation n(a, password, c, d) WHERE password = '${w}'`),
  },
  executeUsing: {
    sql: (w) => `EXECUTE p USING '${w}'`,
    headers: () => prepared('SELECT count(*) FROM nation n(a, password, c, d) WHERE password = ?'),
  },
  describeOutput: {
    sql: () => 'DESCRIBE OUTPUT p',
    headers: (w) => prepared(`SELECT a FROM nation n(a, password, c, d) WHERE password = '${w}'`),
  },
  deallocate: { sql: () => 'DEALLOCATE PREPARE p', headers: (w) => prepared(`SELECT 'password=${w}'`) },
  immediate: {
    sql: (w) => `EXECUTE IMMEDIATE 'SELECT count(*) FROM nation n(a, pwd, c, d) WHERE pwd = ?' USING '${w}'`,
  },
  setSession: { sql: (w) => `SET SESSION tpch.api_key = '${w}'`, error: 'INVALID_SESSION_PROPERTY' },
  session: {
    sql: () => 'SHOW SESSION',
    headers: (w) => ({
      'x-trino-session': `memory.api_key=${form(w)}`,
      'x-trino-client-info': `{"password": "${w}"}`,
      'x-trino-source': `jdbc:trino://bob:${w}@host`,
      'x-trino-client-tags': `token=${w},other`,
      'x-trino-extra-credential': `x=${w}`,
      'x-trino-trace-token': `Bearer ${w}`,
      'user-agent': `curl https://bob:${w}@host`,
    }),
  },
  catalog: { sql: (w) => `CREATE CATALOG c USING x WITH ("connection-password" = '${w}')`, error: 'NOT_SUPPORTED' },
  call: {
    sql: (w) => `CALL system.runtime.kill_query(query_id => 'x', password => '${w}')`,
    error: 'INVALID_ARGUMENTS',
  },
  table: { sql: (w) => `CREATE TABLE memory.s.t AS SELECT name, 'password=${w}' AS hint FROM region` },
  insert: { sql: (w) => `INSERT INTO memory.s.t (name, hint) SELECT '${w}' AS password, 'x'` },
  definition: { sql: (w) => `CREATE TABLE memory.s.d (a integer, password varchar COMMENT 'is ${w}')` },
  // Only the table knows its columns.
  bareInsert: { sql: (w) => `INSERT INTO memory.s.d VALUES (1, '${w}')` },
  bareInsertOfRows: { sql: (w) => `INSERT INTO memory.s.d SELECT 2, concat('${w}', name) FROM region` },
  bareInsertUsing: {
    sql: (w) => `EXECUTE p USING '${w}'`,
    headers: () => prepared('INSERT INTO memory.s.d VALUES (3, ?)'),
  },
  bareInsertExecuted: { sql: () => 'EXECUTE p', headers: (w) => prepared(`INSERT INTO memory.s.d VALUES (4, '${w}')`) },
  bareInsertImmediate: { sql: (w) => `EXECUTE IMMEDIATE 'INSERT INTO memory.s.d VALUES (5, ''${w}'')'` },
  bareInsertPrepared: { sql: (w) => `PREPARE q FROM INSERT INTO memory.s.d VALUES (6, '${w}')` },
  bareInsertNowhere: { sql: (w) => `INSERT INTO memory.s.nosuch VALUES (1, '${w}')`, error: 'TABLE_NOT_FOUND' },
  tableComment: { sql: (w) => `CREATE TABLE memory.s.e (a integer) COMMENT 'ask bob for the password, ${w}'` },
  columnComment: { sql: (w) => `CREATE TABLE memory.s.f (a integer COMMENT 'the secret is ${w}')` },
  commentOn: { sql: (w) => `COMMENT ON TABLE memory.s.d IS 'password is ${w}'` },
  commentOnColumn: { sql: (w) => `COMMENT ON COLUMN memory.s.d.a IS 'with the api key ${w}'` },
  addColumn: { sql: (w) => `ALTER TABLE memory.s.d ADD COLUMN more integer COMMENT 'the secret is ${w}'` },
  update: { sql: (w) => `UPDATE memory.s.d SET password = '${w}' WHERE a = 1` },
  updateWhere: { sql: (w) => `UPDATE memory.s.d SET more = 1 WHERE password = '${w}'` },
  delete: { sql: (w) => `DELETE FROM memory.s.d WHERE password = '${w}'` },
  merge: {
    sql: (w) =>
      `MERGE INTO memory.s.d t USING (VALUES (1, '${w}')) s(a, p) ON t.a = s.a WHEN MATCHED THEN UPDATE SET password = s.p`,
  },
  mergeInsert: {
    sql: (w) =>
      `MERGE INTO memory.s.d t USING (VALUES (9, '${w}')) s(a, p) ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a, password) VALUES (s.a, s.p)`,
  },
  mergeBareInsert: {
    sql: (w) =>
      `MERGE INTO memory.s.d t USING (VALUES (10, '${w}')) s(a, p) ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.p, 1)`,
  },
  updateExecuted: { sql: () => 'EXECUTE p', headers: (w) => prepared(`UPDATE memory.s.d SET password = '${w}'`) },
  updateUsing: {
    sql: (w) => `EXECUTE p USING '${w}'`,
    headers: () => prepared('UPDATE memory.s.d SET password = ?'),
  },
  quotedName: { sql: (w) => `SELECT name AS "password is ${w}" FROM region` },
  prose: { sql: (w) => `SELECT 'his passphrase was ${w}' AS hint` },
  view: { sql: (w) => `CREATE VIEW memory.s.v AS SELECT * FROM nation n(a, password, c, d) WHERE password = '${w}'` },
  drop: { sql: (w) => `DROP VIEW memory.s.v -- password=${w}` },
}

let folder: ReturnType<typeof temporaryFolder>
let database: TestDatabase
let quipu: QuipuProcess
let url: string

beforeAll(async () => {
  folder = temporaryFolder()
  database = await createMigratedDatabase()
  const env = { QUIPU_LOG_LEVEL: 'debug', QUIPU_SLOW_QUERY_MS: '1ms' }
  const args = ['start', '--port', '0', '--data-dir', join(folder.path, 'data'), '--database-url', database.url]
  quipu = spawnQuipu(args, { env })
  url = await quipu.url
  expect((await run(url, 'CREATE SCHEMA memory.s')).error).toBeUndefined()
}, 240_000)
afterAll(async () => {
  await database.drop()
  await folder.remove()
})

it('no secret of a statement is stored or shown', { timeout: 240_000 }, async () => {
  const ran = new Map<string, Ran>()
  for (const [index, [name, { sql, headers }]] of Object.entries(cases).entries()) {
    const word = `hunter${index}marker`
    ran.set(name, await run(url, sql(word), { ...trinoHeaders, ...headers?.(word) }))
  }
  for (const [name, { error }] of Object.entries(cases))
    expect({ name, error: ran.get(name)!.error?.errorName }).toEqual({ name, error })

  // The client itself gets its result.
  const index = (name: string): number => Object.keys(cases).indexOf(name)
  expect(ran.get('literal')!.rows).toEqual([[`password=hunter${index('literal')}marker`]])
  expect(ran.get('constants')!.rows).toEqual([[`HUNTER${index('constants')}MARKER`]])
  expect(ran.get('worker')!.rows).toEqual([[0]])
  expect(ran.get('functions')!.rows).toEqual([[25]])
  const added = ran.get('prepare')!.last.headers['x-trino-added-prepare']
  expect(decodeURIComponent(String(added).replaceAll('+', ' '))).toContain(`'hunter${index('prepare')}marker'`)
  const view = await run(url, 'SHOW CREATE TABLE memory.s.t')
  expect(view.error).toBeUndefined()

  const ids = [...ran.values()].map(({ id }) => id)
  expect(await leaksOfLog(database.url, WORDS)).toEqual([])
  expect(await leaksOfResources(url, ids, WORDS)).toEqual([])
  // The rows of a result may contain the words, because they belong to the client.
  expect(await leaksOfTables(database.url, WORDS, ['result_pages'])).toEqual([])

  const plans = (await eventsOf(database.url)).filter(({ type }) => type === 'QueryPlanned')
  const stages = plans.flatMap(({ data }) => (data as { stages: Record<string, unknown>[] }).stages)
  expect(stages.some((stage) => stage['fragment'] !== undefined)).toBe(true)
  const withheld = stages.filter((stage) => stage['withheld'] !== undefined)
  expect(withheld.length).toBeGreaterThan(5)
  for (const stage of withheld) expect(stage).toMatchObject({ fragmentDigest: expect.stringMatching(/^[0-9a-f]{64}$/) })
  expect(withheld.filter((stage) => stage['fragment'] !== undefined)).toEqual([])

  quipu.signal('SIGTERM')
  const { stdout, stderr } = await quipu.exit
  expect(stdout + stderr).toContain('query.completed')
  expect([...new Set((stdout + stderr).match(WORDS))]).toEqual([])
})
