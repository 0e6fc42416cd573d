import { lakeConnector } from '../connectors/lake/lake-connector.ts'
import type { ConnectorFactory } from '../connectors/spi/connector.ts'
import { tpchConnector } from '../connectors/tpch/tpch-connector.ts'

/** Every connector that a catalog file can name. */
export const connectorFactories: readonly ConnectorFactory[] = [tpchConnector, lakeConnector]
