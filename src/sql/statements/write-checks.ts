import { EngineError } from '../../shared/engine-error.ts'
import { accessOf, type AccessControl } from '../access-control.ts'
import type { TablePrivilege } from '../../shared/object-rights.ts'
import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import { qualify, type TableName } from '../analyzer/resolve.ts'
import { typeOf } from '../analyzer/data-types.ts'
import type { Identifier, QualifiedName } from '../syntax/ast.ts'
import type { Query } from '../syntax/ast-query.ts'
import type {
  CreateTable,
  Delete,
  DropTable,
  Grant,
  Insert,
  Merge,
  Privileges,
  RenameMaterializedView,
  RenameTable,
  RenameView,
  SetAuthorization,
  Statement,
  Update,
} from '../syntax/ast-statements.ts'
import type { AnyNode } from '../syntax/tree.ts'
import { canInsert, isStorable } from '../types/coercion.ts'
import type { SqlType } from '../types/sql-type.ts'
import { parseTypeText } from '../types/type-names.ts'
import { typeName } from '../types/type-text.ts'
import { errorAt } from '../analyzer/context.ts'
import type { StatementInput } from '../statement-input.ts'

/** Returns the columns of a query that a statement contains. */
export type ColumnsOf = (
  query: Query,
) => Promise<readonly { readonly name: string | undefined; readonly type: SqlType }[]>

/**
 * Makes the checks that Trino makes on a statement that changes data or definitions, before a connector is called:
 * missing and existing objects, columns and their types. @throws EngineError
 */
export async function checkWrite(input: StatementInput, node: Statement, columnsOf: ColumnsOf): Promise<void> {
  const checks = new WriteChecks(input, node)
  switch (node.kind) {
    case 'CreateSchema':
      return checks.newSchema(node.name, node.notExists)
    case 'DropSchema':
      return checks.dropSchema(node.name, node.exists, node.cascade)
    case 'RenameSchema':
      await checks.schema(node.source, false, 'rename schema from', ` to ${node.target.value.toLowerCase()}`)
      return
    case 'CreateTable':
      return checks.createTable(node)
    case 'CreateTableAsSelect':
      if (await checks.isThere(node, 'Destination table')) return
      checks.may(checks.named(node.name), OWNERSHIP, 'create table')
      checks.queryColumns(await columnsOf(node.query), node.columnAliases)
      return checks.inSchema(checks.named(node.name))
    case 'CreateView': {
      const { name, found } = await checks.find(node.name)
      checks.may(name, OWNERSHIP, 'create view')
      if (found !== undefined && (found.view === undefined || !node.replace)) {
        throw checks.error(
          'TABLE_ALREADY_EXISTS',
          `${found.view === undefined ? 'Table' : 'View'} already exists: '${shown(name)}'`,
        )
      }
      return checks.queryColumns(await columnsOf(node.query), undefined)
    }
    case 'CreateMaterializedView':
      checks.may(checks.named(node.name), OWNERSHIP, 'create materialized view')
      return checks.queryColumns(await columnsOf(node.query), undefined)
    case 'Insert':
      return checks.insert(node, columnsOf)
    case 'Update':
      return checks.update(node)
    case 'Delete':
      await checks.delete(node)
      return
    case 'TruncateTable':
      await checks.table(node.table, false, ['DELETE', 'truncate table'])
      return
    case 'Analyze':
      // No connector here supports ANALYZE. Trino reports this before it checks rights.
      await checks.table(node.table, false)
      return
    case 'Merge':
      await checks.merge(node)
      return
    case 'TableExecute':
      await checks.table(node.table, false, ['OWNERSHIP', 'set table properties to'])
      throw new EngineError(
        'PROCEDURE_NOT_FOUND',
        `Table procedure not registered: ${node.procedure.value.toUpperCase()}`,
      )
    case 'DropTable':
      await checks.dropTable(node)
      return
    case 'RenameTable':
      await checks.renameTable(node)
      return
    case 'SetProperties':
      await checks.table(node.name, false, [OWNERSHIP, 'set table properties to'])
      return
    case 'DropView':
      return checks.dropView(node.name, node.exists, 'View')
    case 'DropMaterializedView':
      return checks.dropView(node.name, node.exists, 'Materialized view')
    case 'RenameView':
      return checks.renameView(node, 'View')
    case 'RenameMaterializedView':
      return checks.renameView(node, 'Materialized view')
    case 'CommentOn':
      return checks.comment(node.type, node.name)
    case 'AddColumn': {
      const table = await checks.table(node.table, node.tableExists, [OWNERSHIP, 'add a column to table'])
      const name = node.column.name.parts[0]!
      if (columnOf(table, name) !== undefined && !node.columnNotExists) {
        throw checks.error('COLUMN_ALREADY_EXISTS', `Column '${name.value}' already exists`)
      }
      return
    }
    case 'RenameColumn':
      return checks.column(
        await checks.table(node.table, node.tableExists, [OWNERSHIP, 'rename a column in table']),
        node.source.parts[0]!,
        node.columnExists,
      )
    case 'DropColumn':
      return checks.column(
        await checks.table(node.table, node.tableExists, [OWNERSHIP, 'drop a column from table']),
        node.field.parts[0]!,
        node.columnExists,
      )
    case 'SetColumnType':
      return checks.column(
        await checks.table(node.table, node.tableExists, ALTERS_COLUMN),
        node.column.parts[0]!,
        false,
      )
    case 'DropNotNullConstraint':
      return checks.column(await checks.table(node.table, node.tableExists, ALTERS_COLUMN), node.column, false)
    case 'SetAuthorization':
      return checks.newOwner(node)
    case 'Grant':
    case 'Revoke':
    case 'Deny':
      return checks.access(node)
    default:
      return
  }
}

function shown({ catalog, schema, table }: TableName): string {
  return `${catalog}.${schema}.${table}`
}

function columnOf(table: ConnectorTable | undefined, name: Identifier): ConnectorTable['columns'][number] | undefined {
  return table?.columns.find((column) => column.name.toLowerCase() === name.value.toLowerCase())
}

const OWNERSHIP = 'OWNERSHIP'
/** A privilege, the action in Trino's words, and the end of Trino's message. */
type Needed = readonly [TablePrivilege, string, string?]
const ALTERS_COLUMN: Needed = [OWNERSHIP, 'alter a column for table']

const PRIVILEGES = new Set(['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'CREATE', 'CREATE BRANCH'])
const CREATES = 'create schema'

class WriteChecks {
  private readonly input: StatementInput
  private readonly node: AnyNode
  private readonly control: AccessControl | undefined

  constructor(input: StatementInput, node: Statement) {
    this.input = input
    this.node = node
    this.control = accessOf(input.session)
  }

  /** Refuses users without the privilege. */
  may(name: TableName, privilege: TablePrivilege, doing: string, further?: string): void {
    this.control?.checkTable(name, privilege, doing, further)
  }

  named(written: QualifiedName): TableName {
    return qualify(written, this.input.session)
  }

  error(name: EngineError['errorName'], message: string, node: AnyNode = this.node): EngineError {
    return errorAt(this.input, node, name, message)
  }

  async find(
    written: QualifiedName,
  ): Promise<{ readonly name: TableName; readonly found: ConnectorTable | undefined }> {
    const { metadata } = this.input
    const name = this.named(written)
    if (!metadata.catalogs().includes(name.catalog)) {
      throw this.error('CATALOG_NOT_FOUND', `Catalog '${name.catalog}' not found`)
    }
    return { name, found: await metadata.table(name.catalog, name.schema, name.table) }
  }

  async table(written: QualifiedName, ifExists: boolean, needed?: Needed): Promise<ConnectorTable | undefined> {
    const { name, found } = await this.find(written)
    if (found !== undefined && needed !== undefined) this.may(name, ...needed)
    if (found !== undefined || ifExists) return found
    throw this.error('TABLE_NOT_FOUND', `Table '${shown(name)}' does not exist`)
  }

  /**
   * Whether the table to be created already exists and IF NOT EXISTS allows this. As in Trino, rights are then not
   * checked.
   */
  async isThere({ name: written, saveMode }: Pick<CreateTable, 'name' | 'saveMode'>, what: string): Promise<boolean> {
    const { name, found } = await this.find(written)
    if (found === undefined) return false
    if (saveMode === 'FAIL') throw this.error('TABLE_ALREADY_EXISTS', `${what} '${shown(name)}' already exists`)
    return saveMode === 'IGNORE'
  }

  /** Checks that the schema exists. */
  async inSchema({ catalog, schema }: TableName): Promise<void> {
    const schemas = await this.input.metadata.schemas(catalog)
    if (!schemas.includes(schema)) throw this.error('SCHEMA_NOT_FOUND', `Schema '${schema}' does not exist`)
  }

  async createTable(node: CreateTable): Promise<void> {
    if (await this.isThere(node, 'Table')) return
    await this.inSchema(this.named(node.name))
    const names = new Set<string>()
    for (const element of node.elements) {
      if (element.kind === 'LikeTable') {
        const { name, found } = await this.find(element.table)
        if (found === undefined) throw this.error('TABLE_NOT_FOUND', `LIKE table '${shown(name)}' does not exist`)
        this.control?.checkReference(name, new Set(found.columns.map((column) => column.name)))
        continue
      }
      const name = element.name.parts[0]!
      if (names.has(name.value.toLowerCase())) {
        throw this.error('DUPLICATE_COLUMN_NAME', `Column name '${name.value}' specified more than once`, element)
      }
      this.storableColumn(name.value, element)
      names.add(name.value.toLowerCase())
      try {
        typeOf(element.type)
      } catch (error) {
        if (!(error instanceof EngineError) || error.errorName !== 'TYPE_NOT_FOUND') throw error
        const type = error.message.replace('Unknown type: ', '')
        throw this.error('TYPE_NOT_FOUND', `Unknown type '${type}' for column '${name.value}'`, element)
      }
    }
    this.may(this.named(node.name), OWNERSHIP, 'create table')
  }

  queryColumns(
    columns: readonly { readonly name: string | undefined; readonly type: SqlType }[],
    aliases: readonly Identifier[] | undefined,
  ): void {
    if (aliases !== undefined && aliases.length !== columns.length) {
      throw this.error(
        'MISMATCHED_COLUMN_ALIASES',
        `Column alias list has ${aliases.length} entries but relation has ${columns.length} columns`,
        aliases[0]!,
      )
    }
    const names = new Set<string>()
    columns.forEach(({ name: own, type }, i) => {
      const name = aliases?.[i]?.value ?? own
      if (name === undefined) {
        throw this.error('MISSING_COLUMN_NAME', `Column name not specified at position ${i + 1}`)
      }
      if (names.has(name.toLowerCase())) {
        throw this.error('DUPLICATE_COLUMN_NAME', `Column name '${name}' specified more than once`)
      }
      names.add(name.toLowerCase())
      if (this.node.kind === 'CreateTableAsSelect') this.storableColumn(name)
      if (!isStorable(type)) throw this.error('COLUMN_TYPE_UNKNOWN', `Column type is unknown at position ${i + 1}`)
    })
  }

  /** DuckDB statements name the columns of a table's files, and they cannot contain NUL. */
  storableColumn(name: string, node?: AnyNode): void {
    if (name.includes('\0')) throw this.error('NOT_SUPPORTED', 'The name of a column must not hold NUL', node)
  }

  async insert(node: Insert, columnsOf: ColumnsOf): Promise<void> {
    await this.noView(node.target, 'Inserting into')
    const query = await columnsOf(node.query)
    const table = (await this.table(node.target, false))!
    this.may(this.named(node.target), 'INSERT', 'insert into table')
    if (this.policies(node.target).masks) {
      throw this.error('NOT_SUPPORTED', 'Insert into table with column masks is not supported')
    }
    for (const column of table.columns) this.storableColumn(column.name)
    const names = new Set<string>()
    for (const column of node.columns ?? []) {
      const name = column.value.toLowerCase()
      if (columnOf(table, column) === undefined) {
        throw this.error('COLUMN_NOT_FOUND', `Insert column name does not exist in target table: ${name}`)
      }
      if (names.has(name)) {
        throw this.error('DUPLICATE_COLUMN_NAME', `Insert column name is specified more than once: ${name}`)
      }
      names.add(name)
    }
    const columns =
      node.columns?.map((column) => columnOf(table, column)!) ??
      table.columns.filter((column) => column.hidden !== true)
    const types = columns.map((column) => parseTypeText(column.type))
    if (types.length === query.length && types.every((type, i) => canInsert(query[i]!.type, type))) return
    const list = (all: readonly SqlType[]): string => all.map(typeName).join(', ')
    throw this.error(
      'TYPE_MISMATCH',
      `Insert query has mismatched column types: Table: [${list(types)}], Query: [${list(query.map((each) => each.type))}]`,
    )
  }

  async update(node: Update): Promise<void> {
    await this.noView(node.table, 'Updating')
    const table = await this.table(node.table, false)
    for (const { name } of node.assignments) {
      if (columnOf(table, name) !== undefined) continue
      throw this.error('COLUMN_NOT_FOUND', `The UPDATE SET target column ${name.value} doesn't exist`, name)
    }
    const columns = node.assignments.map(({ name }) => name.value.toLowerCase())
    this.may(this.named(node.table), 'UPDATE', `update columns [${columns.join(', ')}] in table`)
    const { filter, masks } = this.policies(node.table)
    if (filter) throw this.error('NOT_SUPPORTED', 'Updating a table with a row filter is not supported')
    if (masks) throw this.error('NOT_SUPPORTED', 'Updating a table with column masks is not supported')
  }

  async delete(node: Delete): Promise<void> {
    await this.noView(node.table, 'Deleting from')
    await this.table(node.table, false, ['DELETE', 'delete from table'])
    if (this.policies(node.table).masks) throw this.error('NOT_SUPPORTED', 'Delete from table with column mask')
  }

  async merge(node: Merge): Promise<void> {
    await this.noView(node.target, 'Merging into')
    await this.table(node.target, false, ['INSERT', 'insert into table'])
    if (this.policies(node.target).filter) {
      throw this.error('NOT_SUPPORTED', 'Cannot merge into a table with row filters')
    }
  }

  private policies(target: QualifiedName): { readonly filter: boolean; readonly masks: boolean } {
    const policies = this.control?.policies(this.named(target))
    return { filter: policies?.filter !== undefined, masks: (policies?.masks.size ?? 0) > 0 }
  }

  private async noView(target: QualifiedName, doing: string): Promise<void> {
    const { found } = await this.find(target)
    if (found?.view !== undefined) throw this.error('NOT_SUPPORTED', `${doing} views is not supported`)
  }

  column(table: ConnectorTable | undefined, name: Identifier, ifExists: boolean): void {
    if (table === undefined || ifExists || columnOf(table, name) !== undefined) return
    throw this.error('COLUMN_NOT_FOUND', `Column '${name.value}' does not exist`)
  }

  async dropView(written: QualifiedName, ifExists: boolean, what: string): Promise<void> {
    const { name, found } = await this.find(written)
    if (found?.view !== undefined) this.may(name, OWNERSHIP, `drop ${what.toLowerCase()}`)
    if (found?.view !== undefined || ifExists) return
    const hint =
      found === undefined ? '' : `, but a table with that name exists. Did you mean DROP TABLE ${shown(name)}?`
    throw this.error('GENERIC_USER_ERROR', `${what} '${shown(name)}' does not exist${hint}`)
  }

  async newOwner({ entityKind, name: written, principal }: SetAuthorization): Promise<void> {
    const kind = entityKind.toLowerCase()
    if (entityKind !== 'SCHEMA' && entityKind !== 'TABLE' && entityKind !== 'VIEW') return
    const owner = { kind: principal.type === 'ROLE' ? 'ROLE' : 'USER', name: principal.name.value } as const
    if (entityKind === 'SCHEMA') {
      const { catalog, schema } = this.schemaName(written)
      if (!(await this.input.metadata.schemas(catalog)).includes(schema)) {
        throw this.error('SCHEMA_NOT_FOUND', `Schema '${catalog}.${schema}' does not exist`)
      }
      this.knownOwner(owner)
      return this.control?.checkGives({ catalog, schema }, kind, owner)
    }
    const { name, found } = await this.find(written)
    if (found === undefined || (entityKind === 'VIEW' && found.view === undefined)) {
      throw this.error('TABLE_NOT_FOUND', `${entityKind === 'VIEW' ? 'View' : 'Table'} '${shown(name)}' does not exist`)
    }
    this.knownOwner(owner)
    this.control?.checkGives(name, kind, owner)
  }

  /** There are no roles, so an owner cannot be a role. */
  private knownOwner({ kind, name }: { readonly kind: 'USER' | 'ROLE'; readonly name: string }): void {
    if (kind === 'ROLE') throw this.error('ROLE_NOT_FOUND', `Role '${name.toLowerCase()}' does not exist`)
  }

  async dropTable({ name: written, exists }: DropTable): Promise<void> {
    const { name, found } = await this.find(written)
    // A view is reported later, once the change is known.
    if (found?.view !== undefined) return
    if (found !== undefined) this.may(name, OWNERSHIP, 'drop table')
    else if (!exists) throw this.error('TABLE_NOT_FOUND', `Table '${shown(name)}' does not exist`)
  }

  async renameTable({ source, target, exists }: RenameTable): Promise<void> {
    if ((await this.table(source, exists)) === undefined) return
    const { name: to, found } = await this.find(target)
    if (found !== undefined) throw this.error('TABLE_ALREADY_EXISTS', `Target table '${shown(to)}' already exists`)
    this.may(this.named(source), OWNERSHIP, 'rename table from', ` to ${shown(to)}`)
  }

  async renameView({ source, target }: RenameView | RenameMaterializedView, what: string): Promise<void> {
    const { name, found } = await this.find(source)
    if (found?.view === undefined) throw this.error('TABLE_NOT_FOUND', `${what} '${shown(name)}' does not exist`)
    this.may(name, OWNERSHIP, `rename ${what.toLowerCase()} from`, ` to ${shown(this.named(target))}`)
  }

  async comment(type: 'TABLE' | 'VIEW' | 'COLUMN', written: QualifiedName): Promise<void> {
    if (type !== 'COLUMN') {
      const { name, found } = await this.find(written)
      if (found === undefined) {
        const what = type === 'TABLE' ? 'Table' : 'View'
        throw this.error('TABLE_NOT_FOUND', `${what} does not exist: ${shown(name)}`)
      }
      this.may(name, OWNERSHIP, `comment ${type.toLowerCase()} to`)
      return
    }
    const column = written.parts.at(-1)!
    const { name, found } = await this.find({ ...written, parts: written.parts.slice(0, -1) })
    if (found === undefined) throw this.error('TABLE_NOT_FOUND', `Table does not exist: ${shown(name)}`)
    if (columnOf(found, column) === undefined) {
      throw this.error('COLUMN_NOT_FOUND', `Column does not exist: ${column.value}`)
    }
    this.may(name, OWNERSHIP, 'comment column to')
  }

  // ---- Schemas

  private schemaName(written: QualifiedName): { readonly catalog: string; readonly schema: string } {
    const [schema, catalog = this.input.session.catalog] = written.parts
      .map((part) => part.value.toLowerCase())
      .reverse()
    if (catalog === undefined) {
      throw this.error('MISSING_CATALOG_NAME', 'Catalog must be specified when session catalog is not set')
    }
    if (!this.input.metadata.catalogs().includes(catalog)) {
      throw this.error('CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
    }
    return { catalog, schema: schema! }
  }

  /** Whether the schema exists. A missing schema is refused unless `ifExists` allows it. */
  async schema(written: QualifiedName, ifExists: boolean, doing: string, further?: string): Promise<boolean> {
    const { catalog, schema } = this.schemaName(written)
    const found = await this.findSchema(written, ifExists)
    if (found || doing === CREATES) this.control?.checkOwnsSchema(catalog, schema, doing, further)
    return found
  }

  private async findSchema(written: QualifiedName, ifExists: boolean): Promise<boolean> {
    const { catalog, schema } = this.schemaName(written)
    const found = (await this.input.metadata.schemas(catalog)).includes(schema)
    if (!found && !ifExists) throw this.error('SCHEMA_NOT_FOUND', `Schema '${catalog}.${schema}' does not exist`)
    return found
  }

  async newSchema(written: QualifiedName, notExists: boolean): Promise<void> {
    const { catalog, schema } = this.schemaName(written)
    if ((await this.schema(written, true, CREATES)) && !notExists) {
      throw this.error('SCHEMA_ALREADY_EXISTS', `Schema '${catalog}.${schema}' already exists`)
    }
  }

  async dropSchema(written: QualifiedName, ifExists: boolean, cascade: boolean): Promise<void> {
    if (!(await this.findSchema(written, ifExists))) return
    const { catalog, schema } = this.schemaName(written)
    if (!cascade && (await this.input.metadata.tables(catalog, schema)).length > 0) {
      throw this.error('SCHEMA_NOT_EMPTY', `Cannot drop non-empty schema '${schema}'`)
    }
    this.control?.checkOwnsSchema(catalog, schema, 'drop schema')
  }

  // ---- Access

  async access(node: Pick<Grant, 'object'> & { readonly privileges: Privileges }): Promise<void> {
    const doing = `${this.node.kind.toLowerCase()} privilege ${node.privileges?.[0]?.value.toUpperCase() ?? 'SELECT'} on`
    if (node.object.entityKind === 'SCHEMA') await this.schema(node.object.name, false, `${doing} schema`)
    else await this.table(node.object.name, false, [OWNERSHIP, `${doing} table`])
    for (const { value } of node.privileges ?? []) {
      if (!PRIVILEGES.has(value.toUpperCase())) throw this.error('INVALID_PRIVILEGE', `Unknown privilege: '${value}'`)
    }
  }
}
