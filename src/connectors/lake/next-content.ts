import { EngineError } from '../../shared/engine-error.ts'
import type { PreparedWrite, TableChange, ViewDefinition, WrittenFile } from '../spi/table-writer.ts'
import { alterColumns } from './alter-columns.ts'
import {
  REMEMBERED_COUNT,
  REMEMBERED_MILLIS,
  type Manifest,
  type ManifestContent,
  type MaterializedViewContent,
  type TableContent,
  type TableFile,
} from './manifest.ts'
import { filesToRewrite, withRemovals, withoutDeadFiles } from './removals.ts'
import { newColumns, newTableParts, takesFiles } from './table-columns.ts'
import { expiredBefore } from './expired-versions.ts'

/** The first version of a table whose files were there before; no query committed it. */
export function adoption(content: TableContent, now: number): Manifest {
  return { format: 2, version: 1, time: now, committed: [], content }
}

/**
 * The version after `newest`, with a query's change in it.
 * @param above the number of the version is higher: an object that gets another name keeps counting
 */
export function nextManifest(
  newest: Manifest | undefined,
  { queryId, change }: Pick<PreparedWrite, 'queryId' | 'change'>,
  content: ManifestContent,
  now: number,
  above = 0,
): Manifest {
  const version = versionAfter(newest, above)
  const all = [...(newest?.committed ?? []), { queryId, version, time: now }]
  const committed = all.filter(
    ({ time }, index) => index >= all.length - REMEMBERED_COUNT || time > now - REMEMBERED_MILLIS,
  )
  return { format: 2, version, time: now, operation: operationOf(change), committed, content }
}

/** The name that Iceberg has for what a change does to the rows of a table. */
function operationOf(change: TableChange): NonNullable<Manifest['operation']> {
  switch (change.kind) {
    case 'createTable':
    case 'insert':
      return 'append'
    case 'refreshMaterializedView':
      return 'overwrite'
    case 'changeRows':
      return change.operation === 'DELETE' ? 'delete' : 'overwrite'
    case 'truncateTable':
    case 'dropTable':
      return 'delete'
    default:
      return 'replace'
  }
}

export function versionAfter(newest: Manifest | undefined, above = 0): number {
  return Math.max(newest?.version ?? 0, above) + 1
}

/** The state of a name before its next version. */
export interface Before {
  readonly newest: Manifest | undefined
  /** The view of readers is `dropped` for an object that is only there before or after an instant. */
  readonly visible: ManifestContent | undefined
  /** Whether the name's folder holds data files that no manifest names. */
  readonly plainData: boolean
  /** The folder, relative to the location. */
  readonly folder: string
  /** When the next version is made, milliseconds since the epoch. */
  readonly now: number
}

/**
 * The content of the version after `newest`, with the prepared change of one name in it.
 * @throws EngineError TRANSACTION_CONFLICT when the change cannot be made on it
 */
export function nextContent(
  { newest, visible, plainData, folder, now }: Before,
  prepared: PreparedWrite,
  duckdbType: (type: string) => string,
): ManifestContent {
  const { change } = prepared
  const free = visible ? visible.kind === 'dropped' : !plainData
  const version = versionAfter(newest)
  switch (change.kind) {
    case 'createSchema':
      if (visible && visible.kind !== 'dropped')
        throw conflict(`Schema '${change.schema}' was created by another writer`)
      return { kind: 'schema' }
    case 'dropSchema':
      return { kind: 'dropped' }
    case 'createTable': {
      if (!free && !(change.replace && visible?.kind === 'table')) throw createdByOther('Table', change)
      const parts = newTableParts(newColumns(change.columns, duckdbType))
      return {
        kind: 'table',
        id: prepared.queryId,
        ...(change.comment !== undefined && { comment: change.comment }),
        ...parts,
        files: tableFiles(prepared.files, folder, parts.fileSchema),
        removals: [],
        changedAt: version,
      }
    }
    case 'insert': {
      const content = sameTable(visible, prepared)
      const { fileSchema = content.fileSchema } = prepared
      const files = tableFiles(prepared.files, folder, fileSchema)
      if (files.length > 0 && !takesFiles(content, fileSchema)) throw conflict(`Columns of table '${nameOf(change)}' were changed by another writer`) // prettier-ignore
      return { ...content, files: [...content.files, ...files] }
    }
    case 'changeRows': {
      const content = unchangedTable(visible, prepared)
      const files = tableFiles(prepared.files, folder, prepared.fileSchema ?? content.fileSchema)
      return { ...withRemovals(content, files, prepared.files), changedAt: version }
    }
    case 'rewriteTable': {
      const content = unchangedTable(visible, prepared)
      const { baseFiles = content.files.length, fileSchema = content.fileSchema } = prepared
      const rewritten = filesToRewrite(content, baseFiles, change.smallBytes)
      if (rewritten.size === 0) return content
      const kept = content.files.filter(({ path }) => !rewritten.has(path))
      const files = [...kept, ...tableFiles(prepared.files, folder, fileSchema)]
      return withoutDeadFiles({ ...content, files, changedAt: version })
    }
    case 'truncateTable': {
      const { adopted: _, ...content } = sameTable(visible, prepared)
      return { ...content, files: [], removals: [], changedAt: version }
    }
    case 'alterColumns':
      return { ...alterColumns(sameTable(visible, prepared), change, duckdbType), changedAt: version }
    case 'expireVersions': {
      const content = sameTable(visible, prepared)
      const before = Math.max(expiredBefore(change), content.expired?.before ?? 0)
      return { ...content, expired: { before, at: now } }
    }
    case 'comment':
      return commented(visible, prepared, change)
    case 'dropTable':
      // Without an id the table is dropped with its schema, whichever table it is.
      if (visible?.kind !== 'table' || (prepared.tableId !== undefined && visible.id !== prepared.tableId)) {
        throw droppedByOther('Table', change)
      }
      return { kind: 'dropped' }
    case 'createView':
      if (!free && !(change.replace && visible?.kind === 'view')) throw createdByOther('View', change)
      return { kind: 'view', definition: change.definition }
    case 'dropView':
      if (visible?.kind !== 'view') throw droppedByOther('View', change)
      return { kind: 'dropped' }
    case 'createMaterializedView':
      if (!free && !(change.replace && visible?.kind === 'materializedView'))
        throw createdByOther('Materialized view', change)
      return { kind: 'materializedView', id: prepared.queryId, definition: change.definition }
    case 'dropMaterializedView':
      // Without an id it is dropped with its schema.
      if (visible?.kind !== 'materializedView' || (prepared.tableId !== undefined && visible.id !== prepared.tableId))
        throw droppedByOther('Materialized view', change)
      return { kind: 'dropped' }
    case 'refreshMaterializedView':
      return refreshed(sameMaterializedView(visible, prepared), prepared, change, { version, folder, duckdbType })
    case 'renameTable':
    case 'renameView':
    case 'renameMaterializedView':
    case 'renameSchema':
      throw new Error(`${change.kind} changes two names`)
  }
}

/** The table of the change. It has passed its instant, if it has one. */
function sameTable(visible: ManifestContent | undefined, { change, tableId }: PreparedWrite): TableContent {
  if (visible?.kind !== 'table' || visible.id !== tableId) throw droppedByOther('Table', change)
  return atRest(visible)
}

/** An object that has passed its instants does not need them any more. */
function atRest<T extends { since?: unknown; until?: unknown }>(content: T): Omit<T, 'since' | 'until'> {
  const { since: _since, until: _until, ...rest } = content
  return rest
}

/** The table of a change that was made from the rows of its base version. */
function unchangedTable(visible: ManifestContent | undefined, prepared: PreparedWrite): TableContent {
  const content = sameTable(visible, prepared)
  if (content.changedAt > prepared.baseVersion) throw conflict(`Rows of table '${nameOf(prepared.change)}' were changed by another writer`) // prettier-ignore
  return content
}

function commented(
  visible: ManifestContent | undefined,
  prepared: PreparedWrite,
  change: Extract<TableChange, { kind: 'comment' }>,
): ManifestContent {
  const { column, text } = change
  if (change.object === 'table') {
    const content = sameTable(visible, prepared)
    if (column === undefined) return withComment(content, text)
    return { ...content, columns: commentedColumns(content.columns, column, text, change) }
  }
  if (visible?.kind !== change.object) throw droppedByOther('View', change)
  switch (visible.kind) {
    case 'view': {
      const view = atRest(visible)
      return { ...view, definition: commentedDefinition(view.definition, change) }
    }
    case 'materializedView': {
      const view = atRest(visible)
      return { ...view, definition: commentedDefinition(view.definition, change) }
    }
  }
}

function commentedDefinition<D extends ViewDefinition>(
  definition: D,
  change: Extract<TableChange, { kind: 'comment' }>,
): D {
  const { column, text } = change
  if (column === undefined) return withComment(definition, text)
  return { ...definition, columns: commentedColumns(definition.columns, column, text, change) }
}

function sameMaterializedView(
  visible: ManifestContent | undefined,
  { change, tableId }: PreparedWrite,
): MaterializedViewContent {
  if (visible?.kind !== 'materializedView' || visible.id !== tableId) throw droppedByOther('Materialized view', change)
  return atRest(visible)
}

/** The materialized view with the rows of a refresh instead of its stored rows. */
function refreshed(
  content: MaterializedViewContent,
  { queryId, files }: PreparedWrite,
  { startedAt, sources, query }: Extract<TableChange, { kind: 'refreshMaterializedView' }>,
  at: { readonly version: number; readonly folder: string; readonly duckdbType: (type: string) => string },
): MaterializedViewContent {
  const parts = newTableParts(newColumns(content.definition.columns, at.duckdbType))
  const table: TableContent = {
    kind: 'table',
    id: queryId,
    ...parts,
    files: tableFiles(files, at.folder, parts.fileSchema),
    removals: [],
    changedAt: at.version,
  }
  return { ...content, stored: { table, refreshedAt: startedAt, sources, ...(query !== undefined && { query }) } }
}

function withComment<T extends { comment?: string | undefined }>(object: T, text: string | undefined): T {
  const { comment: _, ...rest } = object
  return { ...rest, ...(text !== undefined && { comment: text }) } as T
}

function commentedColumns<C extends { name: string; comment?: string | undefined }>(
  columns: readonly C[],
  name: string,
  text: string | undefined,
  change: TableChange,
): C[] {
  if (!columns.some((column) => column.name === name))
    throw conflict(`Column '${name}' of '${nameOf(change)}' was removed by another writer`)
  return columns.map((column) => (column.name === name ? withComment(column, text) : column))
}

/** @param folder of the table: paths of written files start there */
function tableFiles(files: readonly WrittenFile[], folder: string, schema: number): TableFile[] {
  return files
    .filter(({ rows }) => rows > 0)
    .map(({ change, path, ...file }) => ({
      ...file,
      path: `${folder}/${path}`,
      schema,
      ...(change && { live: change.live }),
    }))
}

function nameOf(change: TableChange): string {
  return 'table' in change ? `${change.schema}.${change.table}` : change.schema
}

function createdByOther(what: string, change: TableChange): EngineError {
  return conflict(`${what} '${nameOf(change)}' was created by another writer`)
}

function droppedByOther(what: string, change: TableChange): EngineError {
  return conflict(`${what} '${nameOf(change)}' was dropped by another writer`)
}

export function conflict(message: string): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', message)
}
