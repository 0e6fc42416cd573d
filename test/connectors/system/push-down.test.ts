import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCatalogs } from '../../../src/connectors/spi/catalog-files.ts'
import { READ_ONLY, type Connector, type ConnectorTable } from '../../../src/connectors/spi/connector.ts'
import { Wanted, type ScanConditions } from '../../../src/connectors/spi/scan-conditions.ts'
import { seenConnector } from '../../../src/connectors/system/seen-catalogs.ts'
import { withSystemCatalog } from '../../../src/connectors/system/system-connector.ts'
import { historyTables } from '../../../src/readmodels/history/tables.ts'
import { askerNamed } from '../../support/asker.ts'

const asked = { schemas: 0, lists: [] as (string | undefined)[], tables: [] as string[] }

/** Makes a catalog that records its calls; every tenth table is a view. */
function noting(catalog: string, schemas: readonly string[], tables: readonly string[], columns: number): Connector {
  const columnsOf = Array.from({ length: columns }, (_, i) => ({ name: `c${i}`, type: 'bigint', nullable: true }))
  const tableOf = (schema: string, table: string): ConnectorTable | undefined => {
    const index = tables.indexOf(table)
    if (index < 0 || !schemas.includes(schema)) return undefined
    const view = index % 10 === 9
    const found = { schema, table, handle: {}, columns: columnsOf, comment: `${schema} ${table}` }
    return view ? { ...found, kind: 'VIEW', view: { sql: `SELECT ${index}` } } : { ...found, kind: 'TABLE' }
  }
  return {
    catalog,
    connectorName: 'lake',
    abilities: { ...READ_ONLY, views: true },
    listSchemas: async () => {
      asked.schemas++
      return schemas
    },
    listTables: async (schema) => {
      asked.lists.push(schema)
      return schemas
        .filter((one) => schema === undefined || one === schema)
        .flatMap((one) => tables.map((table) => ({ schema: one, table, kind: tableOf(one, table)!.kind })))
    },
    getTable: async (schema, table) => {
      asked.tables.push(`${schema}.${table}`)
      return tableOf(schema, table)
    },
    getStatistics: async () => ({}),
    listSplits: async () => [],
    tableSource: async () => [{ kind: 'empty', columns: [] }],
    verifySplits: async () => {},
    allowedDirectories: () => [],
  }
}

/** Makes the connector that a user without access to one table and to the column `c1` sees. */
function withoutTable(connector: Connector, hidden: string): Connector {
  return seenConnector(connector, {
    user: 'somebody',
    sight: {
      showsCatalog: () => true,
      showsSchema: () => true,
      showsTable: ({ table }) => table !== hidden,
      showsColumn: (_, column) => column !== 'c1',
      showsSize: () => true,
    },
  })
}

type Row = Readonly<Record<string, unknown>>

/** Makes the same catalog with its own `describeTables`. */
function describing(connector: Connector): Connector {
  return {
    ...connector,
    async describeTables(schema, named, take) {
      for (const { table } of await connector.listTables(schema)) {
        if (named(table)) take((await connector.getTable(schema, table))!)
      }
    },
    getTable: () => Promise.reject(new Error('each is looked up')),
  }
}

async function rowsOf(connectors: readonly Connector[], name: string, where?: ScanConditions): Promise<Row[]> {
  const [catalog, schema, table] = name.split('.') as [string, string, string]
  const sources = () => {
    throw new Error('nothing of the runtime is asked for')
  }
  const named = createCatalogs(new Map(connectors.map((one) => [one.catalog, one])))
  const catalogs = withSystemCatalog(named, sources, historyTables)
  const connector = catalogs.get(catalog)!
  const described = (await connector.getTable(schema, table))!
  const names = described.columns.map((column) => column.name)
  Object.assign(asked, { schemas: 0, lists: [], tables: [] })
  // The splits pass through JSON, as in an event.
  const planned = JSON.parse(JSON.stringify(await connector.listSplits(described.handle, where)))
  const [split] = await connector.loadSplits!(planned, names, askerNamed('ada'))
  return (split!.data['rows'] as unknown[][]).map((row) => Object.fromEntries(names.map((one, i) => [one, row[i]])))
}

const tablesToRead: Readonly<Record<string, readonly string[]>> = {
  'a.information_schema.schemata': ['catalog_name', 'schema_name'],
  'a.information_schema.tables': ['table_catalog', 'table_schema', 'table_name'],
  'a.information_schema.columns': ['table_catalog', 'table_schema', 'table_name', 'column_name'],
  'a.information_schema.views': ['table_catalog', 'table_schema', 'table_name'],
  'system.jdbc.schemas': ['table_catalog', 'table_schem'],
  'system.jdbc.tables': ['table_cat', 'table_schem', 'table_name'],
  'system.jdbc.columns': ['table_cat', 'table_schem', 'table_name', 'column_name'],
  'system.metadata.table_comments': ['catalog_name', 'schema_name', 'table_name'],
}

describe('Conditions on metadata tables', () => {
  it('omit no matching row, for random conditions', async () => {
    const connectors = [
      noting('a', ['s', 'st'], ['t', 'tt', 't_1', 'tables', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6'], 3),
      noting('ab', ['s'], ['t', 'x'], 2),
    ]
    const text = fc.constantFrom('a', 'ab', 's', 'st', 't', 'tt', 't_1', 'T', 'c0', 'c2', 'v6', 'tables', 'nowhere', '')
    const condition = fc.oneof(
      fc.array(text, { maxLength: 3 }).map((values) => ({ in: values })),
      fc
        .constantFrom('%', 's%', 't_', 't!_1', '_', 'information!_schema', '', 'a%b')
        .map((like) => ({ like, escape: '!' })),
    )
    for (const [name, columns] of Object.entries(tablesToRead)) {
      const all = await rowsOf(connectors, name)
      expect(all.length).toBeGreaterThan(0)
      const where = fc.dictionary(fc.constantFrom(...columns), fc.array(condition, { minLength: 1, maxLength: 2 }))
      await fc.assert(
        fc.asyncProperty(where, async (conditions) => {
          const wanted = new Wanted(conditions)
          const fulfils = (row: Row): boolean => columns.every((column) => wanted.has(column, String(row[column])))
          const given = await rowsOf(connectors, name, conditions)
          expect(given.filter(fulfils)).toEqual(expect.arrayContaining(all.filter(fulfils)))
          expect(given.filter(fulfils)).toHaveLength(all.filter(fulfils).length)
        }),
        { numRuns: 60 },
      )
    }
  })

  it('reach the catalog: the search of a column describes only its table among 1,000 tables', async () => {
    const many = noting(
      'a',
      ['s'],
      Array.from({ length: 1000 }, (_, i) => `t${i}`),
      100,
    )
    const where = {
      table_schema: [{ in: ['s'] }],
      table_name: [{ like: 't77', escape: '\\' }],
      column_name: [{ in: ['c7'] }],
    }
    expect(await rowsOf([many], 'a.information_schema.columns', where)).toMatchObject([
      { table_schema: 's', table_name: 't77', column_name: 'c7' },
    ])
    expect(asked).toEqual({ schemas: 0, lists: [], tables: ['s.t77'] })
    const ofDriver = { table_cat: [{ in: ['a'] }], table_schem: [{ in: ['s'] }], table_name: [{ like: 't7_' }] }
    expect(await rowsOf([many], 'system.jdbc.columns', ofDriver)).toHaveLength(1000)
    expect(asked.lists).toEqual(['s'])
    expect(asked.tables).toHaveLength(10)
  })

  it('describe each table once if they name only a column, and leave out hidden tables and columns', async () => {
    const plain = noting('a', ['s', 'st'], ['t', 'tt', 'v1'], 3)
    const where = { column_name: [{ in: ['c1'] }] }
    for (const name of ['a.information_schema.columns', 'system.jdbc.columns']) {
      const expected = (await rowsOf([plain], name, where)).filter((row) => row['column_name'] === 'c1')
      expect(expected).toHaveLength(6)
      const given = await rowsOf([describing(plain)], name, where)
      expect(given.filter((row) => row['column_name'] === 'c1')).toEqual(expected)
    }
    const unseen = withoutTable(describing(plain), 'tt')
    const taken: string[] = []
    await unseen.describeTables!(
      's',
      () => true,
      ({ table, columns }) => taken.push(`${table} ${columns.map(({ name }) => name).join()}`),
    )
    expect(taken).toEqual(['t c0,c2', 'v1 c0,c2'])
  })

  it('call no other catalog if they name a catalog', async () => {
    const refusing = { ...noting('b', ['s'], ['t'], 1), listSchemas: () => Promise.reject(new Error('asked')) }
    expect(await rowsOf([refusing], 'system.jdbc.tables', { table_cat: [{ in: ['a'] }] })).toEqual([])
    expect(await rowsOf([refusing], 'b.information_schema.tables', { table_catalog: [{ in: ['a'] }] })).toEqual([])
  })

  it('find the name of a table that cannot be described', async () => {
    const closed = { ...noting('a', ['s'], ['t'], 1), getTable: () => Promise.reject(new Error('closed')) }
    const where = { table_schema: [{ in: ['s'] }], table_name: [{ in: ['t'] }] }
    expect(await rowsOf([closed], 'a.information_schema.tables', where)).toMatchObject([{ table_name: 't' }])
    expect(await rowsOf([closed], 'a.information_schema.columns', where)).toEqual([])
  })
})
