import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import { shownName } from '../access-control.ts'
import type { TableName } from '../analyzer/resolve.ts'
import type { QualifiedName } from '../syntax/ast-node.ts'
import type {
  CreateMaterializedView,
  CreateView,
  RenameMaterializedView,
  RenameView,
} from '../syntax/ast-definitions.ts'
import { kindOf, ObjectChecks, OWNERSHIP, titled } from './object-checks.ts'
import { checkQueryColumns, newNameOf, type QueryColumns } from './table-checks.ts'

export async function checkCreateView(
  checks: ObjectChecks,
  node: CreateView,
  columns: () => Promise<QueryColumns>,
): Promise<void> {
  const { name, found } = await checks.find(node.name)
  checks.may(name, OWNERSHIP, 'create view')
  if (found !== undefined && (kindOf(found) !== 'view' || !node.replace)) {
    throw checks.error('TABLE_ALREADY_EXISTS', `${titled(kindOf(found))} already exists: '${shownName(name)}'`)
  }
  checkQueryColumns(checks, await columns(), undefined)
}

export async function checkDropView(checks: ObjectChecks, written: QualifiedName, ifExists: boolean): Promise<void> {
  const { name, found } = await checks.find(written)
  if (found !== undefined && kindOf(found) === 'view') return checks.may(name, OWNERSHIP, 'drop view')
  if (found !== undefined) throw otherKind(checks, 'View', name, found)
  if (!ifExists) throw checks.error('GENERIC_USER_ERROR', `View '${shownName(name)}' does not exist`)
}

export async function checkCreateMaterializedView(
  checks: ObjectChecks,
  node: CreateMaterializedView,
  columns: () => Promise<QueryColumns>,
): Promise<void> {
  const { name, found } = await checks.find(node.name)
  checks.may(name, OWNERSHIP, 'create materialized view')
  checkQueryColumns(checks, await columns(), undefined)
  if (found === undefined || (kindOf(found) === 'materialized view' && (node.replace || node.notExists))) return
  if (kindOf(found) !== 'materialized view')
    throw checks.error('TABLE_ALREADY_EXISTS', `${titled(kindOf(found))} already exists: '${shownName(name)}'`)
  throw checks.error('ALREADY_EXISTS', `Materialized view already exists: '${shownName(name)}'`)
}

export async function checkRefreshMaterializedView(checks: ObjectChecks, written: QualifiedName): Promise<void> {
  const { name, found } = await checks.find(written)
  if (!found?.materialized)
    throw checks.error('TABLE_NOT_FOUND', `Materialized view '${shownName(name)}' does not exist`)
  checks.may(name, 'UPDATE', 'refresh materialized view')
}

export async function checkSetMaterializedViewProperties(checks: ObjectChecks, written: QualifiedName): Promise<void> {
  const { name, found } = await checks.find(written)
  if (found?.materialized) return checks.may(name, OWNERSHIP, 'set properties of materialized view')
  const other = found && `, but a ${kindOf(found)} with that name exists.`
  throw checks.error('TABLE_NOT_FOUND', `Materialized View '${shownName(name)}' does not exist${other ?? ''}`)
}

export async function checkDropMaterializedView(
  checks: ObjectChecks,
  written: QualifiedName,
  ifExists: boolean,
): Promise<void> {
  const { name, found } = await checks.find(written)
  if (found?.materialized) return checks.may(name, OWNERSHIP, 'drop materialized view')
  if (found !== undefined) throw otherKind(checks, 'Materialized view', name, found)
  if (!ifExists) throw checks.error('GENERIC_USER_ERROR', `Materialized view '${shownName(name)}' does not exist`)
}

function otherKind(checks: ObjectChecks, what: string, name: TableName, found: ConnectorTable) {
  const kind = kindOf(found)
  const hint = `but a ${kind} with that name exists. Did you mean DROP ${kind.toUpperCase()} ${shownName(name)}?`
  return checks.error('GENERIC_USER_ERROR', `${what} '${shownName(name)}' does not exist, ${hint}`)
}

export async function checkRenameView(checks: ObjectChecks, { source, target }: RenameView): Promise<void> {
  const { name, found } = await checks.find(source)
  if (found === undefined || kindOf(found) !== 'view')
    throw checks.error('TABLE_NOT_FOUND', notRenamed('View', name, found))
  await checkNewName(checks, 'view', name, target)
}

export async function checkRenameMaterializedView(
  checks: ObjectChecks,
  { source, target, exists }: RenameMaterializedView,
): Promise<void> {
  const { name, found } = await checks.find(source)
  if (found === undefined && exists) return
  if (!found?.materialized) throw checks.error('TABLE_NOT_FOUND', notRenamed('Materialized View', name, found))
  await checkNewName(checks, 'materialized view', name, target)
}

/** Checks that no object has the new name of a view, and the right to rename the view. */
async function checkNewName(
  checks: ObjectChecks,
  kind: 'view' | 'materialized view',
  name: TableName,
  target: QualifiedName,
): Promise<void> {
  const to = newNameOf(name, target)
  const { found } = await checks.look(to, 'Target catalog')
  const shown = shownName(to)
  if (found !== undefined && kindOf(found) === kind) {
    throw checks.error('GENERIC_USER_ERROR', `Target ${kind} '${shown}' already exists`)
  }
  if (found !== undefined) {
    const message = `Target ${kind} '${shown}' does not exist, but a ${kindOf(found)} with that name exists.`
    throw checks.error('TABLE_ALREADY_EXISTS', message)
  }
  if (to.catalog !== name.catalog) {
    throw checks.error('NOT_SUPPORTED', `${titled(kind)} rename across catalogs is not supported`)
  }
  checks.may(name, OWNERSHIP, `rename ${kind} from`, ` to ${shown}`)
}

function notRenamed(what: string, name: TableName, found: ConnectorTable | undefined): string {
  const message = `${what} '${shownName(name)}' does not exist`
  if (found === undefined) return message
  const kind = kindOf(found)
  return `${message}, but a ${kind} with that name exists. Did you mean ALTER ${kind.toUpperCase()} ${shownName(name)} RENAME TO ...?`
}
