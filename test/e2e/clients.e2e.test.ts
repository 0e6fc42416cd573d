import { describe, expect, it } from 'vitest'
import { BasicAuth, Trino } from 'trino-client'
import { curlRows, prestoClientRows } from '../support/client-rows.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { pythonClients, trinoCli, type Finished } from '../support/real-clients.ts'

const server = serverOfFile('warn')
const cli = await trinoCli()
const python = await pythonClients()

/** 100,000 rows, and a sum that proves that each came once. */
const MANY = 'SELECT a.n * 1000 + b.n FROM UNNEST(sequence(0, 99)) AS a(n) CROSS JOIN UNNEST(sequence(1, 1000)) AS b(n)'
const SUM = (100_000 * 100_001) / 2
const SLOW = 'SELECT count(*) FROM lineitem a, lineitem b, nation c WHERE a.comment > b.comment'

const TYPES = `SELECT true, tinyint '1', 42, bigint '9007199254740993', real '1.5', 1e0, decimal '12.30', 'text', cast('ab' AS char(4)),
  X'0102', date '2020-02-29', time '01:02:03.456', timestamp '2020-01-02 03:04:05.678',
  timestamp '2020-01-02 03:04:05.678 UTC', interval '1' day, interval '2' month, array[1, 2], map(array['k'], array[1]),
  cast(row(1, 'x') AS row(a integer, b varchar)), json '{"a": 1}', uuid '12151fd2-7586-11e9-8f9e-2a86e4085a59', cast(NULL AS varchar)`

describe.runIf(cli)('Trino CLI 476', () => {
  const execute = (sql: string, ...more: string[]): Promise<Finished> =>
    cli!([
      '--server',
      server.url,
      '--catalog',
      'tpch',
      '--schema',
      'tiny',
      '--output-format',
      'CSV_UNQUOTED',
      ...more,
      '--execute',
      sql,
    ])

  it('reads the rows of a query', async () => {
    const { stdout, code } = await execute('SELECT name FROM nation ORDER BY name LIMIT 2')
    expect([code, stdout]).toEqual([0, 'ALGERIA\nARGENTINA\n'])
  })
  it('shows values of all types', async () => {
    const { stdout, code } = await execute(TYPES)
    expect(code).toBe(0)
    expect(stdout).toBe(
      'true,1,42,9007199254740993,1.5,1.0,12.30,text,ab  ,01 02,2020-02-29,01:02:03.456,2020-01-02 03:04:05.678,2020-01-02 03:04:05.678 UTC,1 00:00:00.000,0-2,[1, 2],{k=1},{a=1, b=x},{"a":1},12151fd2-7586-11e9-8f9e-2a86e4085a59,\n',
    )
  })
  it('reads 100,000 rows over pages', async () => {
    const { stdout, code } = await execute(MANY)
    const rows = stdout.trimEnd().split('\n')
    expect([code, rows.length, rows.reduce((sum, row) => sum + Number(row), 0)]).toEqual([0, 100_000, SUM])
  })
  it('shows the line and the column of an error', async () => {
    const { stderr, code } = await execute('SELECT 1,\n  nope FROM nation')
    expect(code).toBe(1)
    expect(stderr).toMatch(/line 2:3: Column 'nope' cannot be resolved/)
  })
  it('keeps the session from statement to statement: USE, PREPARE, SET SESSION', async () => {
    const { stdout, stderr } = await execute(
      `USE tpch.tiny; PREPARE p FROM SELECT name FROM region WHERE regionkey = ?; EXECUTE p USING 2; SET SESSION query_max_run_time = '7m'; SHOW SESSION LIKE 'query_max_run_time'`,
    )
    expect(stderr).not.toMatch(/failed/)
    expect(stdout).toContain('ASIA')
    expect(stdout).toContain('7m')
  })
})

describe.runIf(python)('Python clients', () => {
  const script = (body: string): string => `
import sys, json, decimal, trino
host, port = sys.argv[1].split('://')[1].split(':')
conn = trino.dbapi.connect(host=host, port=int(port), user='py', catalog='tpch', schema='tiny')
cur = conn.cursor()
${body}`
  const execute = (body: string): Promise<Finished> => python!(script(body), [server.url])

  it('trino sends parameters and converts types', async () => {
    const { stdout, stderr } = await execute(`
cur.execute('SELECT name FROM nation WHERE nationkey = ?', (3,))
print(cur.fetchall(), cur.description[0][:2])
cur.execute("""${TYPES}""")
row = cur.fetchone()
print(type(row[6]).__name__, row[6], row[3], row[10], row[16], row[17], row[21])`)
    expect(stderr).toBe('')
    expect(stdout).toBe(
      "[['CANADA']] ('name', 'varchar(25)')\nDecimal 12.30 9007199254740993 2020-02-29 [1, 2] {'k': 1} None\n",
    )
  })
  it('trino reads 100,000 rows over pages', async () => {
    const { stdout } = await execute(
      `cur.execute("${MANY}"); rows = cur.fetchall(); print(len(rows), sum(r[0] for r in rows))`,
    )
    expect(stdout).toBe(`100000 ${SUM}\n`)
  })
  it('trino reports an error with its line and column', async () => {
    const { stdout } = await execute(`
try:
  cur.execute('SELECT nope FROM nation'); cur.fetchall()
except trino.exceptions.TrinoUserError as e:
  print(e.error_name, e.error_code, e.message)`)
    expect(stdout).toBe("COLUMN_NOT_FOUND 47 line 1:8: Column 'nope' cannot be resolved\n")
  })
  it('trino cancels a running query', async () => {
    const { stdout } = await execute(`
import threading, time
done = []
def go():
  try:
    cur.execute('${SLOW}'); cur.fetchall()
  except Exception as e: done.append(getattr(e, 'error_name', type(e).__name__))
t = threading.Thread(target=go, daemon=True); t.start()
while not cur.query_id: time.sleep(0.05)
time.sleep(0.5); cur.cancel(); t.join(60); print(done or 'ended')`)
    expect(stdout).toMatch(/USER_CANCELED|ended/)
  })
  it('presto-python-client reads the rows of a query', async () => {
    const { stdout, stderr } = await python!(
      `
import sys, prestodb
host, port = sys.argv[1].split('://')[1].split(':')
cur = prestodb.dbapi.connect(host=host, port=int(port), user='old', catalog='tpch', schema='tiny').cursor()
cur.execute('SELECT name, regionkey FROM nation WHERE nationkey < 2 ORDER BY 1')
print(cur.fetchall())`,
      [server.url],
    )
    expect([stdout, stderr]).toEqual(["[['ALGERIA', 0], ['ARGENTINA', 1]]\n", ''])
  })
})

describe('trino-client for JavaScript', () => {
  const client = () => Trino.create({ server: server.url, catalog: 'tpch', schema: 'tiny', auth: new BasicAuth('js') })

  it('reads 100,000 rows over pages', async () => {
    let rows = 0
    let sum = 0
    for await (const result of await client().query(MANY)) {
      for (const [n] of result.data ?? []) {
        rows++
        sum += Number(n)
      }
    }
    expect([rows, sum]).toEqual([100_000, SUM])
  })
  it('reports an error with its line and column', async () => {
    const results = await client().query('SELECT nope FROM nation')
    const errors: unknown[] = []
    for await (const result of results) if (result.error) errors.push(result.error)
    expect(errors).toMatchObject([{ errorName: 'COLUMN_NOT_FOUND', errorLocation: { lineNumber: 1, columnNumber: 8 } }])
  })
  it('cancels a running query', async () => {
    const trino = client()
    // The iterator waits for rows: the result is too long to be fetched before the cancel.
    const results = await trino.query('SELECT a.comment FROM lineitem a CROSS JOIN nation b')
    const first = await results.next()
    const id = (first.value as { id: string }).id
    await trino.cancel(id)
    const info = (await trino.queryInfo(id)) as unknown as { state: string }
    expect(info.state).toBe('FAILED')
  })
})

describe.each(['presto', 'trino'] as const)('presto-client for JavaScript, as %s', (engine) => {
  const execute = (query: string) => prestoClientRows(server.url, engine, query)

  it('reads the rows of a query', async () => {
    expect(await execute('SELECT name FROM nation ORDER BY name LIMIT 2')).toEqual([['ALGERIA'], ['ARGENTINA']])
  })
  it('reports an error with its line and column', async () => {
    await expect(execute('SELECT nope FROM nation')).rejects.toMatchObject({
      message: expect.stringContaining("line 1:8: Column 'nope' cannot be resolved"),
    })
  })
})

describe('curl with X-Engine headers', () => {
  it('reads the rows of a query', async () => {
    const rows = await curlRows(server.url, 'SELECT name FROM region ORDER BY regionkey')
    expect(rows).toEqual([['AFRICA'], ['AMERICA'], ['ASIA'], ['EUROPE'], ['MIDDLE EAST']])
  })
})
