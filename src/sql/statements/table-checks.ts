import { EngineError } from '../../shared/engine-error.ts'
import { shownName } from '../access-control.ts'
import { typeOf } from '../analyzer/data-types.ts'
import type { Identifier, QualifiedName } from '../syntax/ast-node.ts'
import type { DataType } from '../syntax/ast-types.ts'
import type { CreateTable, CreateTableAsSelect, DropTable, RenameTable } from '../syntax/ast-definitions.ts'
import type { AnyNode } from '../syntax/tree.ts'
import { isStorable } from '../types/coercion.ts'
import type { SqlType } from '../types/sql-type.ts'
import { qualify, type TableName } from '../analyzer/resolve.ts'
import { kindOf, ObjectChecks, OWNERSHIP } from './object-checks.ts'

/** The columns of a query that a statement contains. */
export type QueryColumns = readonly { readonly name: string | undefined; readonly type: SqlType }[]

export async function checkCreateTable(checks: ObjectChecks, node: CreateTable): Promise<void> {
  if (await isThere(checks, node, 'Table')) return
  await checks.inSchema(checks.named(node.name))
  const names = new Set<string>()
  for (const element of node.elements) {
    if (element.kind === 'LikeTable') {
      const { name, found } = await checks.find(element.table)
      if (found === undefined) throw checks.error('TABLE_NOT_FOUND', `LIKE table '${shownName(name)}' does not exist`)
      checks.control?.checkReference(name, new Set(found.columns.map((column) => column.name)))
      continue
    }
    const name = element.name.parts[0]!
    if (names.has(name.value.toLowerCase())) {
      throw checks.error('DUPLICATE_COLUMN_NAME', `Column name '${name.value}' specified more than once`, element)
    }
    checkStorableName(checks, name.value, element)
    names.add(name.value.toLowerCase())
    checkColumnType(checks, element.type, name, element)
  }
  checks.may(checks.named(node.name), OWNERSHIP, 'create table')
}

export async function checkCreateTableAs(
  checks: ObjectChecks,
  node: CreateTableAsSelect,
  columns: () => Promise<QueryColumns>,
): Promise<void> {
  if (await isThere(checks, node, 'Destination table')) return
  checks.may(checks.named(node.name), OWNERSHIP, 'create table')
  checkQueryColumns(checks, await columns(), node.columnAliases)
  return checks.inSchema(checks.named(node.name))
}

/**
 * Whether the table to be created already exists and IF NOT EXISTS allows this. As in Trino, rights are then not
 * checked.
 */
async function isThere(
  checks: ObjectChecks,
  { name: written, saveMode }: Pick<CreateTable, 'name' | 'saveMode'>,
  what: string,
): Promise<boolean> {
  const { name, found } = await checks.find(written)
  if (found === undefined) return false
  if (saveMode === 'FAIL') throw checks.error('TABLE_ALREADY_EXISTS', `${what} '${shownName(name)}' already exists`)
  return saveMode === 'IGNORE'
}

/** Checks that the columns of a query can become the columns of a table or view. */
export function checkQueryColumns(
  checks: ObjectChecks,
  columns: QueryColumns,
  aliases: readonly Identifier[] | undefined,
): void {
  if (aliases !== undefined && aliases.length !== columns.length) {
    throw checks.error(
      'MISMATCHED_COLUMN_ALIASES',
      `Column alias list has ${aliases.length} entries but relation has ${columns.length} columns`,
      aliases[0]!,
    )
  }
  const names = new Set<string>()
  columns.forEach(({ name: own, type }, i) => {
    const name = aliases?.[i]?.value ?? own
    if (name === undefined) {
      throw checks.error('MISSING_COLUMN_NAME', `Column name not specified at position ${i + 1}`)
    }
    if (names.has(name.toLowerCase())) {
      throw checks.error('DUPLICATE_COLUMN_NAME', `Column name '${name}' specified more than once`)
    }
    names.add(name.toLowerCase())
    if (checks.node.kind === 'CreateTableAsSelect') checkStorableName(checks, name)
    if (!isStorable(type)) throw checks.error('COLUMN_TYPE_UNKNOWN', `Column type is unknown at position ${i + 1}`)
  })
}

/** DuckDB statements name the columns of a table's files, and they cannot contain NUL. */
export function checkStorableName(checks: ObjectChecks, name: string, node?: AnyNode): void {
  if (name.includes('\0')) throw checks.error('NOT_SUPPORTED', 'The name of a column must not hold NUL', node)
}

/** The type of a column as written. @throws EngineError TYPE_NOT_FOUND at `node` */
export function checkColumnType(checks: ObjectChecks, type: DataType, name: Identifier, node: AnyNode): SqlType {
  try {
    return typeOf(type)
  } catch (error) {
    if (!(error instanceof EngineError) || error.errorName !== 'TYPE_NOT_FOUND') throw error
    const written = error.message.replace('Unknown type: ', '')
    throw checks.error('TYPE_NOT_FOUND', `Unknown type '${written}' for column '${name.value}'`, node)
  }
}

export async function checkDropTable(checks: ObjectChecks, { name: written, exists }: DropTable): Promise<void> {
  const { name, found } = await checks.find(written)
  if (found?.view !== undefined) {
    const shown = shownName(name)
    const kind = kindOf(found)
    const hint = `but a ${kind} with that name exists. Did you mean DROP ${kind.toUpperCase()} ${shown}?`
    throw checks.error('GENERIC_USER_ERROR', `Table '${shown}' does not exist, ${hint}`)
  }
  if (found !== undefined) checks.may(name, OWNERSHIP, 'drop table')
  else if (!exists) throw checks.missingTable(name)
}

export async function checkRenameTable(checks: ObjectChecks, { source, target, exists }: RenameTable): Promise<void> {
  const { name, found } = await checks.find(source)
  if (found?.view !== undefined) {
    const shown = shownName(name)
    const kind = kindOf(found)
    const hint = `but a ${kind} with that name exists. Did you mean ALTER ${kind.toUpperCase()} ${shown} RENAME TO ...?`
    throw checks.error('GENERIC_USER_ERROR', `Table '${shown}' does not exist, ${hint}`)
  }
  if (found === undefined) {
    if (exists) return
    throw checks.missingTable(name)
  }
  const to = newNameOf(name, target)
  const there = await checks.look(to, 'Target catalog')
  if (there.found?.view !== undefined) {
    const message = `Target table '${shownName(to)}' does not exist, but a ${kindOf(there.found)} with that name exists.`
    throw checks.error('GENERIC_USER_ERROR', message)
  }
  if (there.found !== undefined) {
    throw checks.error('TABLE_ALREADY_EXISTS', `Target table '${shownName(to)}' already exists`)
  }
  if (to.catalog !== name.catalog) {
    throw checks.error('NOT_SUPPORTED', 'Table rename across catalogs is not supported')
  }
  checks.may(name, OWNERSHIP, 'rename table from', ` to ${shownName(to)}`)
}

/** The new name of an object: missing parts are those of its old name. */
export function newNameOf(name: TableName, target: QualifiedName): TableName {
  return qualify(target, { catalog: name.catalog, schema: name.schema })
}
