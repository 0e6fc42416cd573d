import { tick } from '../../shared/cpu-budget.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { accessOf, type AccessControl } from '../access-control.ts'
import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import type { SessionContext } from '../session.ts'
import type { StatementInput } from '../statement-input.ts'
import type { QualifiedName } from '../syntax/ast.ts'
import type { Query } from '../syntax/ast-query.ts'
import type { Statement } from '../syntax/ast-statements.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import { parseExpressionText, parseStatement } from '../syntax/parser.ts'

/** How deep views may stand upon views. */
const MAX_VIEW_DEPTH = 50

export interface TableName {
  readonly catalog: string
  readonly schema: string
  readonly table: string
}

/** The answers of the catalogs to all that a statement names; nothing waits from here on. */
export interface ResolvedMetadata {
  table(name: TableName): ResolvedTable | undefined
  hasCatalog(catalog: string): boolean
  /** Asked only for schemas in which a table was looked for and not found. */
  hasSchema(catalog: string, schema: string): boolean
}

export interface ResolvedTable extends ConnectorTable {
  /** The query of a view, parsed; absent for tables, and for views whose text is no query. */
  readonly query?: Query
}

/** The three parts of a table's name, lower case. @throws EngineError without place: a part is missing, or too many */
export function qualify(name: QualifiedName, session: Pick<SessionContext, 'catalog' | 'schema'>): TableName {
  const parts = name.parts.map((part) => part.value.toLowerCase())
  if (parts.length > 3) {
    throw new EngineError('SYNTAX_ERROR', `Too many dots in table name: ${parts.join('.')}`)
  }
  const [table, schema = session.schema, catalog = session.catalog] = parts.reverse()
  if (catalog === undefined) {
    throw new EngineError('MISSING_CATALOG_NAME', 'Catalog must be specified when session catalog is not set')
  }
  if (schema === undefined) {
    throw new EngineError('MISSING_SCHEMA_NAME', 'Schema must be specified when session schema is not set')
  }
  return { catalog, schema, table: table! }
}

/** Whose names are completed how, and read as whom. */
interface NameScope {
  readonly at: Pick<SessionContext, 'catalog' | 'schema'>
  readonly access: AccessControl | undefined
  readonly depth: number
}

/**
 * Asks for every table a statement names, or for one table, and for what views among them name in turn, and the rules about them. Names that
 * cannot be completed are left: the analyser reports them where they stand.
 */
export async function resolve(
  root: Statement | TableName,
  { session, metadata, budget }: Omit<StatementInput, 'text'>,
): Promise<ResolvedMetadata> {
  const tables = new Map<string, Promise<ResolvedTable | undefined>>()
  const found = new Map<string, ResolvedTable>()
  const walked = new Set<string>()
  const schemas = new Map<string, readonly string[]>()
  const catalogs = new Set(metadata.catalogs())

  const visit = async (node: AnyNode, { at, access, depth }: NameScope): Promise<void> => {
    const names = budget
      .run(() => tableNames(node))
      .flatMap((name) => {
        try {
          return [qualify(name, at)]
        } catch {
          return []
        }
      })
    await Promise.all(names.map((name) => look(name, access, depth)))
  }

  const look = async (name: TableName, access: AccessControl | undefined, depth: number): Promise<void> => {
    if (!catalogs.has(name.catalog)) return
    const walk = JSON.stringify([keyOf(name), access?.user])
    if (walked.has(walk)) return
    walked.add(walk)
    const table = await tableOf(name)
    if (table === undefined || depth >= MAX_VIEW_DEPTH) return
    const policies = access?.policies(name)
    const rules =
      policies === undefined ? [] : [...(policies.filter ? [policies.filter] : []), ...policies.masks.values()]
    await Promise.all([
      ...(table.query === undefined
        ? []
        : [visit(table.query, { at: viewSession(table, name), access: withinView(access, table), depth: depth + 1 })]),
      ...rules.map(async (rule) => {
        const expression = budget.run(() => parsed(() => parseExpressionText(rule.sql)))
        if (expression) await visit(expression, { at: name, access: access?.as(rule.user), depth: depth + 1 })
      }),
    ])
  }

  const tableOf = (name: TableName): Promise<ResolvedTable | undefined> => {
    const key = keyOf(name)
    const asked = tables.get(key) ?? ask(name)
    tables.set(key, asked)
    return asked
  }

  const ask = async (name: TableName): Promise<ResolvedTable | undefined> => {
    const table = await metadata.table(name.catalog, name.schema, name.table)
    if (table === undefined) {
      if (!schemas.has(name.catalog)) schemas.set(name.catalog, await metadata.schemas(name.catalog))
      return undefined
    }
    const { view } = table
    const query = view === undefined ? undefined : budget.run(() => parseView(view.sql))
    const resolved = query === undefined ? table : { ...table, query }
    found.set(keyOf(name), resolved)
    return resolved
  }

  const access = accessOf(session)
  if ('kind' in root) await visit(root, { at: session, access, depth: 0 })
  else await look(root, access, 0)
  return {
    table: (name) => found.get(keyOf(name)),
    hasCatalog: (catalog) => catalogs.has(catalog),
    hasSchema: (catalog, schema) => schemas.get(catalog)?.includes(schema) ?? false,
  }
}

/** As whom the query of a view is read. */
export function withinView(access: AccessControl | undefined, { view }: ConnectorTable): AccessControl | undefined {
  return access?.withinView(view?.runAsInvoker === true ? undefined : view?.owner)
}

/** Names in a view's text are completed with what was current when it was made. */
export function viewSession(
  table: ConnectorTable,
  name: TableName,
): { readonly catalog: string; readonly schema: string } {
  return { catalog: table.view?.catalog ?? name.catalog, schema: table.view?.schema ?? name.schema }
}

function keyOf({ catalog, schema, table }: TableName): string {
  return JSON.stringify([catalog, schema, table])
}

function parseView(sql: string): Query | undefined {
  const statement = parsed(() => parseStatement(sql))
  return statement?.kind === 'Query' ? statement : undefined
}

/** Undefined for what is no such text: the analyser says so. */
function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof EngineError) return undefined
    throw error
  }
}

/** Every table a node names, less the names that WITH clauses around them define. */
function tableNames(
  node: AnyNode,
  defined: ReadonlySet<string> = new Set(),
  found: QualifiedName[] = [],
): readonly QualifiedName[] {
  tick()
  if (node.kind === 'Table') {
    const { name } = node as AnyNode & { readonly name: QualifiedName }
    if (name.parts.length > 1 || !defined.has(name.parts[0]!.value.toLowerCase())) found.push(name)
    return found
  }
  if (node.kind === 'Query') {
    const query = node as Query
    if (query.with !== undefined) {
      const names = new Set(defined)
      for (const { name, query: inner } of query.with.queries) {
        if (query.with.recursive) names.add(name.value.toLowerCase())
        tableNames(inner, new Set(names), found)
        names.add(name.value.toLowerCase())
      }
      for (const child of childrenOf(query)) if (child.kind !== 'With') tableNames(child, names, found)
      return found
    }
  }
  for (const child of childrenOf(node)) tableNames(child, defined, found)
  return found
}
