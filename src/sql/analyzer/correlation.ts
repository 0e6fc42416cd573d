import type { Query } from '../syntax/ast-query.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import { canCoerce } from '../types/coercion.ts'
import type { AggregateNode, ColumnId, Expr, FilterNode, LimitNode, ProjectNode, RelationNode } from './tree.ts'
import { isVolatile, someExpr, visitColumns } from './walk.ts'

/** Where a correlated query stands: what IN compares with may be less than others. */
export type SubqueryPlace = 'value' | 'in'

/**
 * Refuses a correlated query that Trino's planner cannot take apart, as it does: it pulls conditions on columns of the outer
 * query up through the nodes above them, which works where the columns that these conditions need are constants within one
 * row of the outer query (an equality says so) or are kept as they are. DuckDB could calculate more; a statement should
 * mean the same on both.
 */
export function verifyCorrelation(
  context: AnalysisContext,
  query: Query,
  node: RelationNode,
  outputs: readonly ColumnId[],
  place: SubqueryPlace = 'value',
): boolean {
  const inner = new Set<ColumnId>()
  collectDefined(node, inner)
  const decorrelation = new Decorrelation(inner)
  if (!decorrelation.usesOuter(node)) return false
  if (place === 'in' ? decorrelation.inPredicate(node) : decorrelation.of(node, outputs) !== undefined) return true
  throw errorAt(context, query, 'NOT_SUPPORTED', 'Given correlated subquery is not supported')
}

/** What conditions on the outer query, pulled up from below a node, ask of it. */
interface Pulled {
  /** Columns that the conditions need. */
  readonly needed: ReadonlySet<ColumnId>
  /** Those of them that have one value for a row of the outer query. */
  readonly constants: ReadonlySet<ColumnId>
  /** There is at most one row for a row of the outer query. */
  readonly single: boolean
  /** Something else than conditions is correlated: it is not looked at further. */
  readonly other: boolean
}

const NOTHING: Pulled = { needed: new Set(), constants: new Set(), single: false, other: false }
const OTHER: Pulled = { ...NOTHING, other: true }

class Decorrelation {
  readonly #inner: ReadonlySet<ColumnId>

  constructor(inner: ReadonlySet<ColumnId>) {
    this.#inner = inner
  }

  usesOuter(tree: Expr | RelationNode): boolean {
    let found = false
    visitColumns(tree, (id) => {
      if (!this.#inner.has(id)) found = true
    })
    return found
  }

  /** IN pulls conditions through projections and other conditions alone. */
  inPredicate(node: RelationNode): boolean {
    if (node.kind === 'project' || node.kind === 'filter') return this.inPredicate(node.input)
    return !this.usesOuter(node) || node.kind === 'join'
  }

  /** `outputs`: the columns of the node that are read. Undefined where conditions cannot be pulled up. */
  of(node: RelationNode, outputs: readonly ColumnId[]): Pulled | undefined {
    if (!this.usesOuter(node)) return NOTHING
    switch (node.kind) {
      case 'filter':
        return this.#filter(node)
      case 'project':
        return this.usesOuter(node.input) ? this.of(node.input, columnsBelow(node, outputs)) : OTHER
      case 'sort': {
        const outerKey = node.keys.some(({ column }) => this.#isOuter(column, node.input))
        return outerKey ? undefined : this.of(node.input, outputs)
      }
      case 'limit':
        return this.#limit(node, outputs)
      case 'aggregate':
        return this.#aggregate(node)
      case 'distinct': {
        const columns = node.columns.map(({ id }) => id)
        return grouped(this.of(node.input, columns), columns, columns)
      }
      case 'set':
        return undefined
      default:
        return OTHER
    }
  }

  #filter({ input, predicate }: FilterNode): Pulled | undefined {
    if (input.kind === 'unnest' && this.usesOuter(input)) return undefined
    const below = this.of(input, [])
    if (below === undefined) return undefined
    const [needed, constants] = [new Set(below.needed), new Set(below.constants)]
    for (const term of termsOf(predicate)) {
      if (!this.usesOuter(term)) continue
      if (!hasSubquery(term)) visitColumns(term, (id) => this.#inner.has(id) && needed.add(id))
      const constant = this.#constantBy(term)
      if (constant !== undefined) constants.add(constant)
    }
    return { ...below, needed, constants }
  }

  /** The column that an equality with values of the outer query makes a constant. */
  #constantBy(term: Expr): ColumnId | undefined {
    if (term.kind !== 'compare' || term.operator !== '=') return undefined
    const [left, right] = [columnIn(term.left), columnIn(term.right)]
    if (left !== undefined && this.#inner.has(left) && this.#isOfOuter(term.right)) return left
    if (right !== undefined && this.#inner.has(right) && this.#isOfOuter(term.left)) return right
    return undefined
  }

  #isOfOuter(expr: Expr): boolean {
    let only = !isVolatile(expr)
    visitColumns(expr, (id) => (only &&= !this.#inner.has(id)))
    return only
  }

  #isOuter(column: ColumnId, input: RelationNode): boolean {
    if (!this.#inner.has(column)) return true
    if (input.kind !== 'project') return false
    return input.columns.some(({ id, expression }) => id === column && this.usesOuter(expression))
  }

  #limit({ input, count, offset, ties }: LimitNode, outputs: readonly ColumnId[]): Pulled | undefined {
    if (count === '0') return NOTHING
    if (ties !== undefined || offset !== undefined) return undefined
    const below = this.of(input, outputs)
    if (below === undefined || below.single || below.other) return below
    const { needed, constants } = below
    const isConstant = (columns: Iterable<ColumnId>): boolean => [...columns].every((id) => constants.has(id))
    if (!isConstant(needed)) return undefined
    if (input.kind === 'sort') return { ...below, single: count === '1' }
    if (count !== '1') return below
    // Of equal rows one is taken.
    const read = readColumns(input, outputs)
    return constants.size > 0 && read !== undefined && isConstant(read) ? { ...below, single: true } : undefined
  }

  #aggregate(node: AggregateNode): Pulled | undefined {
    if (node.aggregates.some(({ call }) => this.usesOuter(call))) return undefined
    const below = this.of(node.input, columnsOf(node))
    if (below === undefined) return undefined
    // Without keys the outer rows are grouped: conditions stay below.
    if (node.keys.length === 0) return { ...NOTHING, single: true }
    if (node.sets !== undefined && node.sets.length !== 1) return undefined
    return grouped(
      below,
      node.keys.map(({ input }) => input),
      node.keys.map(({ id }) => id),
    )
  }
}

/** Groups by `keys`, shown as `names`: what conditions need besides them becomes a key, if it is a constant. */
function grouped(below: Pulled | undefined, keys: readonly ColumnId[], names: readonly ColumnId[]): Pulled | undefined {
  if (below === undefined || below.other) return below
  const { needed, constants } = below
  const isKey = new Set(keys)
  if ([...needed].some((id) => !isKey.has(id) && !constants.has(id))) return undefined
  const shown = names.filter((_, i) => constants.has(keys[i]!))
  return { ...below, constants: new Set([...constants, ...shown]), single: shown.length === keys.length }
}

/** What of the input a projection's outputs are made of. */
function columnsBelow({ columns }: ProjectNode, outputs: readonly ColumnId[]): readonly ColumnId[] {
  const needed = new Set(outputs)
  for (const { id, expression } of columns) {
    if (needed.delete(id)) visitColumns(expression, (column) => needed.add(column))
  }
  return [...needed]
}

/** The input's columns that the outputs are; undefined where one of them is calculated. */
function readColumns(node: RelationNode, outputs: readonly ColumnId[]): readonly ColumnId[] | undefined {
  if (node.kind !== 'project') return outputs
  const read: ColumnId[] = []
  for (const output of outputs) {
    const made = node.columns.find(({ id }) => id === output)?.expression
    if (made === undefined) read.push(output)
    else if (made.kind === 'column') read.push(made.id)
    else return undefined
  }
  return readColumns(node.input, read)
}

/** A column, or a cast of one that tells all its values apart. */
function columnIn(expr: Expr): ColumnId | undefined {
  if (expr.kind === 'column') return expr.id
  if (expr.kind !== 'cast' || expr.value.kind !== 'column') return undefined
  const exact = canCoerce(expr.value.type, expr.type) && expr.type.kind !== 'double' && expr.type.kind !== 'real'
  return exact ? expr.value.id : undefined
}

function columnsOf({ aggregates, keys }: AggregateNode): readonly ColumnId[] {
  const columns = keys.map((key) => key.input)
  for (const { call } of aggregates) visitColumns(call, (column) => columns.push(column))
  return columns
}

function termsOf(predicate: Expr): readonly Expr[] {
  return predicate.kind === 'and' ? predicate.terms : [predicate]
}

function hasSubquery(expr: Expr): boolean {
  return someExpr(expr, ({ kind }) => /^(?:scalarSubquery|exists|inSubquery|quantified)$/.test(kind))
}

/** Every column that a node or a query inside its expressions makes. */
export function collectDefined(tree: unknown, defined: Set<ColumnId>): void {
  if (typeof tree !== 'object' || tree === null) return
  if (Array.isArray(tree)) {
    for (const item of tree) collectDefined(item, defined)
    return
  }
  const { kind, id } = tree as { readonly kind?: unknown; readonly id?: unknown }
  // All objects with a number but references to columns are definitions.
  if (typeof id === 'number' && kind !== 'column') defined.add(id)
  for (const [name, value] of Object.entries(tree)) {
    if (kind === 'unnest' && name === 'ordinality' && typeof value === 'number') defined.add(value)
    if (name === 'columns' && Array.isArray(value)) {
      for (const column of value as unknown[]) if (typeof column === 'number' && kind !== 'set') defined.add(column)
    }
    if (name !== 'type' && name !== 'function' && name !== 'operator' && name !== 'handle')
      collectDefined(value, defined)
  }
}
