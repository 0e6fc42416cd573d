import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { Connector, ConnectorSplit } from '../../connectors/spi/connector.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { Fragment, Split } from '../api/fragment.ts'
import type { Batch } from './batches.ts'

/**
 * The text of a batch: each scan's table expression as a CTE, the fragment over them, each row as the JSON text of an
 * array in the wire's encoding.
 * @throws EngineError when a catalog is not configured here or a split has changed since it was listed
 */
export async function batchSql(fragment: Fragment, batch: Batch, catalogs: Catalogs): Promise<string> {
  const scans = await scanExpressions(fragment, batch, catalogs)
  const row = fragment.output.map(({ wire }) => wire).join(', ')
  const columns = fragment.output.map((_, i) => `c${i}`).join(', ')
  const select = `SELECT CAST(json_array(${row}) AS VARCHAR) FROM (${fragment.sql}) AS q(${columns})`
  return scans.length > 0 ? `WITH ${scans.join(', ')} ${select}` : select
}

/** The common tables `"$s0"`, `"$s1"` … that the fragment reads. */
export function scanExpressions(fragment: Fragment, batch: Batch, catalogs: Catalogs): Promise<readonly string[]> {
  return Promise.all(
    fragment.scans.map(async ({ catalog, columns }, scan) => {
      const splits = splitsOf(batch, scan)
      const expression = await connectorOf(catalogs, catalog).tableExpression(splits, columns)
      // Not materialised: filters and column choice of the fragment must reach the scan.
      return `"$s${scan}" AS NOT MATERIALIZED (${expression})`
    }),
  )
}

/** @throws EngineError when a split that was read has changed meanwhile */
export async function verifyBatch(fragment: Fragment, batch: Batch, catalogs: Catalogs): Promise<void> {
  await Promise.all(
    fragment.scans.map(({ catalog }, scan) => connectorOf(catalogs, catalog).verifySplits(splitsOf(batch, scan))),
  )
}

function splitsOf(batch: Batch, scan: number): ConnectorSplit[] {
  return batch.splits.filter((split) => split.scan === scan).map(toConnectorSplit)
}

function toConnectorSplit({ catalog, data, rows, bytes, columnBytes }: Split): ConnectorSplit {
  return {
    catalog,
    data,
    ...(rows !== undefined && { rows }),
    ...(bytes !== undefined && { bytes }),
    ...(columnBytes && { columnBytes }),
  }
}

function connectorOf(catalogs: Catalogs, name: string): Connector {
  const connector = catalogs.get(name)
  if (!connector) throw new EngineError('CATALOG_NOT_AVAILABLE', `Catalog '${name}' is not configured on the worker`)
  return connector
}
