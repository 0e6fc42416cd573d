import { resolve } from 'node:path'
import { tablesFolder } from '../config/data-folders.ts'
import type { Config } from '../config/load-config.ts'
import { lakeConnector, memoryConnector } from '../connectors/lake/lake-connector.ts'
import { loadCatalogs } from '../connectors/spi/catalog-files.ts'
import type { Catalogs } from '../connectors/spi/catalogs.ts'
import type { ConnectorContext, ConnectorFactory } from '../connectors/spi/connector.ts'
import { tpchConnector } from '../connectors/tpch/tpch-connector.ts'
import { shippedFiles } from '../shared/shipped-files.ts'
import { duckdbTypeText } from '../sql/types/duckdb-representation.ts'
import { parseTypeText } from '../sql/types/type-names.ts'

/** Every connector that a catalog file can name. */
export const connectorFactories: readonly ConnectorFactory[] = [tpchConnector, lakeConnector, memoryConnector]

/** The DuckDB type for a type given as Trino's text. */
export function duckdbTypeOf(type: string): string {
  return duckdbTypeText(parseTypeText(type))
}

/**
 * The catalogs that the configuration names.
 * @param inspect asks an engine about files; called only once the engine is there
 * @throws ExitError 64 when a catalog file is broken
 */
export function configuredCatalogs(config: Config, inspect: ConnectorContext['inspect']): Catalogs {
  return loadCatalogs(resolve(config.catalogDir), connectorFactories, {
    dataDir: resolve(config.dataDir),
    tablesDir: tablesFolder(config),
    shippedDir: shippedFiles,
    duckdbType: duckdbTypeOf,
    inspect,
  })
}
