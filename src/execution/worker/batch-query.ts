import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { Connector, ConnectorSplit } from '../../connectors/spi/connector.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { Fragment, Split } from '../api/fragment.ts'
import type { EngineQuery, EngineRow } from '../engine/engine-query.ts'
import type { Batch } from './batches.ts'

/**
 * The query of an engine for a batch: the fragment over its scans, with each row in the wire's encoding, or, for a
 * write, in the columns and types of the target.
 * @throws EngineError when a catalog is not configured here
 */
export async function batchQuery(fragment: Fragment, batch: Batch, catalogs: Catalogs): Promise<EngineQuery> {
  const scans = await Promise.all(
    fragment.scans.map(({ catalog, columns, rowIds }, scan) =>
      connectorOf(catalogs, catalog).tableSource(splitsOf(batch, scan), columns, { rowIds }),
    ),
  )
  return { sql: fragment.sql, scans, row: rowOf(fragment) }
}

function rowOf({ write, output }: Fragment): EngineRow {
  if (!write) return { kind: 'json', values: output.map(({ wire }) => wire) }
  const { target, duckdbTypes } = write
  return {
    kind: 'typed',
    columns: target.columns.map(({ name, physical = name }, i) => ({ name: physical, type: duckdbTypes[i]! })),
  }
}

/** @throws EngineError when a split has changed since it was listed */
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
