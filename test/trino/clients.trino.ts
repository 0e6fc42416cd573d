import { beforeAll, describe, expect, it } from 'vitest'
import { BasicAuth, Trino } from 'trino-client'
import { curlRows, prestoClientRows } from '../support/client-rows.ts'
import { pythonClients, trinoCli } from '../support/real-clients.ts'
import { rowReaders } from '../support/row-readers.ts'
import { gatewayOfFile, trinoUrl, untilHealthy } from './gateway.ts'

const gateway = gatewayOfFile()
beforeAll(() => untilHealthy(gateway))

const readers = await rowReaders()
const cli = await trinoCli()
const python = await pythonClients()

const STATEMENTS = {
  'a few rows': 'SELECT name, regionkey FROM tpch.tiny.nation ORDER BY name',
  'no rows': 'SELECT name FROM tpch.tiny.nation WHERE false',
  types: `SELECT true, tinyint '1', 42, bigint '9007199254740993', real '1.5', 1e0, decimal '12.30', 'text', cast('ab' AS char(4)),
    date '2020-02-29', timestamp '2020-01-02 03:04:05.678', cast(NULL AS varchar) FROM tpch.tiny.region`,
  '60,175 rows': 'SELECT orderkey, linenumber, quantity, comment FROM tpch.tiny.lineitem ORDER BY orderkey, linenumber',
} as const

describe.each([...readers])('%s', (_, reader) => {
  it.each(Object.entries(STATEMENTS))('reads %s as from Trino', async (_what, sql) => {
    const direct = await reader.read(trinoUrl, sql)
    const through = await reader.read(gateway.url, sql)
    // The CLI writes the time to standard error.
    expect([through.code, through.stdout]).toEqual([0, direct.stdout])
  })

  it('reports an error as from Trino', async () => {
    const sql = 'SELECT 1,\n  nope FROM tpch.tiny.nation'
    const direct = await reader.read(trinoUrl, sql)
    const through = await reader.read(gateway.url, sql)
    expect(direct.code).not.toBe(0)
    expect(through.code).toBe(direct.code)
    const plain = (text: string): string | undefined => /line 2:3: Column 'nope' cannot be resolved/.exec(text)?.[0]
    expect(plain(through.stderr)).toBe(plain(direct.stderr))
  })
})

describe.runIf(cli)('Trino CLI', () => {
  it('keeps the session from statement to statement', async () => {
    const script = `USE tpch.tiny; PREPARE p FROM SELECT name FROM region WHERE regionkey = ?; EXECUTE p USING 2;
      SET SESSION iceberg.target_max_file_size = '7MB'; CREATE SCHEMA IF NOT EXISTS memory.cli;
      CREATE TABLE memory.cli.t AS SELECT * FROM nation; INSERT INTO memory.cli.t SELECT * FROM nation; SELECT count(*) FROM memory.cli.t; DROP TABLE memory.cli.t`
    const execute = (base: string) => cli!(['--server', base, '--output-format', 'CSV_UNQUOTED', '--execute', script])
    const [direct, through] = [await execute(trinoUrl), await execute(gateway.url)]
    expect(direct.stdout).toContain('ASIA')
    expect(through.code).toBe(direct.code)
    expect(through.stdout).toBe(direct.stdout)
  })
})

describe.runIf(python)('Python clients', () => {
  const both = async (script: string) => {
    const [direct, through] = [await python!(script, [trinoUrl]), await python!(script, [gateway.url])]
    expect(direct.stderr).toBe('')
    expect(through).toEqual(direct)
    return through.stdout
  }
  const connect = `
import sys, trino
host, port = sys.argv[1].split('://')[1].split(':')
conn = trino.dbapi.connect(host=host, port=int(port), user='py', catalog='tpch', schema='tiny')
cur = conn.cursor()
`

  it('trino sends parameters, converts types, counts changes and reports errors', async () => {
    const out = await both(`${connect}
cur.execute('SELECT name, nationkey FROM nation WHERE nationkey = ?', (3,)); print(cur.fetchall(), cur.description)
cur.execute("SELECT decimal '1.10', timestamp '2020-01-02 03:04:05.678 UTC', array[1], map(array['k'], array[1]), row(1, 'x'), X'01' FROM region LIMIT 1"); print(cur.fetchall())
cur.execute('CREATE SCHEMA IF NOT EXISTS memory.py'); cur.fetchall()
cur.execute('CREATE TABLE memory.py.t AS SELECT * FROM nation'); print(cur.fetchall(), cur.rowcount, cur.update_type)
cur.execute('INSERT INTO memory.py.t SELECT * FROM nation'); print(cur.fetchall(), cur.rowcount, cur.update_type)
cur.execute('DROP TABLE memory.py.t'); cur.fetchall()
try:
  cur.execute('SELECT nope FROM nation'); cur.fetchall()
except trino.exceptions.TrinoUserError as e: print(e.error_name, e.error_code, e.error_type, e.message)
`)
    expect(out).toContain('CANADA')
  })
  it('trino cancels a running query', async () => {
    const { stdout } = await python!(
      `${connect}
import threading, time
done = []
def go():
  try:
    cur.execute('SELECT count(*) FROM sf1.lineitem a, sf1.lineitem b WHERE a.comment > b.comment'); cur.fetchall()
  except Exception as e: done.append(getattr(e, 'error_name', type(e).__name__))
t = threading.Thread(target=go, daemon=True); t.start()
while not cur.query_id: time.sleep(0.05)
time.sleep(2); cur.cancel(); t.join(60); print(done or 'ended')`,
      [gateway.url],
    )
    expect(stdout).toMatch(/USER_CANCELED|ended/)
  })
  it('presto-python-client reads rows', async () => {
    const out = await python!(
      `
import sys, prestodb
host, port = sys.argv[1].split('://')[1].split(':')
cur = prestodb.dbapi.connect(host=host, port=int(port), user='old', catalog='tpch', schema='tiny').cursor()
cur.execute('SELECT name, regionkey FROM nation WHERE nationkey < 2 ORDER BY 1')
print(cur.fetchall())
cur.execute('SELECT orderkey, linenumber FROM lineitem')
print(len(cur.fetchall()))`,
      [gateway.url],
    )
    expect([out.stdout, out.stderr]).toEqual(["[['ALGERIA', 0], ['ARGENTINA', 1]]\n60175\n", ''])
  })
})

describe('trino-client for JavaScript', () => {
  const client = (server: string) =>
    Trino.create({ server, catalog: 'tpch', schema: 'tiny', auth: new BasicAuth('js') })
  const read = async (server: string, sql: string) => {
    const rows: unknown[] = []
    const errors: unknown[] = []
    let columns: unknown
    for await (const result of await client(server).query(sql)) {
      rows.push(...(result.data ?? []))
      columns ??= result.columns
      if (result.error) errors.push([result.error.errorName, result.error.message])
    }
    return { rows, columns, errors }
  }
  it.each([...Object.values(STATEMENTS), 'SELECT nope FROM nation'])('reads as from Trino: %s', async (sql) => {
    expect(await read(gateway.url, sql)).toEqual(await read(trinoUrl, sql))
  })
})

describe.each(['presto', 'trino'] as const)('presto-client for JavaScript, as %s', (engine) => {
  const execute = (query: string) => prestoClientRows(gateway.url, engine, query)
  it('reads rows', async () => {
    expect(await execute('SELECT name FROM nation ORDER BY name LIMIT 2')).toEqual([['ALGERIA'], ['ARGENTINA']])
    expect(await execute('SELECT orderkey, comment FROM lineitem')).toHaveLength(60_175)
  })
  it('reports an error with its line and column', async () => {
    await expect(execute('SELECT nope FROM nation')).rejects.toMatchObject({
      message: expect.stringContaining("line 1:8: Column 'nope' cannot be resolved"),
    })
  })
})

describe('curl with X-Engine headers', () => {
  it('reads rows', async () => {
    const rows = await curlRows(gateway.url, 'SELECT name FROM region ORDER BY regionkey')
    expect(rows).toEqual([['AFRICA'], ['AMERICA'], ['ASIA'], ['EUROPE'], ['MIDDLE EAST']])
  })
})
