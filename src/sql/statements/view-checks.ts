import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import { shownName } from '../access-control.ts'
import type { TableName } from '../analyzer/resolve.ts'
import type { QualifiedName } from '../syntax/ast.ts'
import type { CreateView, RenameMaterializedView, RenameView } from '../syntax/ast-statements.ts'
import { ObjectChecks, OWNERSHIP } from './object-checks.ts'
import { checkQueryColumns, newNameOf, type QueryColumns } from './table-checks.ts'

export async function checkCreateView(
  checks: ObjectChecks,
  node: CreateView,
  columns: () => Promise<QueryColumns>,
): Promise<void> {
  const { name, found } = await checks.find(node.name)
  checks.may(name, OWNERSHIP, 'create view')
  if (found !== undefined && (found.view === undefined || !node.replace)) {
    const what = found.view === undefined ? 'Table' : 'View'
    throw checks.error('TABLE_ALREADY_EXISTS', `${what} already exists: '${shownName(name)}'`)
  }
  checkQueryColumns(checks, await columns(), undefined)
}

export async function checkDropView(checks: ObjectChecks, written: QualifiedName, ifExists: boolean): Promise<void> {
  const { name, found } = await checks.find(written)
  if (found?.view !== undefined) return checks.may(name, OWNERSHIP, 'drop view')
  if (found !== undefined) throw otherKind(checks, 'View', name, found)
  if (!ifExists) throw checks.error('GENERIC_USER_ERROR', `View '${shownName(name)}' does not exist`)
}

/** No catalog has materialized views. */
export async function checkDropMaterializedView(
  checks: ObjectChecks,
  written: QualifiedName,
  ifExists: boolean,
): Promise<void> {
  const { name, found } = await checks.find(written)
  if (found !== undefined) throw otherKind(checks, 'Materialized view', name, found)
  if (!ifExists) throw checks.error('GENERIC_USER_ERROR', `Materialized view '${shownName(name)}' does not exist`)
}

function otherKind(checks: ObjectChecks, what: string, name: TableName, found: ConnectorTable) {
  const kind = found.view === undefined ? 'table' : 'view'
  const hint = `but a ${kind} with that name exists. Did you mean DROP ${kind.toUpperCase()} ${shownName(name)}?`
  return checks.error('GENERIC_USER_ERROR', `${what} '${shownName(name)}' does not exist, ${hint}`)
}

export async function checkRenameView(checks: ObjectChecks, { source, target }: RenameView): Promise<void> {
  const { name, found } = await checks.find(source)
  if (found?.view === undefined) throw checks.error('TABLE_NOT_FOUND', notRenamed('View', name, found))
  const to = newNameOf(name, target)
  const there = await checks.look(to, 'Target catalog')
  const shown = shownName(to)
  if (there.found?.view !== undefined) {
    throw checks.error('GENERIC_USER_ERROR', `Target view '${shown}' already exists`)
  }
  if (there.found !== undefined) {
    const message = `Target view '${shown}' does not exist, but a table with that name exists.`
    throw checks.error('TABLE_ALREADY_EXISTS', message)
  }
  if (to.catalog !== name.catalog) throw checks.error('NOT_SUPPORTED', 'View rename across catalogs is not supported')
  checks.may(name, OWNERSHIP, 'rename view from', ` to ${shown}`)
}

/** No catalog has materialized views. */
export async function checkRenameMaterializedView(
  checks: ObjectChecks,
  { source, exists }: RenameMaterializedView,
): Promise<void> {
  const { name, found } = await checks.find(source)
  if (found === undefined && exists) return
  throw checks.error('TABLE_NOT_FOUND', notRenamed('Materialized View', name, found))
}

function notRenamed(what: string, name: TableName, found: ConnectorTable | undefined): string {
  const message = `${what} '${shownName(name)}' does not exist`
  if (found === undefined) return message
  const kind = found.view === undefined ? 'table' : 'view'
  return `${message}, but a ${kind} with that name exists. Did you mean ALTER ${kind.toUpperCase()} ${shownName(name)} RENAME TO ...?`
}
