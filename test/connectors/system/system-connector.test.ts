import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { createCatalogs } from '../../../src/connectors/spi/catalog-files.ts'
import type { Catalogs } from '../../../src/connectors/spi/catalogs.ts'
import {
  READ_ONLY,
  type Asker,
  type CatalogSight,
  type Connector,
  type ConnectorTable,
} from '../../../src/connectors/spi/connector.ts'
import {
  withSystemCatalog,
  type RuntimeSources,
  type SystemSources,
} from '../../../src/connectors/system/system-connector.ts'
import { connectorContract } from '../../contract/connector.contract.ts'
import { openDuckDb, type Rows } from '../../support/duckdb.ts'
import { scanText } from '../../../src/execution/engine/scan-text.ts'
import { historyTables } from '../../../src/readmodels/history/tables.ts'
import { accessOf } from '../../../src/sql/access-control.ts'
import { askerNamed } from '../../support/asker.ts'
import { rightsUnder } from '../../support/rights-under.ts'

const ada = askerNamed('ada')

const empty = async () => []
const sources: RuntimeSources = {
  queries: async () => [
    {
      query_id: 'q1',
      state: 'FINISHED',
      user: "o'brien",
      query: `SELECT 'a"b\\'`,
      resource_group_id: ['global', 'etl'],
      queued_time_ms: 3,
      created: '2026-03-01T10:00:00.123Z',
    },
    { query_id: 'q2', state: 'QUEUED', resource_group_id: [] },
  ],
  tasks: empty,
  nodes: async () => [{ node_id: 'n1', http_uri: 'http://x', node_version: '1', coordinator: true, state: 'active' }],
  operators: empty,
  events: empty,
  transactions: empty,
  optimizer_rule_stats: empty,
}

const shopTables: ConnectorTable[] = [
  {
    schema: 's',
    table: 'orders',
    kind: 'TABLE',
    handle: { t: 'orders' },
    comment: 'what was sold',
    columns: [
      { name: 'id', type: 'bigint', nullable: false },
      { name: 'price', type: 'decimal(12, 2)', nullable: true, comment: 'net' },
      { name: '$path', type: 'varchar', nullable: true, hidden: true },
      { name: 'name', type: 'varchar(25)', nullable: true },
    ],
  },
  {
    schema: 's',
    table: 'recent',
    kind: 'VIEW',
    handle: { t: 'recent' },
    columns: [{ name: 'id', type: 'bigint', nullable: true }],
    view: { sql: 'SELECT id FROM orders' },
  },
]

/** A catalog with two tables, whose `verifySplits` throws to show that it was called. */
const shop: Connector = {
  catalog: 'shop',
  connectorName: 'lake',
  abilities: { ...READ_ONLY, views: true },
  listSchemas: async () => ['s'],
  listTables: async (schema) =>
    shopTables
      .filter((one) => schema === undefined || one.schema === schema)
      .map(({ schema: s, table, kind }) => ({ schema: s, table, kind })),
  getTable: async (schema, table) => shopTables.find((one) => one.schema === schema && one.table === table),
  getStatistics: async () => ({ rows: 7 }),
  listSplits: async () => [{ catalog: 'shop', data: { own: true } }],
  tableSource: async () => [{ kind: 'empty', columns: [{ name: 'id', type: 'INTEGER' }] }],
  verifySplits: async (splits) => {
    if (splits.length > 0) throw new Error('verified')
  },
  allowedDirectories: () => ['/shop/'],
}

const all: SystemSources = {
  runtime: sources,
  history: {
    async *read(_table, _question, columns) {
      yield [columns.map(() => null)]
    },
  },
}

let catalogs: Catalogs
let duckdb: Awaited<ReturnType<typeof openDuckDb>>

beforeAll(async () => {
  catalogs = withSystemCatalog(createCatalogs(new Map([['shop', shop]])), () => all, historyTables)
  duckdb = await openDuckDb()
})

/** Reads a table as a fragment does: splits pass through JSON, and a process without sources makes the expression. */
async function rows(
  catalog: string,
  schema: string,
  table: string,
  columns?: string[],
  asker: Asker = ada,
): Promise<Rows> {
  const connector = catalogs.get(catalog)!
  const described = (await connector.getTable(schema, table))!
  const asked = columns ?? described.columns.flatMap(({ name, hidden }) => (hidden === true ? [] : [name]))
  const planned = JSON.parse(JSON.stringify(await connector.listSplits(described.handle)))
  const splits = JSON.parse(JSON.stringify(await connector.loadSplits!(planned, asked, asker)))
  const worker = withSystemCatalog(createCatalogs(new Map([['shop', shop]]))).get(catalog)!
  return duckdb.query(scanText(await worker.tableSource(splits, asked)))
}

connectorContract('system', async () => ({
  connector: withSystemCatalog(createCatalogs(new Map([['shop', shop]])), () => all, historyTables).get('system')!,
  schema: 'metadata',
  table: 'catalogs',
  truth: `SELECT * FROM (VALUES ('shop', 'shop', 'lake'), ('system', 'system', 'system')) AS t(catalog_name, connector_id, connector_name)`,
}))

describe('system.metadata.table_sizes', () => {
  it('has sizes only of tables of which the user may read all rows', async () => {
    const sizes = (sight?: CatalogSight) =>
      rows('system', 'metadata', 'table_sizes', ['table_name', 'row_count'], { ...ada, ...(sight && { sight }) })
    const shows = () => true
    const names = { showsCatalog: shows, showsSchema: shows, showsTable: shows, showsColumn: shows }
    expect(await sizes()).toContainEqual({ table_name: 'orders', row_count: 7 })
    expect(await sizes({ ...names, showsSize: shows })).toContainEqual({ table_name: 'orders', row_count: 7 })
    expect(await sizes({ ...names, showsSize: () => false })).toContainEqual({ table_name: 'orders', row_count: null })
  })

  it('hides sizes from users without SELECT, or under a row filter', () => {
    const tables = [
      { table: 'inserted', privileges: ['INSERT'] },
      { table: 'filtered', privileges: ['SELECT'], filter: 'true' },
      {
        table: 'masked',
        privileges: ['SELECT'],
        columns: [
          { name: 'x', mask: '1' },
          { name: 'y', allow: false },
        ],
      },
      { privileges: ['SELECT'] },
    ]
    const access = accessOf({ rightsOf: rightsUnder({ tables }), user: 'ada' })!
    const shown = ['inserted', 'filtered', 'masked', 'plain'].map((table) =>
      access.showsSize({ catalog: 'c', schema: 's', table }),
    )
    expect(shown).toEqual([false, false, true, true])
  })
})

describe('The system tables', () => {
  const recorded = readFileSync(new URL('../../fixtures/system-tables.tsv', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t') as [string, string, string, string, string])
    .filter(([catalog]) => catalog !== '(statement)')

  it('have the same columns and types as in Trino, in order', async () => {
    const wanted = new Map<string, string[]>()
    for (const [catalog, schema, table, column, type] of recorded) {
      const key = `${catalog === 'system' ? 'system' : 'shop'}.${schema}.${table}`
      wanted.set(key, [...(wanted.get(key) ?? []), `${column} ${type}`])
    }
    expect(wanted.size).toBeGreaterThan(30)
    for (const [key, columns] of wanted) {
      const [catalog, schema, table] = key.split('.') as [string, string, string]
      const described = await catalogs.get(catalog)!.getTable(schema, table)
      const shown = described?.columns.filter(({ hidden }) => hidden !== true)
      expect([key, shown?.map(({ name, type }) => `${name} ${type}`)]).toEqual([key, columns])
    }
  })

  it('are documented in docs/history.md with every column if they belong to the history', () => {
    const page = readFileSync(new URL('../../../docs/history.md', import.meta.url), 'utf8')
    for (const [table, { columns }] of historyTables) {
      const row = page
        .split('\n')
        .find((line) => line.startsWith('| `') && line.split('|')[1]!.includes(`\`${table}\``))
      expect(Object.keys(columns).filter((column) => !row?.includes(`\`${column}\``))).toEqual([])
    }
  })

  it('can all be read, with every column', async () => {
    for (const catalog of catalogs.names()) {
      const connector = catalogs.get(catalog)!
      for (const { schema, table } of await connector.listTables()) {
        if (catalog === 'shop' && schema === 's') continue
        await expect(rows(catalog, schema, table)).resolves.toBeInstanceOf(Array)
      }
    }
  })

  it('are planned without a read of their rows', async () => {
    let asked = 0
    const counted = withSystemCatalog(
      createCatalogs(new Map([['shop', { ...shop, listTables: async () => fail() }]])),
      () => ({
        runtime: { ...sources, queries: async () => fail() },
        history: { read: () => fail() },
      }),
      historyTables,
    )
    function fail(): never {
      asked++
      throw new Error('no rows are needed to plan')
    }
    for (const [catalog, schema, table] of [
      ['system', 'runtime', 'queries'],
      ['system', 'history', 'queries'],
      ['system', 'jdbc', 'columns'],
      ['system', 'information_schema', 'tables'],
      ['shop', 'information_schema', 'columns'],
    ] as const) {
      const connector = counted.get(catalog)!
      const splits = await connector.listSplits((await connector.getTable(schema, table))!.handle)
      expect(JSON.stringify(splits).length).toBeLessThan(100)
    }
    expect(asked).toBe(0)
  })

  it('give the engine only the values of the requested columns', async () => {
    const connector = catalogs.get('system')!
    const { handle } = (await connector.getTable('runtime', 'queries'))!
    const [split] = await connector.loadSplits!(await connector.listSplits(handle), ['state'], ada)
    expect(split).toMatchObject({ rows: 2 })
    expect(JSON.stringify(split)).toContain('FINISHED')
    expect(JSON.stringify(split)).not.toContain('SELECT')
  })

  it('fail with EXCEEDED_LOCAL_MEMORY_LIMIT if their values exceed the memory limit', async () => {
    const query = 'x'.repeat(1 << 20)
    const many = withSystemCatalog(createCatalogs(new Map()), () => ({
      ...all,
      runtime: { ...sources, queries: async () => Array.from({ length: 40 }, () => ({ query_id: 'q', query })) },
    })).get('system')!
    const splits = await many.listSplits((await many.getTable('runtime', 'queries'))!.handle)
    await expect(many.loadSplits!(splits, ['query'], ada)).rejects.toMatchObject({
      errorName: 'EXCEEDED_LOCAL_MEMORY_LIMIT',
    })
    expect(await many.loadSplits!(splits, ['query_id'], ada)).toMatchObject([{ rows: 40 }])
  })

  it('represent times with zone, arrays and quotes as the engine does', async () => {
    const found = await rows('system', 'runtime', 'queries', [
      'query_id',
      'user',
      'query',
      'resource_group_id',
      'queued_time_ms',
      'created',
      'end',
    ])
    expect(found).toEqual([
      {
        query_id: 'q1',
        user: "o'brien",
        query: `SELECT 'a"b\\'`,
        resource_group_id: ['global', 'etl'],
        queued_time_ms: expect.toSatisfy((value) => Number(value) === 3),
        created: { t: expect.stringContaining('2026-03-01 10:00:00.123'), z: 'UTC' },
        end: null,
      },
      {
        query_id: 'q2',
        user: null,
        query: null,
        resource_group_id: [],
        queued_time_ms: null,
        created: null,
        end: null,
      },
    ])
  })

  it('have the right number of rows in a read without columns', async () => {
    expect(await rows('system', 'runtime', 'queries', [])).toHaveLength(2)
    expect(await rows('system', 'runtime', 'tasks', [])).toHaveLength(0)
  })
})

describe('The schema information_schema', () => {
  it('exists in every catalog', async () => {
    for (const name of ['shop', 'system']) {
      expect(await catalogs.get(name)!.listSchemas()).toContain('information_schema')
      expect(
        (await rows(name, 'information_schema', 'tables', ['table_name', 'table_schema'])).map(
          (row) => row['table_name'],
        ),
      ).toEqual(
        expect.arrayContaining([
          'applicable_roles',
          'columns',
          'enabled_roles',
          'roles',
          'schemata',
          'table_privileges',
          'tables',
          'views',
        ]),
      )
    }
  })

  it('lists tables and views', async () => {
    const found = await rows('shop', 'information_schema', 'tables')
    expect(found.filter((row) => row['table_schema'] === 's')).toEqual([
      { table_catalog: 'shop', table_schema: 's', table_name: 'orders', table_type: 'BASE TABLE' },
      { table_catalog: 'shop', table_schema: 's', table_name: 'recent', table_type: 'VIEW' },
    ])
    expect(await rows('shop', 'information_schema', 'views')).toEqual([
      { table_catalog: 'shop', table_schema: 's', table_name: 'recent', view_definition: 'SELECT id FROM orders' },
    ])
    expect(await rows('shop', 'information_schema', 'schemata')).toEqual([
      { catalog_name: 'shop', schema_name: 's' },
      { catalog_name: 'shop', schema_name: 'information_schema' },
    ])
  })

  it('lists visible columns with the type names of DESCRIBE', async () => {
    const found = await rows('shop', 'information_schema', 'columns')
    expect(
      found
        .filter((row) => row['table_name'] === 'orders')
        .map((row) => [
          row['column_name'],
          Number(row['ordinal_position']),
          row['is_nullable'],
          row['data_type'],
          row['column_default'],
        ]),
    ).toEqual([
      ['id', 1, 'NO', 'bigint', null],
      ['price', 2, 'YES', 'decimal(12,2)', null],
      ['name', 3, 'YES', 'varchar(25)', null],
    ])
  })

  it('has the comments of columns and tables in hidden columns, as in Trino', async () => {
    for (const [table, hidden] of [
      ['columns', ['comment', 'extra_info', 'column_comment']],
      ['tables', ['table_comment']],
    ] as const) {
      const described = await catalogs.get('shop')!.getTable('information_schema', table)
      expect(described!.columns.filter((column) => column.hidden === true).map(({ name }) => name)).toEqual(hidden)
    }
    const asked = ['table_name', 'column_name', 'comment', 'extra_info', 'column_comment']
    const columns = await rows('shop', 'information_schema', 'columns', asked)
    expect(
      columns.filter((row) => row['table_name'] === 'orders').map((row) => asked.map((name) => row[name])),
    ).toEqual([
      ['orders', 'id', null, null, null],
      ['orders', 'price', 'net', null, 'net'],
      ['orders', 'name', null, null, null],
    ])
    const tables = await rows('shop', 'information_schema', 'tables', ['table_schema', 'table_name', 'table_comment'])
    expect(tables.filter((row) => row['table_schema'] === 's')).toEqual([
      { table_schema: 's', table_name: 'orders', table_comment: 'what was sold' },
      { table_schema: 's', table_name: 'recent', table_comment: null },
    ])
  })

  it('does not change the catalog’s own tables', async () => {
    const connector = catalogs.get('shop')!
    expect(await connector.listSplits({ t: 'orders' })).toEqual([{ catalog: 'shop', data: { own: true } }])
    expect(await connector.getStatistics({ t: 'orders' })).toEqual({ rows: 7 })
    expect(connector.allowedDirectories()).toEqual(['/shop/'])
    await expect(connector.verifySplits([{ catalog: 'shop', data: { own: true } }])).rejects.toThrow('verified')
  })
})

describe('The schema system.jdbc', () => {
  it('describes columns with the codes of java.sql.Types', async () => {
    const found = (await rows('system', 'jdbc', 'columns')).filter((row) => row['table_name'] === 'orders')
    expect(
      found.map((row) => [
        row['table_cat'],
        row['column_name'],
        Number(row['data_type']),
        row['type_name'],
        Number(row['column_size']),
        row['decimal_digits'] === null ? null : Number(row['decimal_digits']),
        Number(row['nullable']),
        row['is_nullable'],
        row['remarks'],
      ]),
    ).toEqual([
      ['shop', 'id', -5, 'bigint', 19, 0, 0, 'NO', null],
      ['shop', 'price', 3, 'decimal(12,2)', 12, 2, 1, 'YES', 'net'],
      ['shop', 'name', 12, 'varchar(25)', 25, null, 1, 'YES', null],
    ])
  })

  it('lists catalogs, schemas, tables and types', async () => {
    expect(await rows('system', 'jdbc', 'catalogs')).toEqual([{ table_cat: 'shop' }, { table_cat: 'system' }])
    expect(await rows('system', 'jdbc', 'schemas')).toContainEqual({ table_schem: 's', table_catalog: 'shop' })
    expect(await rows('system', 'jdbc', 'table_types')).toEqual([{ table_type: 'TABLE' }, { table_type: 'VIEW' }])
    expect(
      (await rows('system', 'jdbc', 'tables', ['table_name', 'table_type'])).filter(
        (row) => row['table_name'] === 'recent',
      ),
    ).toEqual([{ table_name: 'recent', table_type: 'VIEW' }])
    const types = await rows('system', 'jdbc', 'types', ['type_name', 'data_type'])
    expect(types.map((row) => [row['type_name'], Number(row['data_type'])])).toEqual(
      expect.arrayContaining([
        ['bigint', -5],
        ['varchar', 12],
        ['timestamp with time zone', 2014],
        ['decimal', 3],
      ]),
    )
  })
})

it('The table system.metadata.table_comments contains the comments of tables', async () => {
  expect((await rows('system', 'metadata', 'table_comments')).filter((row) => row['comment'] !== null)).toEqual([
    { catalog_name: 'shop', schema_name: 's', table_name: 'orders', comment: 'what was sold' },
  ])
})

it('The table system.metadata.materialized_views lists all views if one of their tables cannot be read', async () => {
  const source = { catalog: 'shop', schema: 's', snapshot: '1' }
  const viewOver = (table: string): ConnectorTable => ({
    ...shopTables[1]!,
    table: `of_${table}`,
    kind: 'TABLE',
    materialized: { stored: { refreshedAt: 0, sources: [{ ...source, table }] } },
  })
  const views = [viewOver('orders'), viewOver('broken')]
  const connector: Connector = {
    ...shop,
    abilities: { ...READ_ONLY, materializedViews: true },
    listTables: async () => views,
    async getTable(schema, table) {
      if (table === 'broken') throw new Error('a file of the table is damaged')
      return views.find((one) => one.table === table) ?? { ...shopTables[0]!, snapshot: '1' }
    },
  }
  const system = withSystemCatalog(createCatalogs(new Map([['shop', connector]])), () => all).get('system')!
  const splits = await system.listSplits({ schema: 'metadata', table: 'materialized_views' })
  const [loaded] = await system.loadSplits!(splits, ['name', 'freshness'], ada)
  const { rows: listed } = loaded!.data as { readonly rows: readonly (readonly unknown[])[] }
  expect(listed.map((row) => row.filter((value) => value !== null))).toEqual([
    ['of_orders', 'FRESH'],
    ['of_broken', 'STALE'],
  ])
})
