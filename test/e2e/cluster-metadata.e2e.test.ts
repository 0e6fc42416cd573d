import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { writePasswordFile } from '../support/password-file.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { catalogsOf } from '../support/server-catalogs.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { raw, run, trinoHeaders } from '../support/statement-client.ts'

/*
 * A gateway under access rules, and behind it two clusters: another Quipu, and a server that accepts connections and
 * says nothing.
 */

const rules = {
  system_information: [{ user: 'root', allow: ['read'] }],
  // The owner of a schema knows of all its tables.
  schemas: [{ user: 'root', owner: true }],
  tables: [
    { user: 'root', privileges: ['SELECT', 'INSERT', 'DELETE', 'UPDATE', 'OWNERSHIP', 'GRANT_SELECT'] },
    { catalog: 'system', privileges: ['SELECT'] },
    { user: 'ana', catalog: 'far', schema: 'tiny', table: 'region', privileges: ['SELECT'], filter: 'regionkey = 1' },
    {
      user: 'ana',
      catalog: 'far',
      schema: 'tiny',
      table: 'nation',
      privileges: ['SELECT'],
      columns: [{ name: 'comment', allow: false }],
    },
    {
      user: 'ana',
      catalog: 'far',
      schema: 'tiny',
      table: 'part',
      privileges: ['SELECT'],
      columns: [{ name: 'not_there', allow: false }],
    },
    { user: 'ana', catalog: 'local', privileges: ['SELECT'] },
  ],
}

const cluster = serverOfFile('error', (own) =>
  catalogsOf(own, { far: { connector: 'tpch' }, warehouse: { connector: 'memory' }, local: { connector: 'tpch' } }),
)
const gateway = serverOfFile('error', (own) => {
  const clusters = join(own.folder, 'clusters')
  mkdirSync(clusters)
  const write = (name: string, content: unknown): void =>
    writeFileSync(join(clusters, `${name}.json`), JSON.stringify(content), { mode: 0o644 })
  write('trino-a', { url: cluster.url, group: 'big', catalogs: ['far', 'warehouse'] })
  // A discard port: a connection is refused or has no answer.
  write('trino-b', { url: 'http://127.0.0.1:9', group: 'small' })
  writeFileSync(join(own.folder, 'rules.json'), JSON.stringify(rules), { mode: 0o644 })
  const passwords = join(own.folder, 'passwords')
  writePasswordFile(passwords, ['root', 'ana'], 'pw')
  return {
    ...catalogsOf(own, { local: { connector: 'tpch' } }),
    QUIPU_AUTHENTICATION: 'password',
    QUIPU_PASSWORD_FILE: passwords,
    QUIPU_CLUSTERS_DIR: clusters,
    QUIPU_CLUSTERS_BEAT_MS: '1s',
    QUIPU_ACCESS_RULES_FILE: join(own.folder, 'rules.json'),
  }
})

const as = (user: string, more: Readonly<Record<string, string>> = {}) => ({
  ...trinoHeaders,
  'x-trino-user': user,
  authorization: `Basic ${Buffer.from(`${user}:pw`).toString('base64')}`,
  ...more,
})

async function rowsOf(sql: string, user = 'root', more: Readonly<Record<string, string>> = {}) {
  const ran = await run(gateway.url, sql, as(user, more))
  expect(ran.error, sql).toBeUndefined()
  return ran.rows
}

async function errorOf(sql: string, user = 'ana') {
  return (await run(gateway.url, sql, as(user))).error
}

async function untilHealthy(): Promise<void> {
  await waitUntil('the cluster is healthy', async () =>
    (await raw(`${gateway.url}/v1/cluster/trino-a`, { headers: as('root') })).text.includes('"HEALTHY"'),
  )
}

const plannedData = z.looseObject({
  route: z.string(),
  columns: z.array(z.object({ name: z.string(), type: z.string(), lineage: z.array(z.string()) })),
  tables: z.array(z.looseObject({ catalog: z.string(), table: z.string(), columns: z.array(z.string()) })),
  routed: z.looseObject({ grade: z.string().optional() }).optional(),
  warnings: z.array(z.object({ message: z.string() })),
})

async function plannedOf(sql: string, user = 'root') {
  const ran = await run(gateway.url, sql, as(user))
  expect(ran.error, sql).toBeUndefined()
  const { text } = await raw(`${gateway.url}/v1/query/${ran.id}/events`, { headers: as('root') })
  const events = z.array(z.object({ type: z.string(), data: z.unknown() })).parse(JSON.parse(text))
  return {
    rows: ran.rows,
    planned: plannedData.parse(events.find(({ type }) => type.startsWith('quipu.query.planned.'))!.data),
    finished: z
      .looseObject({ warnings: z.array(z.object({ message: z.string() })) })
      .parse(events.find(({ type }) => type.startsWith('quipu.query.finished.'))!.data),
  }
}

describe('The catalogs of a cluster', () => {
  it.each([
    'SHOW SCHEMAS FROM far',
    'SHOW TABLES FROM far.tiny',
    "SHOW TABLES FROM FAR.Tiny LIKE 'n%'",
    'SHOW COLUMNS FROM "far"."tiny"."nation"',
    'DESCRIBE far.tiny.lineitem',
    'SELECT table_schema, table_name, table_type FROM far.information_schema.tables ORDER BY 1, 2',
    'SELECT * FROM far.information_schema.schemata ORDER BY 2',
    "SELECT * FROM far.information_schema.columns WHERE table_schema = 'tiny' ORDER BY table_name, ordinal_position",
    "SELECT table_cat, table_schem, table_name, table_type FROM system.jdbc.tables WHERE table_cat = 'far' ORDER BY 1, 2, 3",
    "SELECT * FROM system.jdbc.columns WHERE table_cat = 'far' AND table_schem = 'tiny' AND table_name = 'nation' ORDER BY ordinal_position",
    "SELECT * FROM system.jdbc.schemas WHERE table_catalog = 'far' ORDER BY 1",
  ])('have the content that the cluster itself shows, and this server answers: %s', async (sql) => {
    await untilHealthy()
    const direct = await run(cluster.url, sql)
    expect(direct.error).toBeUndefined()
    const { rows, planned } = await plannedOf(sql)
    expect(rows).toEqual(direct.rows)
    expect(rows.length).toBeGreaterThan(0)
    expect(planned.route).not.toBe('delegated')
  })

  it('are listed beside those of this server, and a cluster that does not answer is left out with a warning', async () => {
    await untilHealthy()
    const shown = await plannedOf('SHOW CATALOGS')
    expect(shown.rows).toEqual([['far'], ['local'], ['system'], ['warehouse']])
    expect(shown.planned.warnings[0]!.message).toContain('trino-b')
    expect(await rowsOf('SELECT table_cat FROM system.jdbc.catalogs ORDER BY 1')).toEqual(shown.rows)
    expect(await rowsOf('SELECT catalog_name, connector_name FROM system.metadata.catalogs ORDER BY 1')).toEqual([
      ['far', 'trino'],
      ['local', 'tpch'],
      ['system', 'system'],
      ['warehouse', 'trino'],
    ])
  })

  it('can be the catalog of a session', async () => {
    await untilHealthy()
    const used = await run(gateway.url, 'USE far.tiny', as('root'))
    expect(used.error).toBeUndefined()
    const headers = { 'x-trino-catalog': 'far', 'x-trino-schema': 'tiny' }
    expect(await rowsOf('SHOW TABLES', 'root', headers)).toContainEqual(['nation'])
    expect(await rowsOf('SELECT count(*) FROM nation', 'root', headers)).toEqual([[25]])
    expect(await errorOf('USE far.nowhere', 'root')).toMatchObject({ errorName: 'NOT_FOUND' })
  })

  it('have an information_schema that joins with tables of this server, and refuse other joins with this server', async () => {
    await untilHealthy()
    const both = `SELECT count(*) FROM local.tiny.nation n JOIN far.information_schema.tables t ON t.table_name = 'nation' AND t.table_schema = 'tiny'`
    expect(await rowsOf(both)).toEqual([[25]])
    expect(await errorOf('SELECT 1 FROM system.jdbc.catalogs, far.tiny.nation', 'root')).toMatchObject({
      errorName: 'NOT_SUPPORTED',
      message: expect.stringContaining('group big') as string,
    })
  })

  it.each([
    ['SHOW TABLES FROM far.nowhere', 'SCHEMA_NOT_FOUND'],
    ['DESCRIBE far.tiny.nowhere', 'TABLE_NOT_FOUND'],
    ['SHOW SCHEMAS FROM nowhere', 'CATALOG_NOT_FOUND'],
    ['SELECT * FROM far.information_schema.nowhere', 'TABLE_NOT_FOUND'],
  ])('lack what the cluster lacks: %s', async (sql, errorName) => {
    await untilHealthy()
    expect(await errorOf(sql, 'root')).toMatchObject({ errorName })
  })
})

describe('A user with few rights', () => {
  it.each([
    ['SHOW TABLES FROM far.tiny', [['nation'], ['part'], ['region']]],
    [
      "SELECT table_name FROM far.information_schema.tables WHERE table_schema <> 'information_schema' ORDER BY 1",
      [['nation'], ['part'], ['region']],
    ],
    [
      "SELECT table_name FROM system.jdbc.tables WHERE table_cat = 'warehouse' AND table_schem <> 'information_schema'",
      [],
    ],
    [
      "SELECT table_name FROM system.jdbc.tables WHERE table_cat = 'far' AND table_schem = 'tiny' ORDER BY 1",
      [['nation'], ['part'], ['region']],
    ],
    [
      "SELECT column_name FROM far.information_schema.columns WHERE table_name IN ('nation', 'customer') AND table_schema = 'tiny' ORDER BY ordinal_position",
      [['nationkey'], ['name'], ['regionkey']],
    ],
    [
      "SELECT column_name FROM system.jdbc.columns WHERE table_cat = 'far' AND table_schem = 'tiny' AND table_name = 'nation' ORDER BY ordinal_position",
      [['nationkey'], ['name'], ['regionkey']],
    ],
    ["SELECT table_name FROM far.information_schema.tables WHERE table_schema = 'sf1'", []],
    [
      "SELECT table_name FROM far.information_schema.tables WHERE table_name = 'CUSTOMER' OR table_name = 'customer'",
      [],
    ],
  ])('sees in lists only what the rules show: %s', async (sql, rows) => {
    await untilHealthy()
    expect(await rowsOf(sql, 'ana')).toEqual(rows)
  })

  it('sees the columns of a table without the hidden ones', async () => {
    await untilHealthy()
    expect((await rowsOf('DESCRIBE far.tiny.nation', 'ana')).map(([name]) => name)).toEqual([
      'nationkey',
      'name',
      'regionkey',
    ])
    expect(await errorOf('DESCRIBE far.tiny.customer')).toMatchObject({ errorName: 'PERMISSION_DENIED' })
  })

  it.each([
    'SELECT max(name) FROM far.tiny.nation',
    'SELECT "NATIONKEY", n."name" FROM FAR."tiny".Nation n WHERE regionkey = 1 ORDER BY 1',
    'WITH w AS (SELECT nationkey FROM far.tiny.nation) SELECT count(*) FROM w',
  ])('reads columns that the rules show: %s', async (sql) => {
    await untilHealthy()
    const { planned, rows } = await plannedOf(sql, 'ana')
    expect(planned).toMatchObject({ route: 'delegated', routed: { grade: 'analysed' } })
    expect(rows).toEqual((await run(cluster.url, sql)).rows)
  })

  it.each([
    ['SELECT comment FROM far.tiny.nation', 'PERMISSION_DENIED'],
    ['SELECT "COMMENT" FROM far.tiny.nation', 'PERMISSION_DENIED'],
    ['SELECT * FROM far.tiny.nation', 'PERMISSION_DENIED'],
    ['TABLE far.tiny.nation', 'PERMISSION_DENIED'],
    ["SELECT count(*) FROM far.tiny.nation WHERE comment LIKE 'a%'", 'PERMISSION_DENIED'],
    ['SELECT no_function_here(name) FROM far.tiny.nation', 'PERMISSION_DENIED'],
    ['SELECT partkey FROM far.tiny.part', 'PERMISSION_DENIED'],
    ['SELECT name FROM far.tiny.region', 'NOT_SUPPORTED'],
    [
      'SELECT count(*) FROM far.tiny.nation WHERE regionkey IN (SELECT regionkey FROM far.tiny.region)',
      'NOT_SUPPORTED',
    ],
    ['SELECT name FROM far.tiny.customer', 'PERMISSION_DENIED'],
    ['SELECT name FROM far.tiny.nation, far.information_schema.tables', 'NOT_SUPPORTED'],
    ['EXPLAIN SELECT comment FROM far.tiny.nation', 'PERMISSION_DENIED'],
  ])('does not reach the cluster with %s', async (sql, errorName) => {
    await untilHealthy()
    expect(await errorOf(sql), sql).toMatchObject({ errorName })
  })
})

describe('A delegated query', () => {
  it('is recorded with its columns, its tables and their lineage', async () => {
    await untilHealthy()
    const { planned } = await plannedOf('SELECT name AS n, nationkey + 1 AS k FROM far.tiny.nation')
    expect(planned).toMatchObject({
      route: 'delegated',
      routed: { grade: 'analysed' },
      columns: [
        { name: 'n', type: 'varchar(25)', lineage: ['far.tiny.nation.name'] },
        { name: 'k', type: 'bigint', lineage: ['far.tiny.nation.nationkey'] },
      ],
      tables: [{ catalog: 'far', schema: 'tiny', table: 'nation', columns: ['nationkey', 'name'] }],
    })
  })

  it('fails with the error of the cluster for a column that this server does not know', async () => {
    await untilHealthy()
    const sql = 'SELECT nope FROM far.tiny.nation'
    const direct = await run(cluster.url, sql)
    expect(await errorOf(sql, 'root')).toMatchObject({ message: direct.error!.message })
  })
})
