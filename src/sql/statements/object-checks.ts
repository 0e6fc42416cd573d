import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { TablePrivilege } from '../../shared/object-rights.ts'
import { accessOf, shownName, type AccessControl } from '../access-control.ts'
import { errorAt } from '../analyzer/context.ts'
import { qualify, type TableName } from '../analyzer/resolve.ts'
import type { StatementInput } from '../statement-input.ts'
import type { Identifier, QualifiedName } from '../syntax/ast-node.ts'
import type { Statement } from '../syntax/ast-statements.ts'
import type { AnyNode } from '../syntax/tree.ts'

/** A privilege, the action in Trino's words, and the end of Trino's message. */
export type Needed = readonly [TablePrivilege, string, string?]

/** A name with the object that bears it; `found` is undefined if there is none. */
export interface Looked {
  readonly name: TableName
  readonly found: ConnectorTable | undefined
}

export const OWNERSHIP = 'OWNERSHIP'

/** The kind of an object, in the words of messages. */
export function kindOf(found: Pick<ConnectorTable, 'view' | 'materialized'>): 'table' | 'view' | 'materialized view' {
  if (found.materialized) return 'materialized view'
  return found.view === undefined ? 'table' : 'view'
}

/** A kind at the beginning of a message. */
export function titled(kind: string): string {
  return kind[0]!.toUpperCase() + kind.slice(1)
}

export function columnNamed(
  table: ConnectorTable | undefined,
  name: Pick<Identifier, 'value'>,
): ConnectorTable['columns'][number] | undefined {
  return table?.columns.find((column) => column.name.toLowerCase() === name.value.toLowerCase())
}

/** Looks up the objects that a statement names, and checks the rights to change them. Errors have its position. */
export class ObjectChecks {
  readonly input: StatementInput
  readonly node: AnyNode
  readonly control: AccessControl | undefined

  constructor(input: StatementInput, node: Statement) {
    this.input = input
    this.node = node
    this.control = accessOf(input.session)
  }

  error(name: EngineError['errorName'], message: string, node: AnyNode = this.node): EngineError {
    return errorAt(this.input, node, name, message)
  }

  /** Refuses users without the privilege. */
  may(name: TableName, privilege: TablePrivilege, doing: string, further?: string): void {
    this.control?.checkTable(name, privilege, doing, further)
  }

  named(written: QualifiedName): TableName {
    return qualify(written, this.input.session)
  }

  async find(written: QualifiedName): Promise<Looked> {
    return this.look(this.named(written))
  }

  /** @param target how the message names a catalog that does not exist */
  async look(name: TableName, target: 'Catalog' | 'Target catalog' = 'Catalog'): Promise<Looked> {
    const { metadata } = this.input
    if (!metadata.catalogs().includes(name.catalog)) {
      throw this.error('CATALOG_NOT_FOUND', `${target} '${name.catalog}' not found`)
    }
    return { name, found: await metadata.table(name.catalog, name.schema, name.table) }
  }

  /** The table, and not a view of that name; undefined if there is none and `ifExists` allows this. */
  async table(written: QualifiedName, ifExists: boolean, needed?: Needed): Promise<ConnectorTable | undefined> {
    const { name, found } = await this.find(written)
    const table = found?.view === undefined ? found : undefined
    if (table !== undefined && needed !== undefined) this.may(name, ...needed)
    if (table !== undefined || ifExists) return table
    throw this.missingTable(name)
  }

  missingTable(name: TableName, further = ''): EngineError {
    return this.error('TABLE_NOT_FOUND', `Table '${shownName(name)}' does not exist${further}`)
  }

  /** Whether the row filter and the column masks of the rules apply to the table. */
  policies(target: QualifiedName): { readonly filter: boolean; readonly masks: boolean } {
    const policies = this.control?.policies(this.named(target))
    return { filter: policies?.filter !== undefined, masks: (policies?.masks.size ?? 0) > 0 }
  }

  /** @param refusal the message about a view */
  async noView(target: QualifiedName, refusal: string): Promise<void> {
    const { found } = await this.find(target)
    if (found?.view === undefined) return
    const message = found.materialized ? refusal.replace(/\b(a view|views)\b/, (word) => word.replace('view', 'materialized view')) : refusal // prettier-ignore
    throw this.error('NOT_SUPPORTED', message)
  }

  /** Checks that the schema exists. */
  async inSchema({ catalog, schema }: TableName): Promise<void> {
    const schemas = await this.input.metadata.schemas(catalog)
    if (!schemas.includes(schema)) throw this.error('SCHEMA_NOT_FOUND', `Schema '${schema}' does not exist`)
  }
}
