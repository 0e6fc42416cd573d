import { READ_ONLY, type ConnectorTable } from '../../src/connectors/spi/connector.ts'
import { createStatementPlanner } from '../../src/planner/statement-planner.ts'
import type { PlannedStatement, RenderedQuery } from '../../src/planner/planned-statement.ts'
import type { MetadataPort, ResultColumn } from '../../src/sql/front-end.ts'
import type { SessionContext } from '../../src/sql/session.ts'
import { parseQueryId } from '../../src/shared/ids.ts'
import { planText } from './plan-text.ts'

export const session: SessionContext = {
  queryId: parseQueryId('20240101_000000_00000_tests'),
  user: 'somebody',
  groups: [],
  catalog: 'shop',
  schema: 'main',
  timeZone: 'UTC',
  startTimeMillis: Date.UTC(2024, 0, 1),
  properties: {},
  preparedStatements: {},
  roles: {},
  clientCapabilities: ['PARAMETRIC_DATETIME'],
  headerFamily: 'Trino',
}

const columns = (...list: readonly (readonly [string, string])[]): ConnectorTable['columns'] =>
  list.map(([name, type]) => ({ name, type, nullable: true }))

const table = (name: string, list: ConnectorTable['columns'], rest: Partial<ConnectorTable> = {}): ConnectorTable => ({
  schema: 'main',
  table: name,
  kind: rest.view === undefined ? 'TABLE' : 'VIEW',
  handle: { table: name },
  columns: list,
  ...rest,
})

const tables: readonly ConnectorTable[] = [
  table(
    'orders',
    columns(['id', 'bigint'], ['customer', 'bigint'], ['total', 'decimal(12,2)'], ['tags', 'array(varchar)']),
  ),
  table('customers', columns(['id', 'bigint'], ['name', 'varchar(20)'], ['since', 'timestamp(3) with time zone'])),
  table('big_orders', columns(['id', 'bigint'], ['total', 'double']), {
    view: { sql: 'SELECT id, total FROM orders WHERE total > 100', catalog: 'shop', schema: 'main' },
  }),
  table('best_orders', columns(['id', 'bigint'], ['customer', 'bigint']), {
    view: {
      sql: 'SELECT b.id, o.customer FROM big_orders b JOIN orders o ON o.id = b.id WHERE b.total > 1000',
      catalog: 'shop',
      schema: 'main',
    },
  }),
  table('stale', columns(['id', 'bigint'], ['gone', 'bigint']), {
    view: { sql: 'SELECT id FROM orders', catalog: 'shop', schema: 'main' },
  }),
  table('broken', columns(['id', 'bigint']), {
    view: { sql: 'SELECT nosuch FROM orders', catalog: 'shop', schema: 'main' },
  }),
  table('itself', columns(['id', 'bigint']), {
    view: { sql: 'SELECT id FROM itself', catalog: 'shop', schema: 'main' },
  }),
]

/** A catalog `shop` with two tables and some views; `asked` collects the names that statements ask for. */
export function shopMetadata(asked: string[] = []): MetadataPort {
  return {
    catalogs: () => ['shop'],
    schemas: () => Promise.resolve(['main']),
    tables: () => Promise.resolve(tables.map(({ schema, table: name, kind }) => ({ schema, table: name, kind }))),
    table: (catalog, schema, name) => {
      asked.push(`${catalog}.${schema}.${name}`)
      return Promise.resolve(tables.find((each) => each.schema === schema && each.table === name))
    },
    statistics: () => Promise.resolve({}),
    abilities: () => READ_ONLY,
  }
}

const planner = createStatementPlanner()

export function analyze(
  sql: string,
  metadata = shopMetadata(),
  as: SessionContext = session,
): Promise<PlannedStatement> {
  return planText(planner, sql, as, metadata)
}

/** Analyzes a statement that must be a query. */
export async function analyzeQuery(
  sql: string,
  as: SessionContext = session,
  metadata = shopMetadata(),
): Promise<{ readonly query: RenderedQuery; readonly columns: readonly ResultColumn[] }> {
  const analyzed = await analyze(sql, metadata, as)
  if (analyzed.kind !== 'query') throw new Error(`No query: ${sql}`)
  return analyzed
}
