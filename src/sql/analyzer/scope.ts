import type { ErrorName } from '../../shared/engine-error.ts'
import type { WindowSpecification } from '../syntax/ast.ts'
import type { Span } from '../syntax/span.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { ColumnId } from './tree.ts'

/** A column that names can reach. */
export interface Field {
  /** As it is shown; names compare without regard to case. */
  readonly name: string | undefined
  /** The relation it belongs to, lower case: `['n']` for an alias, catalog, schema and table for a bare table. */
  readonly relation: readonly string[] | undefined
  readonly type: SqlType
  readonly column: ColumnId
  /** The column of a row pattern's input that it gives in another way. */
  readonly shows?: ColumnId
  /** Reached by name only, not by `*`. */
  readonly hidden?: boolean
  /** Reached only behind the name of its relation: `A.price` in a row pattern. */
  readonly qualified?: boolean
}

/** Fields, and where to look when they do not have the name. Common tables are found along the same chain. */
export interface Scope {
  readonly fields: readonly Field[]
  readonly parent: Scope | undefined
  /** Going to the parent leaves the query: what is found there is a correlated column. */
  readonly boundary: boolean
  readonly tables?: ReadonlyMap<string, NamedQuery>
  /** Why its fields may not be used from inside a query of it, or at all; `%` stands for the name. */
  readonly refused?: {
    readonly within: 'query' | 'everywhere'
    readonly errorName: ErrorName
    readonly message: string
  }
  /** The WINDOW clause of the query. */
  readonly windows?: ReadonlyMap<string, WindowSpecification>
  /** They are of the left side of an outer join, whose right side is looked at. */
  readonly outerJoin?: boolean
  /** The SELECT whose names these are. */
  readonly select?: { readonly span: Span }
}

/** A query of a WITH clause. */
export interface NamedQuery {
  readonly table: number
  readonly columns: readonly { readonly name: string | undefined; readonly type: SqlType; readonly column: ColumnId }[]
  /** Set while the step of a recursive query is analysed. */
  readonly recursive?: boolean
}

export interface FoundField {
  readonly field: Field
  /** Of this query, not of one around it. */
  readonly local: boolean
  readonly refused: Scope['refused']
}

/** Conditions of outer joins and row patterns, and queries in them, read no columns of other queries. */
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

/** `relation` ends with the first `length` parts of `prefix`. */
function endsWith(relation: readonly string[], prefix: readonly string[], length: number): boolean {
  if (length > relation.length) return false
  for (let i = 0; i < length; i++) if (relation[relation.length - length + i] !== prefix[i]) return false
  return true
}

export function fieldsOfRelation(scope: Scope, prefix: readonly string[]): readonly Field[] {
  return scope.fields.filter((field) => field.relation !== undefined && endsWith(field.relation, prefix, prefix.length))
}

/**
 * The field of a name (lower case), this scope's or an outer one's. `'ambiguous'` when a scope has several; undefined
 * where there is none, or where a prefix of the name is a column, so that the rest names fields of a row.
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

/** Whether a prefix of the name is a column of this scope or an outer one: the rest then names fields of a row. */
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
