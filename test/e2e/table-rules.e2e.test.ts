import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { READ_MODEL_SCHEMA } from '../../src/events/postgres/migrate.ts'
import { parseRulesFile } from '../../src/security/rules/rules-file.ts'
import { openFeed } from '../support/feed-client.ts'
import { writePasswordFile } from '../support/password-file.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { raw, run as follow, trinoHeaders } from '../support/statement-client.ts'

const EVERYTHING = ['SELECT', 'INSERT', 'DELETE', 'UPDATE', 'OWNERSHIP', 'GRANT_SELECT']
const eventsAnswer = z.array(z.object({ type: z.string(), data: z.record(z.string(), z.unknown()) }))
const plannedTables = z.object({
  tables: z.array(z.object({ table: z.string(), snapshot: z.string().optional() })),
  stages: z.array(z.object({ splits: z.array(z.unknown()) })),
})
/** A number that only the rules contain. */
const SECRET = 49_711

const rules = {
  catalogs: [{ user: 'eve', catalog: 'tpch', allow: 'none' }, { allow: 'all' }],
  queries: [{ user: 'root', allow: ['execute', 'view', 'kill'] }, { allow: ['execute'] }],
  schemas: [{ user: 'root', owner: true }],
  tables: [
    { user: 'root', privileges: EVERYTHING },
    { catalog: 'system', privileges: ['SELECT'] },
    {
      user: 'bob',
      catalog: 'tpch',
      table: 'nation',
      privileges: ['SELECT'],
      filter: `regionkey = 1 AND nationkey <> ${SECRET}`,
      columns: [
        { name: 'comment', allow: false },
        { name: 'name', mask: `CAST(substr(name, 1, 1) || '${SECRET}' AS varchar(25))` },
      ],
    },
    {
      user: 'bob',
      catalog: 'memory',
      table: 'guarded',
      privileges: ['SELECT', 'INSERT'],
      filter: 'id IN (SELECT y FROM memory.default.unseen)',
      filter_environment: { user: 'root' },
    },
    {
      user: 'eve',
      catalog: 'memory',
      table: 'guarded',
      privileges: ['SELECT'],
      columns: [
        {
          name: 'id',
          mask: 'id + (SELECT min(y) FROM memory.default.unseen)',
          mask_environment: { user: 'root' },
        },
      ],
    },
    { user: 'bob', catalog: 'memory', table: 'numbers', privileges: ['SELECT'], filter: 'abs(pay) < 1000' },
    {
      user: 'eve',
      catalog: 'memory',
      table: 'numbers',
      privileges: ['SELECT'],
      columns: [{ name: 'pay', mask: 'nullif(pay, 5000)' }],
    },
    {
      user: 'bob',
      catalog: 'memory',
      schema: 'default',
      table: 'v|mine',
      privileges: ['SELECT', 'INSERT', 'OWNERSHIP'],
    },
  ],
  system_session_properties: [{ property: 'query_max_run_time', allow: true }],
}

let rulesFile: string
const server = serverOfFile('error', ({ folder }) => {
  const passwords = join(folder, 'passwords')
  writePasswordFile(passwords, ['root', 'bob', 'eve'], 'pw')
  rulesFile = join(folder, 'rules.json')
  writeFileSync(rulesFile, JSON.stringify(rules), { mode: 0o644 })
  return {
    QUIPU_AUTHENTICATION: 'password',
    QUIPU_PASSWORD_FILE: passwords,
    QUIPU_ACCESS_RULES_FILE: rulesFile,
  }
})

const headersOf = (user: string, more: Record<string, string> = {}) => ({
  ...trinoHeaders,
  'x-trino-user': user,
  'x-trino-catalog': 'tpch',
  'x-trino-schema': 'tiny',
  authorization: `Basic ${Buffer.from(`${user}:pw`).toString('base64')}`,
  ...more,
})

async function run(user: string, sql: string, more?: Record<string, string>) {
  const { rows, error } = await follow(server.url, sql, headersOf(user, more))
  return error ? `${error.errorName}: ${error.message}` : rows
}

const denied = (what: string): string => `PERMISSION_DENIED: Access Denied: ${what}`

interface FileEvent {
  readonly type: string
  readonly data: {
    readonly file?: string
    readonly digest: string
    readonly before?: string
    readonly text: string
    readonly occasion?: string
    readonly entries?: number
    readonly entriesBefore?: number
    readonly files?: readonly {
      readonly file: string
      readonly digest: string
      readonly entries?: number
      readonly text: string
    }[]
  }
}

/** The file events as the log has them: no resource shows all of their data. */
async function storedFileEvents(): Promise<readonly FileEvent[]> {
  const client = new pg.Client(server.database)
  await client.connect()
  try {
    const { rows } = await client.query<{ type: string; enc: string; data: string }>(
      `select type, enc, data from ${READ_MODEL_SCHEMA}.query_events where type like 'File%' or type = 'ConfigurationLoaded' order by sequence`,
    )
    return rows.map(({ type, enc, data }) => {
      const text = enc === 'gzip' ? gunzipSync(Buffer.from(data, 'base64')).toString() : data
      return { type, data: JSON.parse(text) as FileEvent['data'] }
    })
  } finally {
    await client.end()
  }
}

/** A statement that ran while the rules allowed it. */
let allowed: Awaited<ReturnType<typeof follow>>

describe('Tables under a rules file', () => {
  it('are filtered, masked or refused as the rules say, for every kind of statement', async () => {
    allowed = await follow(server.url, 'SELECT count(*) FROM nation', headersOf('bob'))
    expect(await run('bob', 'SELECT nationkey, name FROM nation ORDER BY 1')).toEqual(
      [1, 2, 3, 17, 24].map((key, i) => [key, `${'ABCPU'[i]}${SECRET}`]),
    )
    expect(await run('bob', 'SELECT count(*) FROM nation WHERE 10 / (nationkey - 5) >= 0')).toEqual([[2]])
    expect(await run('bob', 'SELECT * FROM nation')).toBe(denied('Cannot select from table tpch.tiny.nation'))
    expect(await run('bob', 'SELECT count(*) FROM customer')).toBe(
      denied('Cannot select from table tpch.tiny.customer'),
    )
    expect(await run('eve', 'SELECT count(*) FROM nation')).toBe(denied('Cannot access catalog tpch'))
    const prepared = {
      'x-trino-prepared-statement': `p=${encodeURIComponent('SELECT comment FROM nation WHERE 1 = ?')}`,
    }
    for (const sql of ['EXECUTE p USING 1', 'DESCRIBE OUTPUT p', 'EXPLAIN EXECUTE p USING 1'])
      expect(await run('bob', sql, prepared)).toBe(denied('Cannot select from table tpch.tiny.nation'))
    expect(await run('bob', 'EXPLAIN ANALYZE SELECT comment FROM nation')).toMatch(/^PERMISSION_DENIED/)
    expect(await run('root', 'SELECT count(*) FROM nation')).toEqual([[25]])
  })

  it('appear in lists only as far as the user may see them', async () => {
    expect(await run('bob', 'SHOW TABLES')).toEqual([['nation']])
    expect(await run('bob', "SHOW COLUMNS FROM nation LIKE '%e%'")).toEqual([
      ['nationkey', 'bigint', '', ''],
      ['name', 'varchar(25)', '', ''],
      ['regionkey', 'bigint', '', ''],
    ])
    const tables = `SELECT table_name FROM tpch.information_schema.tables WHERE table_schema = 'tiny'`
    expect(await run('bob', tables)).toEqual([['nation']])
    const columns = `SELECT column_name FROM system.jdbc.columns WHERE table_cat = 'tpch' AND table_schem = 'tiny' AND table_name = 'nation'`
    expect(await run('bob', columns)).toEqual([['nationkey'], ['name'], ['regionkey']])
    expect(await run('eve', 'SHOW CATALOGS')).not.toContainEqual(['tpch'])
    expect(await run('eve', 'SELECT catalog_name FROM system.metadata.catalogs')).not.toContainEqual(['tpch'])
    expect(await run('eve', 'SHOW SCHEMAS')).toBe(denied('Cannot access catalog tpch'))
    expect(await run('eve', 'DESCRIBE nation')).toBe(denied('Cannot access catalog tpch'))
  })

  it('are changed only by users with the right', async () => {
    const memory = { 'x-trino-catalog': 'memory', 'x-trino-schema': 'default' }
    expect(await run('bob', 'CREATE TABLE other AS SELECT 1 a', memory)).toBe(
      denied('Cannot create table memory.default.other'),
    )
    expect(await run('root', 'CREATE VIEW v AS SELECT nationkey, comment FROM tpch.tiny.nation', memory)).toEqual([])
    expect(await run('bob', 'SELECT count(comment) FROM v', memory)).toEqual([[25]])
    expect(await run('bob', 'CREATE TABLE mine AS SELECT nationkey AS a FROM tpch.tiny.nation', memory)).toEqual([[5]])
    expect(await run('bob', 'INSERT INTO mine SELECT nationkey FROM v', memory)).toEqual([[25]])
    expect(await run('bob', 'CREATE SCHEMA s', memory)).toBe(denied('Cannot create schema memory.s'))
    expect(await run('eve', 'DROP TABLE mine', memory)).toBe(denied('Cannot drop table memory.default.mine'))
    expect(await run('eve', "INSERT INTO mine SELECT 'x'", memory)).toBe(
      denied('Cannot insert into table memory.default.mine'),
    )
    expect(await run('bob', 'DROP TABLE mine', memory)).toEqual([])
  })

  it('session properties are set only by users with the right, also in headers', async () => {
    const property = 'join_distribution_type'
    expect(await run('bob', `SET SESSION ${property} = 'BROADCAST'`)).toBe(
      denied(`Cannot set system session property ${property}`),
    )
    expect(await run('bob', 'SELECT 1', { 'x-trino-session': `${property}=BROADCAST` })).toBe(
      denied(`Cannot set system session property ${property}`),
    )
    expect(await run('bob', 'SELECT 1', { 'x-trino-session': 'query_max_run_time=1h' })).toEqual([[1]])
  })

  it('the text of a filter or mask never reaches the user it applies to', async () => {
    const ran = await follow(server.url, 'EXPLAIN ANALYZE VERBOSE SELECT nationkey, name FROM nation', headersOf('bob'))
    const reported = ran.answers.map((answer) => JSON.stringify(answer))
    const { paths } = JSON.parse((await raw(`${server.url}/openapi.json`)).text) as { paths: Record<string, object> }
    for (const path of Object.keys(paths).filter((each) => each.includes('{queryId}') && 'get' in paths[each]!)) {
      if (/\{(?!queryId)/.test(path)) continue
      const answer = await raw(`${server.url}${path.replace('{queryId}', ran.id)}`, { headers: headersOf('bob') })
      if (answer.status === 200) reported.push(answer.text)
    }
    expect(reported.length).toBeGreaterThan(3)
    reported.push(JSON.stringify(await run('bob', 'SELECT * FROM system.runtime.tasks')))
    reported.push(JSON.stringify(await run('bob', 'SELECT nationkey / 0 FROM nation')))
    for (const text of reported) expect(text).not.toContain(String(SECRET))
  })

  it.each([
    ['bob', 'SELECT count(*) FROM numbers WHERE id = ?', 9500, 19_500],
    ['bob', 'SELECT count(*) FROM numbers WHERE 1 / id >= 0 AND id = ?', 9500, 19_500],
    ['bob', 'SELECT count(*) FROM (SELECT id FROM numbers ORDER BY id DESC LIMIT 3) WHERE id >= ?', 9500, 19_500],
    ['bob', 'SELECT count(*) FROM numbers a JOIN (VALUES ?) b(id) ON a.id = b.id', 9500, 19_500],
    ['bob', 'SELECT count(*) FROM numbers WHERE id IN (SELECT x FROM UNNEST(ARRAY[?, ?]) u(x))', 9500, 19_500],
    ['bob', 'SELECT max(id) FROM numbers HAVING max(id) > ?', 9500, 19_500],
    ['eve', 'SELECT count(*) FROM numbers WHERE pay >= ?', 5000, 5001],
    ['eve', 'SELECT count(*) FROM numbers WHERE 1 / (pay + 1) >= 0 AND pay >= ?', 5000, 5001],
  ])(
    'the figures of a plan reveal to %s in %s no row that a filter removes or a mask hides',
    async (user, sql, is, none) => {
      const memory = { 'x-trino-catalog': 'memory', 'x-trino-schema': 'default' }
      const made = `CREATE TABLE IF NOT EXISTS numbers AS SELECT id, IF(id > 9000, 5000, id % 10) AS pay FROM UNNEST(sequence(1, 9999)) n(id)`
      await run('root', made, memory)
      /** The operators with their input and output rows, and the totals of rows and bytes read. */
      const figures = async (value: number): Promise<unknown> => {
        const explained = `EXPLAIN ANALYZE VERBOSE ${sql.replaceAll('?', String(value))}`
        const { rows, answers } = await follow(server.url, explained, headersOf(user, memory))
        const text = String(rows[0]![0])
        const { processedRows, physicalInputBytes } = answers.at(-1)!.stats
        return [text.match(/\w+\[\w+\]|\w+: [0-9]+ rows?/g), processedRows, physicalInputBytes]
      }
      expect(await figures(is)).toEqual(await figures(none))
    },
  )

  it.each([
    ['bob', 'SELECT id FROM guarded'],
    ['bob', 'INSERT INTO guarded VALUES 3'],
    ['eve', 'SELECT id FROM guarded'],
  ])('no answer reveals to %s in %s the size of a table that only a rule reads', async (user, sql) => {
    const memory = { 'x-trino-catalog': 'memory', 'x-trino-schema': 'default' }
    await run('root', "CREATE TABLE IF NOT EXISTS guarded AS SELECT id FROM UNNEST(ARRAY[BIGINT '1', 3]) n(id)", memory)
    await run(
      'root',
      'CREATE TABLE IF NOT EXISTS unseen AS SELECT 3 * y AS y FROM UNNEST(sequence(1, 7013)) n(y)',
      memory,
    )
    // More files than the table of the statement ever has here.
    for (let file = 0; file < 4; file++) await run('root', 'INSERT INTO unseen VALUES -1', memory)
    const shown: string[] = []
    for (const prefix of ['', 'EXPLAIN ', ...(sql.startsWith('SELECT') ? ['EXPLAIN ANALYZE VERBOSE '] : [])]) {
      const ran = await follow(server.url, `${prefix}${sql}`, headersOf(user, memory))
      expect(ran.error).toBeUndefined()
      shown.push(...ran.answers.map((answer) => JSON.stringify(answer)))
      for (const path of ['', '/events', '/trace']) {
        const { text } = await raw(`${server.url}/v1/query/${ran.id}${path}`, { headers: headersOf(user) })
        shown.push(text)
      }
      const answered = await raw(`${server.url}/v1/query/${ran.id}/events`, { headers: headersOf(user) })
      const events = eventsAnswer.parse(JSON.parse(answered.text))
      expect(events.some(({ type }) => type.startsWith('quipu.query.planned.'))).toBe(true)
      for (const { data } of events.filter(({ type }) => type.startsWith('quipu.task.created.')))
        expect(data['splits']).toBeLessThan(4)
      for (const { data } of events.filter(({ type }) => type.startsWith('quipu.query.planned.'))) {
        const { tables, stages } = plannedTables.parse(data)
        expect(tables.filter(({ table, snapshot }) => table === 'unseen' && snapshot !== undefined)).toEqual([])
        expect(stages.flatMap(({ splits }) => splits).length).toBeLessThan(4)
      }
    }
    shown.push(JSON.stringify(await run(user, 'SELECT * FROM system.runtime.tasks')))
    for (const text of shown) expect(text).not.toMatch(/\b70(13|14|15)\b/)
  })

  it('changed rules are in force for the next statement; a broken file leaves the old rules in force', async () => {
    writeFileSync(rulesFile, '{ "tables": [')
    await waitUntil('the refused file is recorded', async () =>
      (await storedFileEvents()).some(({ type }) => type === 'FileRefused'),
    )
    expect(await run('bob', 'SELECT count(*) FROM nation')).toEqual([[5]])
    const written = { ...rules, tables: [{ user: 'root', privileges: EVERYTHING }] }
    writeFileSync(rulesFile, JSON.stringify(written))
    await waitUntil('the new rules are in force', async () => {
      return (await run('bob', 'SELECT count(*) FROM nation')) === denied('Cannot select from table tpch.tiny.nation')
    })
    expect(readFileSync(rulesFile, 'utf8')).toContain('tables')
  })

  it('the log keeps the rules, so that the rights of an earlier query can be derived again', async () => {
    const asRoot = { headers: headersOf('root') }
    const eventsOf = async (id: string) =>
      JSON.parse((await raw(`${server.url}/v1/query/${id}/events`, asRoot)).text) as {
        type: string
        data: { files?: Record<string, string>; session?: { user: string; groups: string[] } }
      }[]
    let reported = await storedFileEvents()
    await waitUntil('the new rules are recorded', async () => {
      reported = await storedFileEvents()
      const reloaded = reported.find(({ type, data }) => type === 'FileTaken' && data.occasion === 'reload')
      return reported.some(({ type, data }) => type === 'FileKept' && data.digest === reloaded?.data.digest)
    })
    const textOf = (digest: string): string =>
      reported.flatMap(({ type, data }) => (type === 'FileKept' && data.digest === digest ? [data.text] : [])).join('')
    /** Parses the rules that the record of a query names. @returns the rights of its session */
    async function derived(id: string, table: string) {
      const events = await eventsOf(id)
      const { session } = events[0]!.data
      const files = events.find(({ type }) => type.startsWith('quipu.query.planned'))!.data.files!
      const text = textOf(files['rules']!)
      expect(createHash('sha256').update(text).digest('hex')).toBe(files['rules'])
      return parseRulesFile(text).objects(session!).table('tpch', 'tiny', table)
    }
    expect((await derived(allowed.id, 'nation')).privileges).toEqual(new Set(['SELECT']))
    expect((await derived(allowed.id, 'nation')).filter?.sql).toContain(String(SECRET))
    const { id } = await follow(server.url, 'SELECT 1', headersOf('bob'))
    expect((await derived(id, 'nation')).privileges).toEqual(new Set())

    const entries = Object.values(rules).flat().length
    const atStart = reported.find(({ type }) => type === 'ConfigurationLoaded')!.data.files!
    const rulesAtStart = atStart.find(({ file }) => file === 'rules')!
    expect(rulesAtStart).toMatchObject({ entries })
    expect(atStart.find(({ file }) => file === 'passwords')).toMatchObject({ text: 'secret' })
    expect(reported.filter(({ type }) => type === 'FileTaken').map(({ data }) => data)).toMatchObject([
      {
        file: 'rules',
        occasion: 'reload',
        entries: entries - rules.tables.length + 1,
        entriesBefore: entries,
        before: rulesAtStart.digest,
      },
    ])
    expect(reported.filter(({ type }) => type === 'FileRefused')).toMatchObject([
      { data: { file: 'rules', reason: expect.stringMatching(/^line 1: /), inForce: rulesAtStart.digest } },
    ])
    // A user that sees all events sees the event of the change, but no text of the rules.
    const feed = await openFeed(`${server.url}/v1/events?after=beginning&type=FileTaken,FileKept`, asRoot.headers)
    await feed.received(reported.filter(({ type }) => type === 'FileTaken' || type === 'FileKept').length)
    feed.drop()
    expect(JSON.stringify(feed.cloudEvents())).toContain('quipu.file.kept.v1')
    expect(JSON.stringify(feed.cloudEvents())).not.toContain(String(SECRET))
  })
})
