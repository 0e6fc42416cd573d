import type { MetadataPort } from '../../../sql/front-end.ts'

/** One call to a connector for a statement. */
export interface ConnectorCall {
  readonly operation: 'schemas' | 'tables' | 'table' | 'statistics' | 'splits'
  readonly catalog: string
  /** Wall clock, milliseconds with fractions. */
  readonly startMs: number
  readonly endMs: number
}

/** The most calls of a statement that are listed one by one. */
const MOST_CALLS = 50

/** The calls of a traced statement to its connectors, in the order of the answers. */
export interface ConnectorCalls {
  readonly made: readonly ConnectorCall[]
  timed<T>(operation: ConnectorCall['operation'], catalog: string, call: () => Promise<T>): Promise<T>
  /** The same port; it notes its calls. */
  noting(port: MetadataPort): MetadataPort
}

export function createConnectorCalls(): ConnectorCalls {
  const made: ConnectorCall[] = []
  const now = (): number => performance.timeOrigin + performance.now()
  async function timed<T>(operation: ConnectorCall['operation'], catalog: string, call: () => Promise<T>): Promise<T> {
    const startMs = now()
    try {
      return await call()
    } finally {
      if (made.length < MOST_CALLS) made.push({ operation, catalog, startMs, endMs: now() })
    }
  }
  return {
    made,
    timed,
    noting: (port) => ({
      catalogs: () => port.catalogs(),
      abilities: (catalog) => port.abilities(catalog),
      schemas: (catalog) => timed('schemas', catalog, () => port.schemas(catalog)),
      tables: (catalog, schema, named) => timed('tables', catalog, () => port.tables(catalog, schema, named)),
      table: (...name) => timed('table', name[0], () => port.table(...name)),
      statistics: (catalog, handle) => timed('statistics', catalog, () => port.statistics(catalog, handle)),
    }),
  }
}
