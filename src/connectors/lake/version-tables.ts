import type { ConnectorColumn, ConnectorTable } from '../spi/connector.ts'
import type { RowShape, TableSource } from '../spi/table-source.ts'
import { countRows } from './removals.ts'
import type { Manifest, TableContent } from './manifest.ts'
import type { TableHistory, TableVersion } from './table-history.ts'

/** Tables about the versions of a table, `"t$history"`, with the columns that they have in Trino's Iceberg connector. */
export const versionTables = ['history', 'snapshots'] as const
export type VersionTable = (typeof versionTables)[number]

const TABLES = {
  history: {
    made_current_at: 'timestamp(3) with time zone',
    snapshot_id: 'bigint',
    parent_id: 'bigint',
    is_current_ancestor: 'boolean',
  },
  snapshots: {
    committed_at: 'timestamp(3) with time zone',
    snapshot_id: 'bigint',
    parent_id: 'bigint',
    operation: 'varchar',
    manifest_list: 'varchar',
    summary: 'map(varchar, varchar)',
  },
} as const satisfies Record<VersionTable, Readonly<Record<string, string>>>

type Row = Readonly<Record<string, unknown>>

/** The table and the kind that a name asks for; undefined for any other name. */
export function versionTableOf(name: string): { readonly of: string; readonly kind: VersionTable } | undefined {
  const [, of, kind] = /^(.+)\$(history|snapshots)$/.exec(name) ?? []
  return of === undefined ? undefined : { of, kind: kind as VersionTable }
}

/** @param of the table whose versions the rows describe */
export function versionTable(kind: VersionTable, of: ConnectorTable): ConnectorTable {
  return {
    schema: of.schema,
    table: `${of.table}$${kind}`,
    kind: 'TABLE',
    handle: { ...of.handle, history: kind },
    columns: columnsOf(kind),
    ...(of.snapshot !== undefined && { snapshot: of.snapshot }),
    about: of.table,
  }
}

function columnsOf(kind: VersionTable): ConnectorColumn[] {
  return Object.entries(TABLES[kind]).map(([name, type]) => ({ name, type, nullable: true }))
}

/** The rows about the versions that are kept, the oldest first. */
export async function versionSource(
  kind: VersionTable,
  history: TableHistory,
  newest: TableVersion,
  wanted: readonly string[],
): Promise<TableSource> {
  const rows: Row[] = []
  for await (const version of history.versions(newest)) rows.push(rowOf(kind, version))
  const types: Readonly<Record<string, string>> = TABLES[kind]
  const columns = wanted.map((name) => ({ name, shape: shapeOf(types[name]!) }))
  return [{ kind: 'rows', rows: rows.reverse(), columns }]
}

function rowOf(kind: VersionTable, { manifest, parent }: TableVersion & { readonly parent: number | undefined }): Row {
  const at = { t: new Date(manifest.time).toISOString().replace('T', ' ').replace('Z', ''), z: 'UTC' }
  const ids = { snapshot_id: manifest.version, parent_id: parent ?? null }
  switch (kind) {
    case 'history':
      return { made_current_at: at, ...ids, is_current_ancestor: true }
    case 'snapshots':
      return { committed_at: at, ...ids, operation: manifest.operation ?? null, summary: summaryOf(manifest) }
  }
}

/** Facts about a version under the names that they have in Iceberg, as far as there are such names. */
function summaryOf(manifest: Manifest & { readonly content: TableContent }): Readonly<Record<string, string>> {
  const { content, committed, version } = manifest
  const query = committed.find((commit) => commit.version === version)?.queryId
  return {
    ...(query !== undefined && { trino_query_id: query }),
    'total-data-files': String(content.files.length + (content.adopted?.files.length ?? 0)),
    'total-files-size': String(content.files.reduce((sum, { bytes }) => sum + bytes, 0)),
    ...(!content.adopted && { 'total-records': String(countRows(content)) }),
  }
}

function shapeOf(type: string): RowShape {
  switch (type) {
    case 'timestamp(3) with time zone':
      return { t: 'TIMESTAMP', z: 'VARCHAR' }
    case 'map(varchar, varchar)':
      return 'MAP(VARCHAR, VARCHAR)'
    default:
      return type.toUpperCase()
  }
}
