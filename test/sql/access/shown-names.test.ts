import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCatalogs } from '../../../src/connectors/spi/catalog-files.ts'
import type { Catalogs } from '../../../src/connectors/spi/catalogs.ts'
import { READ_ONLY, type Connector, type ConnectorTable } from '../../../src/connectors/spi/connector.ts'
import type { ServerMetadata } from '../../../src/connectors/spi/server-metadata.ts'
import { createTrinoConnector } from '../../../src/connectors/trino/trino-connector.ts'
import { withSystemCatalog } from '../../../src/connectors/system/system-connector.ts'
import { historyTables } from '../../../src/readmodels/history/tables.ts'
import { createMetadataPort } from '../../../src/coordinator/dispatch/catalog-metadata.ts'
import { accessOf } from '../../../src/sql/access-control.ts'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { recordedSession } from '../../support/sql/fixed-metadata.ts'
import { askerNamed } from '../../support/asker.ts'
import { planText } from '../../support/plan-text.ts'
import { rightsUnder } from '../../support/rights-under.ts'

// All lists of names (information_schema, system.jdbc, system.metadata, SHOW) contain exactly the names that the user
// may know, under any rules and any conditions, and for each way to ask a catalog.

const CATALOGS = ['lake', 'hive'] as const
const SCHEMAS = ['a', 'b'] as const
const TABLES = ['t', 'u', 'v'] as const
const COLUMNS = ['x', 'y', 'z'] as const
/** The text of filters and masks, which must not appear in any list. */
const SECRET = 'unspeakable'

interface Named {
  readonly catalog: string
  readonly schema: string
  readonly table: string
}

/** @param describes whether the catalog describes the tables of a schema itself */
function fixedCatalog(catalog: string, describes: boolean): Connector {
  const tableOf = (schema: string, table: string): ConnectorTable | undefined => {
    if (!SCHEMAS.some((one) => one === schema) || !TABLES.some((one) => one === table)) return undefined
    const columns = COLUMNS.map((name) => ({ name, type: 'bigint', nullable: true }))
    const found = { schema, table, handle: {}, columns, comment: `${catalog} ${schema} ${table}` }
    return table === 'v'
      ? { ...found, kind: 'VIEW', view: { sql: `SELECT 1 x, 2 y, 3 z`, owner: 'root' } }
      : { ...found, kind: 'TABLE' }
  }
  return {
    catalog,
    connectorName: 'lake',
    abilities: { ...READ_ONLY, views: true },
    listSchemas: async () => SCHEMAS,
    listTables: async (schema, named = () => true) =>
      SCHEMAS.filter((one) => schema === undefined || one === schema).flatMap((one) =>
        TABLES.filter((table) => named(table)).map((table) => ({
          schema: one,
          table,
          kind: tableOf(one, table)!.kind,
        })),
      ),
    ...(describes && {
      async describeTables(schema, named, take) {
        for (const table of TABLES) if (named(table) && tableOf(schema, table)) take(tableOf(schema, table)!)
      },
    }),
    getTable: async (schema, table) => tableOf(schema, table),
    getStatistics: async () => ({}),
    listSplits: async () => [],
    tableSource: async () => [{ kind: 'empty', columns: [] }],
    verifySplits: async () => {},
    allowedDirectories: () => [],
  }
}

/** How a catalog describes its tables: each alone, those of a schema together, or by the metadata of a cluster. */
const KINDS = ['each', 'whole', 'remote'] as const
type Kind = (typeof KINDS)[number]

function catalogOfKind(catalog: string, kind: Kind): Connector {
  const fixed = fixedCatalog(catalog, kind === 'whole')
  if (kind !== 'remote') return fixed
  const columns = async (schema: string, table: string) => (await fixed.getTable(schema, table))?.columns
  const metadata: ServerMetadata = {
    schemas: async () => fixed.listSchemas(),
    tables: async (_, schema) => fixed.listTables(schema),
    columns: async (_, schema, table) => columns(schema, table),
    allColumns: async (_, schema) => {
      const described = TABLES.map(async (table) => [table, (await columns(schema, table)) ?? []] as const)
      return new Map(await Promise.all(described))
    },
  }
  return createTrinoConnector({ catalog, group: 'big', metadata })
}

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const scope = {
  user: optional(fc.constantFrom('ada', 'bob')),
  catalog: optional(fc.constantFrom(...CATALOGS)),
}
const columnRule = fc.record({
  name: fc.constantFrom(...COLUMNS),
  allow: fc.boolean(),
  mask: optional(fc.constant(`'${SECRET}'`)),
})
const rules = fc.record({
  catalogs: optional(
    fc.array(fc.record({ ...scope, allow: fc.constantFrom('all', 'read-only', 'none') }), { maxLength: 3 }),
  ),
  schemas: fc.array(fc.record({ ...scope, schema: optional(fc.constantFrom(...SCHEMAS)), owner: fc.boolean() }), {
    maxLength: 2,
  }),
  tables: fc.array(
    fc.record({
      ...scope,
      schema: optional(fc.constantFrom(...SCHEMAS)),
      table: optional(fc.constantFrom(...TABLES)),
      privileges: fc.subarray(['SELECT', 'INSERT', 'GRANT_SELECT'] as const),
      columns: optional(fc.uniqueArray(columnRule, { selector: ({ name }) => name, maxLength: 2 })),
      filter: optional(fc.constant(`x <> '${SECRET}'`)),
    }),
    { maxLength: 4 },
  ),
})
type Rules = typeof rules extends fc.Arbitrary<infer T> ? T : never

/** The meaning of such rules by Trino's documentation, as plainly as possible. */
function model({ catalogs, schemas, tables }: Rules, user: string) {
  const first = <T extends object>(list: readonly T[], names: Readonly<Record<string, string>>): T | undefined =>
    list.find((rule) =>
      Object.entries({ ...names, user }).every(([key, name]) => {
        const asked = (rule as Readonly<Record<string, unknown>>)[key]
        return asked === undefined || asked === name
      }),
    )
  const level = (catalog: string): string =>
    catalogs === undefined ? 'all' : (first(catalogs, { catalog })?.allow ?? 'none')
  const owns = ({ catalog, schema }: Named): boolean =>
    level(catalog) === 'all' && first(schemas, { catalog, schema })?.owner === true
  const ruleOf = (name: Named) => first(tables, { ...name })
  const any = (name: Named): boolean => level(name.catalog) !== 'none' && (ruleOf(name)?.privileges.length ?? 0) > 0
  return {
    level,
    any,
    /** The owner of a schema knows of its tables, but not of their columns. */
    table: (name: Named): boolean => any(name) || owns(name),
    columns: (name: Named): readonly string[] => {
      if (!any(name)) return []
      const { privileges = [], columns = [] } = ruleOf(name) ?? {}
      const reads = privileges.every((one) => one !== 'INSERT')
      const restricted = columns.filter(({ allow }) => !allow).map((one) => one.name)
      return COLUMNS.filter((column) => !reads || !restricted.includes(column))
    },
  }
}

const TABLES_OF_ALL: readonly Named[] = CATALOGS.flatMap((catalog) =>
  SCHEMAS.flatMap((schema) => TABLES.map((table) => ({ catalog, schema, table }))),
)

/** The columns of each list that name its subject: catalog, schema, table, column. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  'information_schema.tables': ['table_catalog', 'table_schema', 'table_name'],
  'information_schema.columns': ['table_catalog', 'table_schema', 'table_name', 'column_name'],
  'information_schema.views': ['table_catalog', 'table_schema', 'table_name'],
  'jdbc.tables': ['table_cat', 'table_schem', 'table_name'],
  'jdbc.columns': ['table_cat', 'table_schem', 'table_name', 'column_name'],
  'metadata.table_comments': ['catalog_name', 'schema_name', 'table_name'],
}

describe('Lists of names', { timeout: 600_000 }, () => {
  let database: InProcessDuckDB
  beforeAll(async () => {
    database = await openDuckDB()
  })
  afterAll(() => database.close())

  const catalogsOf = (kind: Kind): Catalogs => {
    const made = CATALOGS.map((catalog) => [catalog, catalogOfKind(catalog, kind)] as const)
    const all = createCatalogs(new Map(made))
    const sources = (): never => {
      throw new Error('nothing of the runtime is asked for')
    }
    return kind === 'remote'
      ? withSystemCatalog(createCatalogs(new Map()), sources, historyTables, () => all)
      : withSystemCatalog(all, sources, historyTables)
  }
  const list = fc.constantFrom(...Object.keys(LISTS))
  const condition = fc.oneof(
    fc
      .constantFrom<readonly string[]>(['t'], ['t', 'u'], ['a'], ['lake'], ['x', 'y'])
      .map((values) => ({ in: values })),
    fc.constantFrom('%', '_', 'l%', 't').map((like) => ({ like, escape: '!' })),
  )
  const where = fc.dictionary(fc.constantFrom('0', '1', '2', '3'), fc.array(condition, { minLength: 1, maxLength: 1 }))

  it('contain in tables of a catalog exactly the names that the user may know', async () => {
    await fc.assert(
      fc.asyncProperty(
        rules,
        fc.constantFrom('ada', 'eve'),
        list,
        where,
        fc.constantFrom(...KINDS),
        async (given, user, name, conditions, kind) => {
          const expected = model(given, user)
          const nameColumns = LISTS[name]!
          const [schema, table] = name.split('.') as [string, string]
          const catalogs = catalogsOf(kind)
          const asked = Object.fromEntries(
            Object.entries(conditions).flatMap(([at, all]) =>
              nameColumns[Number(at)] ? [[nameColumns[Number(at)]!, all]] : [],
            ),
          )
          const rowsOf = async (conditionsOf: object): Promise<string[]> => {
            const all: string[] = []
            for (const catalog of schema === 'information_schema' ? CATALOGS : ['system']) {
              const connector = catalogs.get(catalog)!
              const { handle, columns } = (await connector.getTable(schema, table))!
              const names = columns.map((column) => column.name)
              const splits = await connector.listSplits(handle, conditionsOf as never)
              const sight = accessOf({ rightsOf: rightsUnder(given), user })!
              const [split] = await connector.loadSplits!(splits, names, { ...askerNamed(user), sight })
              const rows = split!.data['rows'] as unknown[][]
              expect(JSON.stringify(rows)).not.toContain(SECRET)
              for (const row of rows)
                all.push(nameColumns.map((column) => String(row[names.indexOf(column)])).join('.'))
            }
            return all.filter((row) => /^(lake|hive)\.[ab]\./.test(row)).sort()
          }
          const shown = TABLES_OF_ALL.filter((one) => !name.endsWith('views') || one.table === 'v').flatMap((one) => {
            const text = `${one.catalog}.${one.schema}.${one.table}`
            if (nameColumns.length === 4) return expected.columns(one).map((column) => `${text}.${column}`)
            return expected.table(one) ? [text] : []
          })
          // The texts of views of a cluster are not known.
          const listed = kind === 'remote' && name.endsWith('views') ? [] : shown
          expect(await rowsOf({})).toEqual(listed.sort())
          const some = await rowsOf(asked)
          expect(listed).toEqual(expect.arrayContaining(some))
        },
      ),
      { numRuns: 300 },
    )
  })

  it('contain in SHOW statements exactly the names that the user may know', async () => {
    const planner = createStatementPlanner()
    const ports = KINDS.map((kind) => createMetadataPort(catalogsOf(kind)))
    await fc.assert(
      fc.asyncProperty(
        rules,
        fc.constantFrom('ada', 'eve'),
        fc.nat({ max: TABLES_OF_ALL.length - 1 }),
        fc.constantFrom(...ports),
        async (given, user, at, metadata) => {
          const expected = model(given, user)
          const one = TABLES_OF_ALL[at]!
          const session = { ...recordedSession(), user, rightsOf: rightsUnder(given) }
          const firsts = async (sql: string): Promise<unknown> => {
            try {
              const analyzed = await planText(planner, sql, session, metadata)
              if (analyzed.kind !== 'query') throw new Error(`${sql} is ${analyzed.kind}`)
              const rows = await database.rows(analyzed.query.sql)
              expect(JSON.stringify(rows)).not.toContain(SECRET)
              return rows.map(([first]) => first)
            } catch (error) {
              return (error as { errorName?: string }).errorName ?? String(error)
            }
          }
          const { catalog, schema, table } = one
          const open = expected.level(catalog) !== 'none'
          const columns = expected.any(one) ? expected.columns(one) : 'PERMISSION_DENIED'
          expect(await firsts(`SHOW COLUMNS FROM ${catalog}.${schema}.${table}`)).toEqual(columns)
          expect(await firsts(`DESCRIBE ${catalog}.${schema}.${table}`)).toEqual(columns)
          const tables = TABLES.filter((name) => expected.table({ catalog, schema, table: name }))
          const listed = await firsts(`SHOW TABLES FROM ${catalog}.${schema}`)
          expect(listed === 'PERMISSION_DENIED' ? [] : listed).toEqual(tables)
          const catalogs = (await firsts('SHOW CATALOGS')) as unknown[]
          expect(catalogs.includes(catalog)).toBe(open)
          const schemas = await firsts(`SHOW SCHEMAS FROM ${catalog}`)
          if (tables.length > 0) expect(schemas).toContain(schema)
          if (!open) expect(schemas).toBe('PERMISSION_DENIED')
        },
      ),
      { numRuns: 100 },
    )
  })
})
