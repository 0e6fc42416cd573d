import { beforeAll, describe, expect, it } from 'vitest'
import { processesOf } from '../support/quipu-process.ts'
import { pythonClients, trinoCli } from '../support/real-clients.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { storedValues } from '../support/sql/stored-values.ts'
import { follow, post, raw, run, trinoHeaders } from '../support/statement-client.ts'

const server = serverOfFile()
let url: string
beforeAll(() => {
  url = server.url
})

/** The end of a statement, without the fields that depend on when and where it ran. */
async function end(sql: string, headers = trinoHeaders as Readonly<Record<string, string>>) {
  const { rows, columns, error, last } = await run(url, sql, headers)
  const { updateType, updateCount, stats } = last.json
  return {
    rows,
    columns: columns?.map(({ name, type }) => `${name} ${type}`),
    updateType,
    updateCount,
    state: stats.state,
    error: error?.errorName,
  }
}

async function rowsOf(sql: string): Promise<unknown> {
  const { rows, error } = await run(url, sql)
  return error ?? rows
}

const counted = (updateType: string, rows: number) => ({
  rows: [[rows]],
  columns: ['rows bigint'],
  updateType,
  updateCount: rows,
  state: 'FINISHED',
  error: undefined,
})
const defined = (updateType: string) => ({
  rows: [],
  columns: [],
  updateType,
  updateCount: undefined,
  state: 'FINISHED',
  error: undefined,
})

describe('Statements that write', () => {
  it("create, fill, read and drop tables, each with Trino's answer", { timeout: 240_000 }, async () => {
    expect(await end('CREATE SCHEMA memory.shop')).toEqual(defined('CREATE SCHEMA'))
    expect(await end('CREATE TABLE memory.shop.n AS SELECT * FROM nation')).toEqual(counted('CREATE TABLE', 25))
    expect(await end('CREATE TABLE IF NOT EXISTS memory.shop.n AS SELECT 1 x')).toEqual(counted('CREATE TABLE', 0))
    expect(await end("INSERT INTO memory.shop.n (name, nationkey) VALUES ('ATLANTIS', 25), (NULL, 26)")).toEqual(
      counted('INSERT', 2),
    )
    expect(await rowsOf('SHOW STATS FOR (SELECT nationkey, name FROM memory.shop.n)')).toEqual([
      ['nationkey', null, null, 0, null, '0', '26'],
      ['name', expect.any(Number), null, 1 / 27, null, null, null],
      [null, null, null, null, 27, null, null],
    ])
    expect(
      await rowsOf('SELECT nationkey, name, regionkey FROM memory.shop.n WHERE nationkey > 23 ORDER BY 1'),
    ).toEqual([
      [24, 'UNITED STATES', 1],
      [25, 'ATLANTIS', null],
      [26, null, null],
    ])
    expect(await end("CREATE TABLE memory.shop.e (a integer, b varchar(3)) WITH (format = 'parquet')")).toEqual(
      defined('CREATE TABLE'),
    )
    expect(await end("INSERT INTO memory.shop.e VALUES (1, 'abc  ')")).toEqual(counted('INSERT', 1))
    expect(await end("INSERT INTO memory.shop.e VALUES (1, 'abcd')")).toMatchObject({ error: 'INVALID_CAST_ARGUMENT' })
    expect(await end('INSERT INTO memory.shop.e SELECT 5000000000, NULL')).toMatchObject({
      error: 'NUMERIC_VALUE_OUT_OF_RANGE',
    })
    expect(await end('INSERT INTO memory.shop.e SELECT 1, NULL WHERE false')).toEqual(counted('INSERT', 0))
    expect(await rowsOf('SELECT * FROM memory.shop.e')).toEqual([[1, 'abc']])
    expect(await end('DROP SCHEMA memory.shop')).toMatchObject({ error: 'SCHEMA_NOT_EMPTY' })
    expect(await end('DROP TABLE memory.shop.e')).toEqual(defined('DROP TABLE'))
    expect(await end('DROP TABLE memory.shop.e')).toMatchObject({ error: 'TABLE_NOT_FOUND' })
    expect(await end('DROP TABLE IF EXISTS memory.shop.e')).toEqual(defined('DROP TABLE'))
    expect(await end('DROP SCHEMA memory.shop CASCADE')).toEqual(defined('DROP SCHEMA'))
    expect(await rowsOf("SHOW SCHEMAS FROM memory LIKE 'shop'")).toEqual([])
  })

  it('store values of every type unchanged', { timeout: 240_000 }, async () => {
    const select = `SELECT ${storedValues.map((value, i) => `${value} AS c${i}`).join(', ')}`
    const headers = { ...trinoHeaders, 'X-Trino-Client-Capabilities': 'PARAMETRIC_DATETIME' }
    const wanted = await run(url, select, headers)
    expect(wanted.error).toBeUndefined()
    expect(await rowsOf(`CREATE TABLE memory.default.every_type AS ${select}`)).toEqual([[1]])
    expect(await rowsOf(`INSERT INTO memory.default.every_type ${select}`)).toEqual([[1]])
    const stored = await run(url, 'SELECT * FROM memory.default.every_type', headers)
    expect(stored.rows).toEqual([...wanted.rows, ...wanted.rows])
    expect(stored.columns).toEqual(wanted.columns)
    expect(await rowsOf('DROP TABLE memory.default.every_type')).toEqual([])
  })

  it('create views that resolve names by the catalog and schema of their creation', { timeout: 240_000 }, async () => {
    const view = 'CREATE VIEW memory.default.far AS SELECT name, nationkey FROM nation WHERE nationkey > 22'
    expect(await end(view)).toEqual(defined('CREATE VIEW'))
    expect(await end(view)).toMatchObject({ error: 'TABLE_ALREADY_EXISTS' })
    expect(await end(view.replace('> 22', '> 23').replace('CREATE', 'CREATE OR REPLACE'))).toEqual(
      defined('CREATE VIEW'),
    )
    const elsewhere = { ...trinoHeaders, 'x-trino-catalog': 'memory', 'x-trino-schema': 'default' }
    expect((await run(url, 'SELECT name FROM far', elsewhere)).rows).toEqual([['UNITED STATES']])
    expect(
      await rowsOf("SELECT table_name, table_type FROM memory.information_schema.tables WHERE table_name = 'far'"),
    ).toEqual([['far', 'VIEW']])
    expect(await rowsOf('SHOW CREATE VIEW memory.default.far')).toEqual([
      [
        'CREATE VIEW memory.default.far SECURITY DEFINER AS\nSELECT\n  name\n, nationkey\nFROM\n  nation\nWHERE (nationkey > 23)',
      ],
    ])
    expect(await end('DROP TABLE memory.default.far')).toMatchObject({ error: 'GENERIC_USER_ERROR' })
    expect(await end('DROP VIEW memory.default.far')).toEqual(defined('DROP VIEW'))
    expect(await end('DROP VIEW IF EXISTS memory.default.far')).toEqual(defined('DROP VIEW'))
  })

  it(
    'take effect only when a client follows, and only once if several clients follow',
    { timeout: 240_000 },
    async () => {
      await end('CREATE TABLE memory.default.once (n bigint)')
      const insert = 'INSERT INTO memory.default.once VALUES 1'
      const lost = await post(url, insert)
      const followed = await post(url, insert)
      let last = followed.json
      const answers: string[] = []
      while (last.nextUri !== undefined) {
        const at = last.nextUri
        const twice = await Promise.all([raw(at), raw(at)])
        last = twice[1].json
        // One request may get no result yet, and the other the end.
        answers.push(...twice.filter((answer) => answer.json.nextUri === undefined).map((answer) => answer.text))
        if (last.nextUri === undefined) answers.push((await raw(at)).text)
      }
      expect(answers.length).toBeGreaterThan(1)
      expect(new Set(answers).size).toBe(1)
      expect(await rowsOf('SELECT count(*) FROM memory.default.once')).toEqual([[1]])
      // No client followed it; the successful cancel shows that it still waits.
      expect((await raw(lost.json.nextUri!, { method: 'DELETE' })).status).toBe(204)
      expect((await raw(lost.json.nextUri!)).json.error?.errorName).toBe('USER_CANCELED')
      expect(await rowsOf('SELECT count(*) FROM memory.default.once')).toEqual([[1]])
      await end('DROP TABLE memory.default.once')
    },
  )

  it('cannot be ended early with a part of their rows', { timeout: 240_000 }, async () => {
    await end('CREATE TABLE memory.default.part (n bigint)')
    const worker = processesOf(server.data).children[1]!
    // While the worker is stopped the write cannot end.
    process.kill(worker, 'SIGSTOP')
    const first = await post(url, 'INSERT INTO memory.default.part SELECT orderkey FROM orders')
    let last = first
    while (last.json.partialCancelUri === undefined) last = await raw(last.json.nextUri!)
    const refused = await raw(last.json.partialCancelUri, { method: 'DELETE' })
    process.kill(worker, 'SIGCONT')
    expect(refused.status).toBe(409)
    expect((await follow(last)).rows).toEqual([[15_000]])
    expect(await rowsOf('SELECT count(*) FROM memory.default.part')).toEqual([[15_000]])
    await end('DROP TABLE memory.default.part')
  })

  it('are refused in an open transaction', async () => {
    const started = await run(url, 'START TRANSACTION', { ...trinoHeaders, 'x-trino-transaction-id': 'NONE' })
    const id = String(started.last.headers['x-trino-started-transaction-id'])
    const inside = { ...trinoHeaders, 'x-trino-transaction-id': id }
    expect(await end('CREATE TABLE memory.default.t AS SELECT 1 x', inside)).toMatchObject({
      error: 'AUTOCOMMIT_WRITE_CONFLICT',
    })
  })

  it('abort their transaction when they fail, so that COMMIT fails', async () => {
    const begin = async (user: string) => {
      const started = await run(url, 'START TRANSACTION', { ...trinoHeaders, 'x-trino-user': user })
      const id = String(started.last.headers['x-trino-started-transaction-id'])
      return { ...trinoHeaders, 'x-trino-user': user, 'x-trino-transaction-id': id }
    }
    const inside = await begin('ann')
    expect(await end('SELEC 1', inside)).toMatchObject({ error: 'SYNTAX_ERROR' })
    expect(await end('SELECT 1', inside)).toMatchObject({ rows: [[1]] })
    expect(await end('SELECT nope FROM nation', inside)).toMatchObject({ error: 'COLUMN_NOT_FOUND' })
    for (const sql of ['SELECT 1', 'SHOW TABLES', 'START TRANSACTION', 'DELETE FROM memory.default.none'])
      expect(await end(sql, inside), sql).toMatchObject({ error: 'TRANSACTION_ALREADY_ABORTED' })
    // Another user cannot use or abort it.
    expect(await end('SELECT 1', { ...inside, 'x-trino-user': 'bob' })).toMatchObject({ rows: [[1]] })
    const commit = await run(url, 'COMMIT', inside)
    expect(commit.error).toMatchObject({
      errorName: 'TRANSACTION_ALREADY_ABORTED',
      message: 'Current transaction has already been aborted',
    })
    expect(commit.last.headers['x-trino-clear-transaction-id']).toBe('true')

    const other = await begin('ann')
    expect(await end('SELECT 1 / 0', other)).toMatchObject({ error: 'DIVISION_BY_ZERO' })
    const rollback = await run(url, 'ROLLBACK', other)
    expect([rollback.error, rollback.last.headers['x-trino-clear-transaction-id']]).toEqual([undefined, 'true'])
  })

  it('fail with UNKNOWN_TRANSACTION in a transaction that has ended or never was', async () => {
    const started = await run(url, 'START TRANSACTION', { ...trinoHeaders, 'x-trino-transaction-id': 'NONE' })
    const ended = String(started.last.headers['x-trino-started-transaction-id'])
    const inside = (id: string) => ({ ...trinoHeaders, 'x-trino-transaction-id': id })
    expect(await end('SELECT 1', inside(ended))).toMatchObject({ rows: [[1]] })
    await end('COMMIT', inside(ended))
    for (const id of [ended, 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee']) {
      const { error } = await run(url, 'SELECT 1', inside(id))
      expect(error).toMatchObject({
        errorName: 'UNKNOWN_TRANSACTION',
        message: `Unknown transaction ID: ${id}. Possibly expired? Commands ignored until end of transaction block`,
      })
      for (const sql of ['COMMIT', 'ROLLBACK']) {
        const { error: refused, last } = await run(url, sql, inside(id))
        expect([refused?.errorName, last.headers['x-trino-clear-transaction-id']]).toEqual(['UNKNOWN_TRANSACTION', 'true']) // prettier-ignore
      }
      expect(await end('START TRANSACTION', inside(id))).toMatchObject({ error: 'NOT_SUPPORTED' })
    }
  })

  it('are recorded with the tables that they wrote, and EXECUTE accepts parameters', { timeout: 240_000 }, async () => {
    await end('CREATE TABLE memory.default.listed (a bigint, b varchar)')
    const prepared = {
      ...trinoHeaders,
      'x-trino-prepared-statement': `p=${encodeURIComponent('INSERT INTO memory.default.listed SELECT nationkey, ? FROM nation')}`,
    }
    expect(await end("EXECUTE p USING 'x'", prepared)).toEqual(counted('INSERT', 25))
    const { id } = await run(url, 'INSERT INTO memory.default.listed (a) SELECT regionkey FROM region')
    const info = (await raw(`${url}/v1/query/${id}`)).json as unknown as Record<string, unknown>
    expect(info).toMatchObject({ updateType: 'INSERT', updateCount: 5, queryType: 'INSERT' })
    expect(info['outputs']).toEqual([
      expect.objectContaining({ catalogName: 'memory', schema: 'default', table: 'listed' }),
    ])
    await end('DROP TABLE memory.default.listed')
  })
})

describe('Published clients', () => {
  it('the Trino CLI writes and reads', { timeout: 240_000 }, async ({ skip }) => {
    const cli = await trinoCli()
    if (!cli) return skip()
    const statements = [
      'CREATE TABLE memory.default.cli AS SELECT * FROM tpch.tiny.region',
      "INSERT INTO memory.default.cli VALUES (5, 'X', 'y')",
      'SELECT count(*) FROM memory.default.cli',
      'DROP TABLE memory.default.cli',
    ]
    const { code, stdout, stderr } = await cli(['--server', url, '--execute', statements.join('; ')])
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '"6"\n' })
    expect(stderr).toContain('CREATE TABLE: 5 rows\nINSERT: 1 row\nDROP TABLE\n')
  })

  it('the Python client writes and reads', { timeout: 240_000 }, async ({ skip }) => {
    const python = await pythonClients()
    if (!python) return skip()
    const script = [
      'import sys, trino',
      "cur = trino.dbapi.connect(host=sys.argv[1], port=int(sys.argv[2]), user='x', catalog='memory', schema='default').cursor()",
      'for sql in sys.argv[3:]:',
      '    cur.execute(sql)',
      '    print(cur.fetchall(), cur.update_type, cur.rowcount)',
    ].join('\n')
    const { hostname, port } = new URL(url)
    const statements = [
      'CREATE TABLE py AS SELECT * FROM tpch.tiny.region',
      'INSERT INTO py SELECT * FROM py',
      'DROP TABLE py',
    ]
    const { code, stdout, stderr } = await python(script, [hostname, port, ...statements])
    expect({ code, stdout }, stderr).toEqual({
      code: 0,
      stdout: '[[5]] CREATE TABLE 5\n[[5]] INSERT 5\n[] DROP TABLE -1\n',
    })
  })
})
