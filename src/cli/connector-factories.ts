import { join, resolve } from 'node:path'
import type { Config } from '../config/load-config.ts'
import { lakeConnector, memoryConnector } from '../connectors/lake/lake-connector.ts'
import type { ConnectorFactory } from '../connectors/spi/connector.ts'
import { tpchConnector } from '../connectors/tpch/tpch-connector.ts'
import { duckdbTypeText } from '../sql/types/duckdb-representation.ts'
import { parseTypeText } from '../sql/types/type-names.ts'

/** Every connector that a catalog file can name. */
export const connectorFactories: readonly ConnectorFactory[] = [tpchConnector, lakeConnector, memoryConnector]

/** Where the tables of `memory` catalogs lie. */
export function tablesFolder({ tablesDir, dataDir }: Pick<Config, 'tablesDir' | 'dataDir'>): string {
  return resolve(tablesDir ?? join(dataDir, 'tables'))
}

/** How DuckDB holds values of a type, by Trino's text of it. */
export function duckdbTypeOf(type: string): string {
  return duckdbTypeText(parseTypeText(type))
}
