import type { ConnectorContext } from '../../src/connectors/spi/connector.ts'
import { duckdbTypeOf } from '../../src/processes/connector-factories.ts'

/** The context of a connector that has all its folders in one, and that reads files by `inspect`. */
export function connectorContext(folder: string, inspect: ConnectorContext['inspect']): ConnectorContext {
  return {
    dataDir: folder,
    tablesDir: folder,
    shippedDir: folder,
    catalogDir: folder,
    inspect,
    duckdbType: duckdbTypeOf,
  }
}
