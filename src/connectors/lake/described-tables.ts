import type { ConnectorColumn, ConnectorTable } from '../spi/connector.ts'
import type { ViewDefinition } from '../spi/table-writer.ts'
import type { NamedObject } from './lake-folders.ts'
import type { Manifest, TableContent } from './manifest.ts'
import type { TableVersion } from './table-history.ts'

/** Columns and properties of a table, with its partition keys marked. */
export function withPartitionKeys(
  columns: readonly ConnectorColumn[],
  keys: readonly { readonly name: string }[],
  properties: ConnectorTable['properties'],
): Pick<ConnectorTable, 'columns' | 'properties'> {
  if (keys.length === 0) return { columns, ...(properties && { properties }) }
  const names = keys.map(({ name }) => name)
  return {
    columns: columns.map((column) => (names.includes(column.name) ? { ...column, partitionKey: true } : column)),
    properties: { ...properties, partitioned_by: names },
  }
}

/** Whether an object may have one of these columns. The columns of files without manifest are not known yet. */
export function mayHaveColumn(object: NamedObject, names: ReadonlySet<string>): boolean {
  if (object.kind === 'PLAIN') return true
  const { content } = object.manifest
  switch (content.kind) {
    case 'table':
      return content.columns.some(({ name }) => names.has(name))
    case 'view':
    case 'materializedView':
      return content.definition.columns.some(({ name }) => names.has(name))
    case 'schema':
    case 'dropped':
      return false
  }
}

/** The table or view of a manifest; undefined if it has neither. */
export function manifestTable(
  schema: string,
  table: string,
  { version, content }: Manifest,
): ConnectorTable | undefined {
  switch (content.kind) {
    case 'table':
      return {
        schema,
        table,
        kind: 'TABLE',
        handle: { schema, table, version, id: content.id },
        id: content.id,
        version,
        snapshot: `${content.id} ${version}`,
        ...withPartitionKeys(
          content.columns.map(({ name, type, nullable, comment }) =>
            comment === undefined ? { name, type, nullable } : { name, type, nullable, comment },
          ),
          content.adopted?.keys ?? [],
          undefined,
        ),
        ...(content.comment !== undefined && { comment: content.comment }),
      }
    case 'view':
      return {
        schema,
        table,
        kind: 'VIEW',
        handle: { schema, table, version },
        version,
        ...viewParts(content.definition),
      }
    case 'materializedView': {
      const { definition, id, stored } = content
      const { gracePeriodMillis } = definition
      const rows = stored && {
        refreshedAt: stored.refreshedAt,
        sources: stored.sources,
        ...(stored.query !== undefined && { query: stored.query }),
      }
      return {
        schema,
        table,
        kind: 'TABLE',
        handle: { schema, table, version, ...(stored && { id: stored.table.id }) },
        id,
        version,
        ...(stored && { snapshot: `${stored.table.id} ${stored.table.changedAt}` }),
        ...viewParts(definition),
        materialized: { ...(gracePeriodMillis !== undefined && { gracePeriodMillis }), ...(rows && { stored: rows }) },
      }
    }
    case 'schema':
    case 'dropped':
      return undefined
  }
}

function viewParts({
  columns,
  comment,
  sql,
  catalog,
  schema,
  owner,
  runAsInvoker,
}: ViewDefinition): Pick<ConnectorTable, 'columns' | 'comment' | 'view'> {
  return {
    columns: columns.map(({ comment: note, ...column }) => ({
      ...column,
      ...(note !== undefined && { comment: note }),
    })),
    ...(comment !== undefined && { comment }),
    view: {
      sql,
      ...(catalog !== undefined && { catalog }),
      ...(schema !== undefined && { schema }),
      ...(owner !== undefined && { owner }),
      runAsInvoker,
    },
  }
}

/**
 * An older version of a table.
 * @param folder of its manifest, relative to the location: the table may have had another name
 */
export function olderTable(
  schema: string,
  table: string,
  { manifest, folder }: Pick<TableVersion, 'manifest' | 'folder'>,
  today: TableContent,
): ConnectorTable {
  const { columns, ...described } = manifestTable(schema, table, manifest)!
  const names = new Map(today.columns.map(({ id, name }) => [id, name]))
  const last = new Map(today.dropped?.map(({ id, name }) => [id, name]))
  return {
    ...described,
    handle: { ...described.handle, folder },
    columns: columns.map((column, at) => {
      const { id } = manifest.content.columns[at]!
      const nameToday = names.get(id)
      return { ...column, ...(nameToday === undefined ? { lastName: last.get(id) ?? column.name } : { nameToday }) }
    }),
  }
}
