import type { ErrorName } from '../../shared/engine-error.ts'
import type { WindowSpecification } from '../syntax/ast.ts'
import type { Span } from '../syntax/span.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { ColumnId } from './tree.ts'

/** A column that a name can refer to. */
export interface Field {
  /** The displayed name; names are compared case-insensitively. */
  readonly name: string | undefined
  /**
   * The relation that the field belongs to, in lower case: `['n']` for an alias; catalog, schema and table for a bare
   * table.
   */
  readonly relation: readonly string[] | undefined
  readonly type: SqlType
  readonly column: ColumnId
  /** The column of a row pattern's input that this field exposes. */
  readonly shows?: ColumnId
  /** Whether the field is reachable by name only, not by `*`. */
  readonly hidden?: boolean
  /** Whether the name needs the relation as a prefix: `A.price` in a row pattern. */
  readonly qualified?: boolean
}

/**
 * The fields that names refer to, and the parent scope for names that are not found here. Common tables are found along
 * the same chain.
 */
export interface Scope {
  readonly fields: readonly Field[]
  readonly parent: Scope | undefined
  /** Whether the parent belongs to the outer query: a field found there is a correlated column. */
  readonly boundary: boolean
  readonly tables?: ReadonlyMap<string, NamedQuery>
  /** Why the fields may not be used, either from inside a subquery or at all; `%` stands for the name. */
  readonly refused?: {
    readonly within: 'query' | 'everywhere'
    readonly errorName: ErrorName
    readonly message: string
  }
  /** The WINDOW clause of the query. */
  readonly windows?: ReadonlyMap<string, WindowSpecification>
  /** Whether the fields belong to the left side of an outer join while its right side is analyzed. */
  readonly outerJoin?: boolean
  /** The SELECT that defines these names. */
  readonly select?: { readonly span: Span }
}

/** A query of a WITH clause. */
export interface NamedQuery {
  readonly table: number
  readonly columns: readonly { readonly name: string | undefined; readonly type: SqlType; readonly column: ColumnId }[]
  /** True while the step of a recursive query is analyzed. */
  readonly recursive?: boolean
}

export interface FoundField {
  readonly field: Field
  /** Whether the field belongs to this query and not to an outer one. */
  readonly local: boolean
  readonly refused: Scope['refused']
}

/**
 * The refusal for conditions of outer joins and row patterns, and queries in them: they may not read columns of outer
 * queries.
 */
export const uncorrelated: NonNullable<Scope['refused']> = {
  within: 'query',
  errorName: 'NOT_SUPPORTED',
  message: `Reference to column '%' from outer scope not allowed in this context`,
}

export const emptyScope: Scope = { fields: [], parent: undefined, boundary: false }

export function fieldMatches(field: Field, name: readonly string[]): boolean {
  const last = name.length - 1
  if (field.name === undefined || field.name.toLowerCase() !== name[last]) return false
  if (last === 0) return field.qualified !== true
  return field.relation !== undefined && endsWith(field.relation, name, last)
}

/** Whether `relation` ends with the first `length` parts of `prefix`. */
function endsWith(relation: readonly string[], prefix: readonly string[], length: number): boolean {
  if (length > relation.length) return false
  for (let i = 0; i < length; i++) if (relation[relation.length - length + i] !== prefix[i]) return false
  return true
}

export function fieldsOfRelation(scope: Scope, prefix: readonly string[]): readonly Field[] {
  return scope.fields.filter((field) => field.relation !== undefined && endsWith(field.relation, prefix, prefix.length))
}

/**
 * Finds the field that a name (lower case) refers to, in this scope or an outer one. Returns `'ambiguous'` if a scope
 * has several. Returns undefined if there is none, or if a prefix of the name is a column, so that the rest names
 * fields of a row.
 */
export function findField(scope: Scope, name: readonly string[]): FoundField | 'ambiguous' | undefined {
  let local = true
  let alone: Scope['refused']
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    let match: Field | undefined
    for (const field of at.fields) {
      if (!fieldMatches(field, name) || (field.qualified === true && !local)) continue
      if (match !== undefined) return 'ambiguous'
      match = field
    }
    if (match !== undefined) {
      const refused = at.refused?.within === 'query' && local ? undefined : at.refused
      return { field: match, local, refused: refused ?? (local ? undefined : alone) }
    }
    if (at.refused?.within === 'query') alone ??= at.refused
    if (prefixIsColumn(at, name)) return undefined
    if (at.boundary) local = false
  }
  return undefined
}

function prefixIsColumn(scope: Scope, name: readonly string[]): boolean {
  for (let length = name.length - 1; length > 0; length--) {
    const prefix = name.slice(0, length)
    if (scope.fields.some((field) => fieldMatches(field, prefix))) return true
  }
  return false
}

/** Whether a prefix of the name is a column of this scope or an outer one; the rest then names fields of a row. */
export function startsWithColumn(scope: Scope, name: readonly string[]): boolean {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    if (at.fields.some((field) => fieldMatches(field, name)) || prefixIsColumn(at, name)) return true
  }
  return false
}

export function findNamedQuery(scope: Scope, name: string): NamedQuery | undefined {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    const found = at.tables?.get(name)
    if (found !== undefined) return found
  }
  return undefined
}
