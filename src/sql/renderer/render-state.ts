import type { Names, RenderSession } from '../functions/rendering.ts'
import type { ColumnId, Expr, RelationNode, ScanNode } from '../analyzer/tree.ts'

/** What the rendering of one statement shares. */
export interface RenderState {
  readonly session: RenderSession
  readonly names: Names
  /** Columns that somebody reads: the others are left out. */
  readonly needed: ReadonlySet<ColumnId>
  /** Scans in the order of `"$s0"`, `"$s1"` …, with the columns asked for. */
  readonly scans: { readonly scan: ScanNode; readonly columns: readonly string[] }[]
  /** What the arguments of the lambdas being rendered are called. */
  readonly lambdaArguments: Map<ColumnId, string>
  /** How many expressions an expression comes to once its repetitions and macros are spread out. */
  readonly weights: WeakMap<Expr, number>
  readonly argumentWeights: Map<ColumnId, number>
  /** What columns are called inside of a lambda that has their values. */
  readonly columnNames: Map<ColumnId, string>
  /** Of the expression being rendered. */
  readonly depth: { now: number }
  /** Under what names common tables are read, where not their own. */
  readonly tableNames: Map<number, string>
  /** A query inside an expression; here because queries and expressions nest. */
  readonly renderQuery: (state: RenderState, node: RelationNode, outputs: readonly Output[]) => string
}

/** A column of a SELECT: what it is, and its name. */
export interface Output {
  readonly column: ColumnId
  readonly name: string
  /** Rendered around the column: a comparison key. */
  readonly wrap?: (column: string) => string
}

export function columnName(id: ColumnId): string {
  return `x${id}`
}

/** Terms joined by an operator as a balanced tree: a chain would nest as deep as it is long. */
export function balanced(terms: readonly string[], operator: 'AND' | 'OR'): string {
  if (terms.length === 1) return terms[0]!
  if (terms.length <= 8) return `(${terms.join(` ${operator} `)})`
  const middle = terms.length >> 1
  return `(${balanced(terms.slice(0, middle), operator)} ${operator} ${balanced(terms.slice(middle), operator)})`
}
