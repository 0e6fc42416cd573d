import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { Asker, Connector, ConnectorSplit } from '../../connectors/spi/connector.ts'
import type { Split } from '../../execution/api/fragment.ts'
import type { RenderedQuery } from '../../planner/planned-statement.ts'
import type { Stage } from '../../planner/query-plan.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { MetadataPort } from '../../sql/front-end.ts'

/**
 * The front end's view of the catalogs. `information_schema` is a schema of every catalog of this server.
 * @param user the user that catalogs of other servers are shown to; absent: they are not shown to a certain user
 */
export function createMetadataPort(catalogs: Catalogs, user?: string): MetadataPort {
  const of = (catalog: string): Connector | undefined => {
    const connector = catalogs.get(catalog)
    return user === undefined ? connector : (connector?.forUser?.(user) ?? connector)
  }
  return {
    catalogs: () => catalogs.names(),
    schemas: async (catalog) => (await of(catalog)?.listSchemas()) ?? [],
    tables: async (catalog, schema, named) => (await of(catalog)?.listTables(schema, named)) ?? [],
    table: async (catalog, schema, table, at) => of(catalog)?.getTable(schema, table, at),
    statistics: async (catalog, handle) => {
      const connector = of(catalog)
      if (connector === undefined) return {}
      const columns = await connector.getColumnStatistics?.(handle)
      return { ...(await connector.getStatistics(handle)), ...(columns && { columns }) }
    },
    abilities: (catalog) => of(catalog)?.abilities,
  }
}

/**
 * Lists the splits of every scan at the snapshot that its handle names; their sizes cover only the columns that are
 * read.
 */
export async function listSplits(
  catalogs: Catalogs,
  query: RenderedQuery,
): Promise<{ splits: readonly Split[]; coordinatorOnly: boolean }> {
  let coordinatorOnly = true
  const perScan = await Promise.all(
    query.scans.map(async (scan, index) => {
      const connector = connectorOf(catalogs, scan.catalog)
      if (!isOfSystem(connector, scan)) coordinatorOnly = false
      const { handle, where, question, columns, partitions } = scan
      const splits = await connector.listSplits(handle, where, question, columns, partitions)
      return splits.map((split) => splitOf(index, split, scan.columns))
    }),
  )
  return { splits: perScan.flat(), coordinatorOnly }
}

/**
 * The compressed bytes of the columns that a query reads from the splits. Splits of an unknown size count nothing;
 * undefined if no size is known. Tables that only the access rules read do not count: users may not learn their sizes.
 */
export function bytesRead({ scans }: Pick<RenderedQuery, 'scans'>, splits: readonly Split[]): number | undefined {
  const sizes = splits.flatMap(({ scan, bytes, columnBytes }) => {
    if (scans[scan]?.ofRule) return []
    if (columnBytes) return Object.values(columnBytes).reduce((sum, each) => sum + each, 0)
    return bytes ?? []
  })
  if (sizes.length === 0 && splits.length > 0) return undefined
  return sizes.reduce((sum, each) => sum + each, 0)
}

/** A stage's splits as an engine gets them. Splits that only name their rows get the rows as they are now. */
export async function loadSplits(
  catalogs: Catalogs,
  { fragment, splits }: Stage,
  asker: Asker,
): Promise<readonly Split[]> {
  const scans = fragment?.scans ?? []
  const perScan = await Promise.all(
    scans.map(async (scan, index) => {
      const own = splits.filter((split) => split.scan === index)
      const connector = connectorOf(catalogs, scan.catalog)
      if (!connector.loadSplits || !isOfSystem(connector, scan)) return own
      const loaded = await connector.loadSplits(own.map(connectorSplit), scan.columns, asker)
      return loaded.map((split) => splitOf(index, split, scan.columns))
    }),
  )
  return perScan.flat()
}

/** Whether the stage reads rows that only the coordinator has. */
export function readsSystem(catalogs: Catalogs, { fragment }: Stage): boolean {
  return fragment?.scans.some((scan) => isOfSystem(connectorOf(catalogs, scan.catalog), scan)) ?? false
}

/** A split in the form that its connector knows. */
export function connectorSplit({ catalog, data, rows, bytes, columnBytes }: Split): ConnectorSplit {
  return {
    catalog,
    data,
    ...(rows === undefined ? {} : { rows }),
    ...(bytes === undefined ? {} : { bytes }),
    ...(columnBytes === undefined ? {} : { columnBytes }),
  }
}

function splitOf(
  scan: number,
  { catalog, data, rows, bytes, columnBytes }: ConnectorSplit,
  read: readonly string[],
): Split {
  return {
    scan,
    catalog,
    data: { ...data },
    ...(rows === undefined ? {} : { rows }),
    ...(bytes === undefined ? {} : { bytes }),
    ...(columnBytes === undefined ? {} : { columnBytes: bytesOf(columnBytes, read) }),
  }
}

/** The bytes of the columns that are read; a column whose size the file does not give stays unknown. */
function bytesOf(columnBytes: Readonly<Record<string, number>>, read: readonly string[]): Record<string, number> {
  const known = read.filter((column) => Object.hasOwn(columnBytes, column))
  return Object.fromEntries(known.map((column) => [column, columnBytes[column]!]))
}

/** Whether the rows of a table are the coordinator's own data. */
function isOfSystem(connector: Connector, { schema }: { readonly schema: string }): boolean {
  return connector.connectorName === 'system' || schema === 'information_schema'
}

/** The catalogs that a query reads, as text for users. */
export function catalogNames({ scans }: RenderedQuery): string {
  return [...new Set(scans.map(({ catalog }) => catalog))].join(', ')
}

export function connectorOf(catalogs: Catalogs, catalog: string): Connector {
  const connector = catalogs.get(catalog)
  if (!connector) throw new EngineError('CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
  return connector
}
