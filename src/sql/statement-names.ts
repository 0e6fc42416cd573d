import type { FunctionCall } from './syntax/ast.ts'
import type { Identifier, QualifiedName } from './syntax/ast-node.ts'
import type { TableFunctionInvocation } from './syntax/ast-query.ts'
import type { Statement } from './syntax/ast-statements.ts'
import type { ParsedStatement, StatementText } from './parsed-statement.ts'
import { queryTypeOf } from './statements/query-type.ts'
import { tablesIn } from './syntax/names-of-tables.ts'
import { childrenOf, type AnyNode } from './syntax/tree.ts'

/**
 * The name of an object as written, in lower case. The catalog and the schema are missing where the text omits them.
 */
export type NameAsWritten = readonly string[]

/** The names in a statement. No catalog was asked, so a table in `reads` may be a view of other tables. */
export interface StatementNames {
  readonly reads: readonly NameAsWritten[]
  /** The tables and views that the statement changes, creates or drops. */
  readonly writes: readonly NameAsWritten[]
  /** Whether DELETE, UPDATE or MERGE may read columns of the table that it changes: in conditions, or in new values. */
  readonly readsChanged: boolean
  /** The catalogs that the statement names, including those without a table: `SHOW SCHEMAS FROM c`, `c.s.f(x)`. */
  readonly catalogs: readonly string[]
  /** Whether the statement uses the catalog of the session without naming it: `SHOW SCHEMAS`, `DROP SCHEMA s`. */
  readonly usesSessionCatalog: boolean
  /** The kind of the statement, or of the one that it executes, explains or describes; undefined if that is unknown. */
  readonly kind: Statement['kind'] | undefined
  /** Whether the statement reads an older version of a table: another server does not have the same versions. */
  readonly namesVersions: boolean
  /** Whether a function or procedure of a catalog takes part, which may read or change tables that no name shows. */
  readonly unresolved: boolean
}

type Fields = Partial<Record<Statement['kind'], readonly string[]>>

/** The fields that hold the name of a table or view which the statement changes. */
const WRITTEN: Fields = {
  Insert: ['target'],
  Delete: ['table'],
  Update: ['table'],
  Merge: ['target'],
  TruncateTable: ['table'],
  Analyze: ['table'],
  TableExecute: ['table'],
  RefreshMaterializedView: ['name'],
  CreateTable: ['name'],
  CreateTableAsSelect: ['name'],
  DropTable: ['name'],
  RenameTable: ['source', 'target'],
  SetProperties: ['name'],
  AddColumn: ['table'],
  RenameColumn: ['table'],
  DropColumn: ['table'],
  SetColumnType: ['table'],
  DropNotNullConstraint: ['table'],
  CreateView: ['name'],
  DropView: ['name'],
  RenameView: ['source', 'target'],
  RefreshView: ['name'],
  CreateMaterializedView: ['name'],
  DropMaterializedView: ['name'],
  RenameMaterializedView: ['source', 'target'],
}

/** The fields that hold the name of a schema, `catalog.schema`. */
const SCHEMAS: Fields = {
  CreateSchema: ['name'],
  DropSchema: ['name'],
  RenameSchema: ['source'],
  ShowTables: ['schema'],
  ShowFunctions: ['schema'],
}

/** The fields that hold the name of a catalog. */
const CATALOGS: Fields = {
  Use: ['catalog'],
  SetRole: ['catalog'],
  ShowSchemas: ['catalog'],
  ShowRoles: ['catalog'],
  ShowRoleGrants: ['catalog'],
  CreateRole: ['catalog'],
  DropRole: ['catalog'],
  GrantRoles: ['catalog'],
  RevokeRoles: ['catalog'],
  CreateCatalog: ['name'],
  DropCatalog: ['name'],
}

/** Trino's own table functions, which read only their arguments. */
const BUILTIN = new Set(['sequence', 'exclude_columns'])

/** Statements about the catalog of the session, where they name no catalog. */
const IN_SESSION_CATALOG = new Set<Statement['kind']>([
  'CreateSchema',
  'DropSchema',
  'RenameSchema',
  'ShowTables',
  'ShowSchemas',
  'Use',
])

/**
 * Finds the names in a statement, and in the text that it executes or describes. A text that does not parse has no
 * names and is unresolved: a newer cluster may be able to parse it.
 */
export function namesIn(parsed: ParsedStatement): StatementNames {
  const found = new Names()
  if (parsed.kind === 'invalid')
    return {
      reads: [],
      writes: [],
      readsChanged: false,
      catalogs: [],
      usesSessionCatalog: false,
      kind: undefined,
      namesVersions: false,
      unresolved: true,
    }
  found.add(parsed.tree, parsed.inner)
  return found.all()
}

/** Whether a statement only reads. False for a text that does not parse. */
export function readsOnly(text: StatementText): boolean {
  const type = queryTypeOf(text)
  return type === 'SELECT' || type === 'DESCRIBE' || type === 'EXPLAIN'
}

class Names {
  readonly #reads = new Map<string, NameAsWritten>()
  readonly #writes = new Map<string, NameAsWritten>()
  readonly #catalogs = new Set<string>()
  #readsChanged = false
  #usesSessionCatalog = false
  #kind: Statement['kind'] | undefined
  #namesVersions = false
  #unresolved = false

  add(statement: Statement, inner: StatementText | undefined): void {
    switch (statement.kind) {
      case 'Explain':
      case 'ExplainAnalyze':
        return this.add(statement.statement, inner)
      case 'Execute':
      case 'ExecuteImmediate':
      case 'DescribeInput':
      case 'DescribeOutput': {
        const executed = inner?.parse()
        if (executed?.kind === 'valid' && !isExecuting(executed.tree)) this.add(executed.tree, undefined)
        // A newer cluster may understand the text.
        else this.#unresolved = true
        // Values may have subqueries.
        this.#addRead(statement)
        return this.#addFunctions(statement)
      }
      case 'Prepare':
        // PREPARE does not use the tables of the statement that it prepares.
        return
      default:
        return this.#addOwn(statement)
    }
  }

  all(): StatementNames {
    return {
      reads: [...this.#reads.values()],
      writes: [...this.#writes.values()],
      readsChanged: this.#readsChanged,
      catalogs: [...this.#catalogs],
      usesSessionCatalog: this.#usesSessionCatalog,
      kind: this.#kind,
      namesVersions: this.#namesVersions,
      unresolved: this.#unresolved,
    }
  }

  #addOwn(statement: Statement): void {
    this.#kind = statement.kind
    this.#readsChanged = readsChanged(statement)
    for (const name of namesAt(statement, WRITTEN)) this.#table(partsOf(name), this.#writes)
    const [schemas, catalogs] = [namesAt(statement, SCHEMAS), namesAt(statement, CATALOGS)]
    for (const name of schemas) this.#catalogOf(partsOf(name), 2)
    for (const name of catalogs) this.#catalogOf(partsOf(name), 1)
    const named = [...schemas.filter((name) => partsOf(name).length === 2), ...catalogs]
    if (named.length === 0 && IN_SESSION_CATALOG.has(statement.kind)) this.#usesSessionCatalog = true
    this.#addRead(statement)
    this.#addByType(statement)
    this.#addFunctions(statement)
  }

  /** Adds names whose kind of object depends on other words of the statement, such as `SHOW CREATE SCHEMA`. */
  #addByType(statement: Statement): void {
    switch (statement.kind) {
      case 'ShowColumns':
        return this.#table(partsOf(statement.table), this.#reads)
      case 'ShowCreate': {
        const parts = partsOf(statement.name)
        if (statement.type === 'SCHEMA') return this.#catalogOf(parts, 2)
        return statement.type === 'FUNCTION' ? this.#catalogOf(parts, 3) : this.#table(parts, this.#reads)
      }
      case 'CommentOn': {
        const parts = partsOf(statement.name)
        return this.#table(statement.type === 'COLUMN' ? parts.slice(0, -1) : parts, this.#writes)
      }
      case 'CreateTable':
        for (const element of statement.elements)
          if (element.kind === 'LikeTable') this.#table(partsOf(element.table), this.#reads)
        return
      case 'SetAuthorization': {
        const parts = partsOf(statement.name)
        return statement.entityKind === 'SCHEMA' ? this.#catalogOf(parts, 2) : this.#table(parts, this.#writes)
      }
      case 'Grant':
      case 'Revoke':
      case 'Deny': {
        const parts = partsOf(statement.object.name)
        return statement.object.entityKind === 'SCHEMA' ? this.#catalogOf(parts, 2) : this.#table(parts, this.#writes)
      }
      case 'CreateFunction':
        return this.#catalogOf(partsOf(statement.specification.name), 3)
      case 'DropFunction':
        return this.#catalogOf(partsOf(statement.name), 3)
      case 'SetSession':
      case 'ResetSession':
        return this.#catalogOf(partsOf(statement.name), 2)
      case 'Call':
        this.#unresolved = true
        return this.#catalogOf(partsOf(statement.name), 3)
      case 'TableExecute':
        this.#unresolved = true
        return
      default:
    }
  }

  #addRead(statement: Statement): void {
    for (const { name, queryPeriod } of tablesIn(statement)) {
      this.#table(partsOf(name), this.#reads)
      if (queryPeriod !== undefined) this.#namesVersions = true
    }
  }

  #addFunctions(node: AnyNode): void {
    if (node.kind === 'FunctionCall' || node.kind === 'TableFunctionInvocation') {
      const parts = partsOf((node as FunctionCall | TableFunctionInvocation).name)
      this.#catalogOf(parts, 3)
      // Any other name may be one of the session's catalog or path, and read any table there.
      if (node.kind === 'TableFunctionInvocation' && !(parts.length === 1 && BUILTIN.has(parts[0]!)))
        this.#unresolved = true
    }
    for (const child of childrenOf(node)) this.#addFunctions(child)
  }

  #table(parts: NameAsWritten, to: Map<string, NameAsWritten>): void {
    to.set(JSON.stringify(parts), parts)
    this.#catalogOf(parts, 3)
  }

  /**
   * Adds the first part of a name as a catalog.
   * @param complete the number of parts of a name that includes its catalog
   */
  #catalogOf(parts: NameAsWritten, complete: number): void {
    if (parts.length === complete) this.#catalogs.add(parts[0]!)
  }
}

/** Whether a statement executes a text. An executed text must not do this. */
function isExecuting({ kind }: Statement): boolean {
  return kind === 'Execute' || kind === 'ExecuteImmediate'
}

function readsChanged(statement: Statement): boolean {
  switch (statement.kind) {
    case 'Delete':
      return statement.where !== undefined && hasNames(statement.where)
    case 'Update':
      return [statement.where, ...statement.assignments.map(({ value }) => value)].some((one) => one && hasNames(one))
    case 'Merge':
      return true
    default:
      return false
  }
}

/** Whether an expression has a name, which may be one of a column. */
function hasNames(node: AnyNode): boolean {
  return node.kind === 'Identifier' || childrenOf(node).some(hasNames)
}

function namesAt(statement: Statement, fields: Fields): readonly (Identifier | QualifiedName)[] {
  const values = new Map<string, unknown>(Object.entries(statement))
  return (fields[statement.kind] ?? []).flatMap((field) => {
    const name = values.get(field) as Identifier | QualifiedName | undefined
    return name ? [name] : []
  })
}

function partsOf(name: Identifier | QualifiedName): NameAsWritten {
  const parts = name.kind === 'Identifier' ? [name] : name.parts
  return parts.map(({ value }) => value.toLowerCase())
}
