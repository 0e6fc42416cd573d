import { describe, expect, it } from 'vitest'
import { createCatalogs } from '../../../src/connectors/spi/catalog-files.ts'
import type { Asker, Connector } from '../../../src/connectors/spi/connector.ts'
import type { ScanConditions } from '../../../src/connectors/spi/scan-conditions.ts'
import type { ServerMetadata } from '../../../src/connectors/spi/server-metadata.ts'
import { createTrinoConnector, createUnknownCatalog } from '../../../src/connectors/trino/trino-connector.ts'
import { withSystemCatalog } from '../../../src/connectors/system/system-connector.ts'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { historyTables } from '../../../src/readmodels/history/tables.ts'
import { askerNamed } from '../../support/asker.ts'

const COLUMNS = [
  { name: 'id', type: 'bigint', nullable: false },
  { name: 'odd', type: 'objectid', nullable: true },
]

/** A stand-in for the metadata of a group of clusters. `asked` collects the calls. */
function standIn(asked: string[] = [], user = 'service'): ServerMetadata {
  const note = (text: string): void => void asked.push(`${user}: ${text}`)
  return {
    async schemas(catalog) {
      note(`schemas ${catalog}`)
      return ['information_schema', 'sales', `of_${user}`]
    },
    async tables(catalog, schema = '*') {
      note(`tables ${catalog}.${schema}`)
      return [
        { schema: 'sales', table: 'orders', kind: 'TABLE' },
        { schema: 'sales', table: 'recent', kind: 'VIEW' },
        { schema: 'information_schema', table: 'columns', kind: 'TABLE' },
      ]
    },
    async columns(catalog, schema, table) {
      note(`columns ${catalog}.${schema}.${table}`)
      return table === 'orders' ? COLUMNS : undefined
    },
    async allColumns(catalog, schema) {
      note(`columns ${catalog}.${schema}`)
      return new Map([['orders', COLUMNS]])
    },
  }
}

const away = (): Promise<never> => Promise.reject(new EngineError('NO_NODES_AVAILABLE', 'No cluster answers'))
const AWAY: ServerMetadata = { schemas: away, tables: away, columns: away, allColumns: away }
const mute = (): Promise<never> => new Promise(() => {})
const MUTE: ServerMetadata = { schemas: mute, tables: mute, columns: mute, allColumns: mute }

const sources = (): never => {
  throw new Error('nothing of the runtime is asked for')
}

async function rowsOf(
  connectors: readonly Connector[],
  name: string,
  { where, ...more }: Partial<Asker> & { readonly where?: ScanConditions } = {},
): Promise<unknown[][]> {
  const others = createCatalogs(new Map(connectors.map((connector) => [connector.catalog, connector])))
  const catalogs = withSystemCatalog(createCatalogs(new Map()), sources, historyTables, () => others)
  const [catalog, schema, table] = name.split('.') as [string, string, string]
  const connector = catalogs.get(catalog)!
  const { handle, columns } = (await connector.getTable(schema, table))!
  const names = columns.map((column) => column.name)
  const splits = await connector.listSplits(handle, where)
  const [split] = await connector.loadSplits!(splits, names, { ...askerNamed('ana'), ...more })
  return split!.data['rows'] as unknown[][]
}

describe('A catalog of a cluster', () => {
  it('has schemas, tables and columns, types that this server does not know among them', async () => {
    const connector = createTrinoConnector({ catalog: 'far', group: 'big', metadata: standIn() })
    expect(await connector.listSchemas()).toContain('sales')
    expect(await connector.listTables('sales')).toEqual([
      { schema: 'sales', table: 'orders', kind: 'TABLE' },
      { schema: 'sales', table: 'recent', kind: 'VIEW' },
    ])
    expect(await connector.getTable('sales', 'orders')).toMatchObject({ kind: 'TABLE', columns: COLUMNS })
    expect(await connector.getTable('sales', 'nowhere')).toBeUndefined()
  })

  it('has no rows for a statement that runs here', async () => {
    const connector = createTrinoConnector({ catalog: 'far', group: 'big', metadata: standIn() })
    const refused = { errorName: 'NOT_SUPPORTED', message: expect.stringContaining('group big') as string }
    await expect(connector.listSplits({})).rejects.toMatchObject(refused)
    await expect(connector.tableSource([], [])).rejects.toMatchObject(refused)
  })

  it('lists all its tables with one request', async () => {
    const asked: string[] = []
    const far = createTrinoConnector({ catalog: 'far', group: 'big', metadata: standIn(asked) })
    expect(await rowsOf([far], 'far.information_schema.tables')).toContainEqual([
      'far',
      'sales',
      'recent',
      'VIEW',
      null,
    ])
    expect(asked).toEqual(['service: tables far.*'])
  })

  it('is shown to each user as its clusters show it, where they decide about rights', async () => {
    const asked: string[] = []
    const far = createTrinoConnector({
      catalog: 'far',
      group: 'big',
      metadata: standIn(asked),
      forUser: (user) => standIn(asked, user),
    })
    // The rules of this server would hide everything.
    const nothing = () => false
    const sight = {
      showsCatalog: nothing,
      showsSchema: nothing,
      showsTable: nothing,
      showsColumn: nothing,
      showsSize: nothing,
    }
    expect(await rowsOf([far], 'far.information_schema.schemata', { sight })).toContainEqual(['far', 'of_ana'])
    expect(await rowsOf([far], 'system.jdbc.catalogs', { sight })).toEqual([['far']])
    expect((await rowsOf([far], 'system.jdbc.columns', { sight })).length).toBeGreaterThan(0)
    expect(asked.every((text) => text.startsWith('ana: '))).toBe(true)
  })

  it.each([
    ['does not answer', AWAY, 'No cluster answers'],
    ['takes too long', MUTE, 'It gave no list within'],
  ])('is left out of lists over several catalogs with its reason, if it %s', async (_how, metadata, reason) => {
    const far = createTrinoConnector({ catalog: 'far', group: 'big', metadata: standIn() })
    const other = {
      ...createTrinoConnector({ catalog: 'other', group: 'small', metadata }),
      remote: { listedWithinMs: 20 },
    }
    for (const table of ['jdbc.schemas', 'jdbc.tables', 'jdbc.columns', 'metadata.table_comments']) {
      const leftOut: string[] = []
      const rows = await rowsOf([far, other], `system.${table}`, {
        onLeftOut: (catalog: string, why: string) => void leftOut.push(`${catalog}: ${why}`),
      })
      expect(JSON.stringify(rows)).toContain('"far"')
      expect(leftOut).toEqual([expect.stringContaining(`other: ${reason}`)])
    }
  })

  it('fails a list of its own names if it does not answer', async () => {
    const far = createTrinoConnector({ catalog: 'far', group: 'big', metadata: AWAY })
    await expect(rowsOf([far], 'far.information_schema.tables')).rejects.toMatchObject({
      errorName: 'NO_NODES_AVAILABLE',
    })
  })

  describe('A catalog whose cluster gives no columns of a listed table', () => {
    const far = createTrinoConnector({ catalog: 'far', group: 'big', metadata: { ...standIn(), columns: away } })
    const named = (schema: string): ScanConditions => ({
      [schema]: [{ in: ['sales'] }],
      table_name: [{ in: ['orders'] }],
    })

    it('fails a statement about the columns of one table', async () => {
      const rows = rowsOf([far], 'far.information_schema.columns', { where: named('table_schema') })
      await expect(rows).rejects.toMatchObject({ errorName: 'NO_NODES_AVAILABLE' })
    })

    it('is left out of a list over several catalogs with its reason', async () => {
      const leftOut: string[] = []
      const onLeftOut = (catalog: string, why: string): void => void leftOut.push(`${catalog}: ${why}`)
      expect(await rowsOf([far], 'system.jdbc.columns', { where: named('table_schem'), onLeftOut })).toEqual([])
      expect(leftOut).toEqual(['far: No cluster answers'])
    })
  })
})

describe('A catalog that a worker does not know', () => {
  it('takes the rows of information_schema that a coordinator sends, and nothing else', async () => {
    const others = { names: () => [], get: createUnknownCatalog }
    const worker = withSystemCatalog(createCatalogs(new Map()), undefined, undefined, () => others)
    const far = createTrinoConnector({ catalog: 'far', group: 'big', metadata: standIn() })
    const coordinator = withSystemCatalog(createCatalogs(new Map()), sources, historyTables, () =>
      createCatalogs(new Map([['far', far]])),
    ).get('far')!
    const { handle } = (await coordinator.getTable('information_schema', 'schemata'))!
    const loaded = await coordinator.loadSplits!(
      await coordinator.listSplits(handle),
      ['schema_name'],
      askerNamed('ana'),
    )
    const [part] = await worker.get('far')!.tableSource(loaded, ['schema_name'])
    expect(part).toMatchObject({ kind: 'rows' })
    await expect(worker.get('far')!.tableSource([{ catalog: 'far', data: {} }], ['a'])).rejects.toMatchObject({
      errorName: 'CATALOG_NOT_AVAILABLE',
    })
    expect(worker.names()).toEqual(['system'])
  })
})
