import { READ_ONLY, type ConnectorTable } from '../../../src/connectors/spi/connector.ts'
import type { MetadataPort } from '../../../src/sql/front-end.ts'
import type { SessionContext } from '../../../src/sql/session.ts'
import { parseQueryId } from '../../../src/shared/ids.ts'

const tables: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  nation: { nationkey: 'bigint', name: 'varchar(25)', regionkey: 'bigint', comment: 'varchar(152)' },
  region: { regionkey: 'bigint', name: 'varchar(25)', comment: 'varchar(152)' },
  orders: { orderkey: 'bigint', totalprice: 'double', orderdate: 'date' },
}

/** A catalog `tpch` with schemas tiny and sf1 of three tables, and a view `big_nation` in tiny. */
export const fixedMetadata: MetadataPort = {
  catalogs: () => ['tpch', 'system'],
  schemas: async (catalog) => (catalog === 'tpch' ? ['information_schema', 'sf1', 'tiny'] : ['information_schema']),
  tables: async (catalog, schema) =>
    catalog === 'tpch' && (schema === 'tiny' || schema === 'sf1')
      ? Object.keys(tables).map((table) => ({ schema, table, kind: 'TABLE' }))
      : [],
  table: async (catalog, schema, table) => (catalog === 'tpch' ? tableOf(schema, table) : undefined),
  statistics: async () => ({ rows: 25 }),
  abilities: () => READ_ONLY,
}

function tableOf(schema: string, table: string): ConnectorTable | undefined {
  if (schema !== 'tiny' && schema !== 'sf1') return undefined
  const view = table === 'big_nation' ? { sql: 'SELECT name FROM nation', catalog: 'tpch', schema } : undefined
  const columns = tables[view === undefined ? table : 'nation']
  if (columns === undefined) return undefined
  return {
    schema,
    table,
    kind: view === undefined ? 'TABLE' : 'VIEW',
    handle: { schema, table },
    columns: Object.entries(columns).map(([name, type]) => ({ name, type, nullable: false })),
    ...(view && { view }),
  }
}

/** The session in which the corpus was recorded. */
export function recordedSession(overrides: Partial<SessionContext> = {}): SessionContext {
  return {
    queryId: parseQueryId('20240101_000000_00000_aaaaa'),
    user: 'conformance',
    groups: [],
    catalog: 'tpch',
    schema: 'tiny',
    timeZone: 'UTC',
    startTimeMillis: Date.UTC(2024, 0, 1),
    properties: {},
    preparedStatements: {},
    transactionId: 'NONE',
    roles: {},
    clientCapabilities: ['PATH', 'PARAMETRIC_DATETIME', 'SESSION_AUTHORIZATION'],
    headerFamily: 'Trino',
    ...overrides,
  }
}
