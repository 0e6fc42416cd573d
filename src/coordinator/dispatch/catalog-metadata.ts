import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { Connector } from '../../connectors/spi/connector.ts'
import type { Split } from '../../execution/api/fragment.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { MetadataPort, RenderedQuery } from '../../sql/front-end.ts'

/** The front end's view of the configured catalogs. `information_schema` is a schema of every catalog. */
export function createMetadataPort(catalogs: Catalogs): MetadataPort {
  const of = (catalog: string): Connector | undefined => catalogs.get(catalog)
  return {
    catalogs: () => catalogs.names(),
    schemas: async (catalog) => (await of(catalog)?.listSchemas()) ?? [],
    tables: async (catalog, schema) => (await of(catalog)?.listTables(schema)) ?? [],
    table: async (catalog, schema, table) => of(catalog)?.getTable(schema, table),
    statistics: async (catalog, handle) => (await of(catalog)?.getStatistics(handle)) ?? {},
    abilities: (catalog) => of(catalog)?.abilities,
  }
}

/** Lists the splits of every scan at the snapshot its handle names. */
export async function listSplits(
  catalogs: Catalogs,
  query: RenderedQuery,
): Promise<{ splits: readonly Split[]; coordinatorOnly: boolean }> {
  let coordinatorOnly = true
  const perScan = await Promise.all(
    query.scans.map(async (scan, index) => {
      const connector = connectorOf(catalogs, scan.catalog)
      if (connector.connectorName !== 'system' && scan.schema !== 'information_schema') coordinatorOnly = false
      const splits = await connector.listSplits(scan.handle)
      return splits.map((split): Split => ({
        scan: index,
        catalog: split.catalog,
        data: { ...split.data },
        ...(split.rows === undefined ? {} : { rows: split.rows }),
        ...(split.bytes === undefined ? {} : { bytes: split.bytes }),
        ...(split.columnBytes === undefined ? {} : { columnBytes: { ...split.columnBytes } }),
      }))
    }),
  )
  return { splits: perScan.flat(), coordinatorOnly }
}

/** The catalogs that a query reads, for people. */
export function catalogsOf({ scans }: RenderedQuery): string {
  return [...new Set(scans.map(({ catalog }) => catalog))].join(', ')
}

export function connectorOf(catalogs: Catalogs, catalog: string): Connector {
  const connector = catalogs.get(catalog)
  if (!connector) throw new EngineError('CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
  return connector
}
