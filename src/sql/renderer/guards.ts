import type { ColumnId, Expr, RelationNode } from '../analyzer/tree.ts'
import { isVolatile, visitColumns } from '../analyzer/walk.ts'
import { sql, type Sql } from '../../duckdb/text/sql.ts'
import { BOOLEAN } from '../types/sql-type.ts'
import { hasSubquery } from './composition.ts'
import { canRaise, mayRaiseOfRow } from '../analyzer/raising.ts'
import { balanced, type RenderState } from './render-state.ts'

// A condition that may fail must not run on rows that an earlier condition removes. DuckDB does not guarantee this. It
// takes comparisons with constants out of a WHERE and puts them back in any order. It also replaces a computed column
// by its expression in an outer condition, which may then run before the inner conditions. The functions below
// therefore write the order into the statement itself.

/** Longer conditions are not repeated. */
const REPEATABLE = 2000

/**
 * Maps a condition's column to its item of FROM. The sides of a join are separate items; any other relation is one
 * item.
 */
export type Sides = (column: ColumnId) => RelationNode | undefined

export function sidesOf(...nodes: readonly RelationNode[]): Sides {
  const known = new Map<ColumnId, RelationNode>()
  const add = (ids: readonly ColumnId[], item: RelationNode): void => ids.forEach((id) => known.set(id, item))
  /**
   * Registers the columns that can be read above `node`, which belongs to `item`; each side of a join is an item of its
   * own.
   */
  const visit = (node: RelationNode, item: RelationNode): void => {
    switch (node.kind) {
      case 'join':
        visit(node.left, node.left)
        visit(node.right, node.right)
        return
      case 'project':
      case 'window':
        add(idsOf(node.columns), item)
        visit(node.input, item)
        return
      case 'filter':
      case 'barrier':
      case 'sort':
      case 'limit':
      case 'sample':
        visit(node.input, item)
        return
      case 'with':
        visit(node.body, item)
        return
      case 'aggregate':
        add([...idsOf(node.keys), ...idsOf(node.aggregates), ...idsOf(node.groupings)], item)
        return
      case 'unnest':
        add(
          node.arguments.flatMap(({ columns }) => columns),
          item,
        )
        if (node.ordinality !== undefined) add([node.ordinality], item)
        return
      case 'sequence':
        add([node.id], item)
        return
      default:
        add(idsOf(node.columns), item)
    }
  }
  nodes.forEach((node) => visit(node, node))
  return (column) => known.get(column)
}

function idsOf(columns: readonly { readonly id: ColumnId }[]): readonly ColumnId[] {
  return columns.map(({ id }) => id)
}

/** A rendered condition. */
interface Conjunct {
  readonly expr: Expr
  readonly text: Sql
}

interface Guard extends Conjunct {
  /** The items of FROM that it reads. */
  readonly items: ReadonlySet<RelationNode | undefined>
}

/**
 * Renders conditions so that a condition that may fail is evaluated only if earlier conditions over the same items of
 * FROM hold. Conditions over other items are no guards; otherwise the condition could not move below the join.
 * @param overFiltered whether the conditions stand around a SELECT that has removed rows
 */
export function guarded(
  state: RenderState,
  conjuncts: readonly Conjunct[],
  sides: Sides,
  overFiltered: boolean,
): readonly Sql[] {
  const earlier: Guard[] = []
  return conjuncts.map(({ expr, text }) => {
    const items = itemsOf(expr, sides)
    const guards = isJoinKey(expr, sides) ? [] : guardsOf(expr, items, earlier)
    const stays =
      ((overFiltered || items.size === 1) && mayRaiseOfRow(expr) && !hasSubquery(expr)) ||
      [expr, ...guards.map((one) => one.expr)].some((one) => readsRaising(state, one))
    const guard = isJoinKey(expr, sides) ? text : behind(text, guards, stays)
    if (isMoved(expr) && !isVolatile(expr) && !hasSubquery(expr)) earlier.push({ expr, text, items })
    return guard
  })
}

/**
 * The condition, evaluated only if earlier conditions over the same items hold. It stands after WHEN: there, as in
 * WHERE, DuckDB evaluates only the terms it needs. After THEN and in lists it evaluates all terms of AND and OR.
 */
function behind(text: Sql, guards: readonly Guard[], stays: boolean): Sql {
  const texts = guards.map((guard) => guard.text)
  const asked = guards.length === 0 ? text : sql`(${balanced(texts, 'AND')} AND ${text})`
  // DuckDB does not move expressions that may fail below a SELECT. It recognizes this cast as such, but not a lambda or
  // a JavaScript function.
  if (stays) return sql`CAST(CASE WHEN ${asked} THEN 1 ELSE 0 END AS BOOLEAN)`
  return guards.length === 0 ? text : whereHold(asked)
}

/**
 * Guards join keys: a key that may fail is computed only if earlier conditions over the same item hold. A join computes
 * its keys for all rows of a side that it preserves.
 */
export function guardedKeys(terms: readonly Expr[], sides: Sides): readonly Expr[] {
  return terms.map((expr, i) => {
    if (expr.kind !== 'compare' || !isJoinKey(expr, sides)) return expr
    const side = (value: Expr): Expr => {
      if (!mayRaiseOfRow(value) || hasSubquery(value)) return value
      const own = itemsOf(value, sides)
      const asked = terms
        .slice(0, i)
        .filter((term) => !isVolatile(term) && !hasSubquery(term) && isWithin(itemsOf(term, sides), own))
      if (asked.length === 0) return value
      const when: Expr = asked.length === 1 ? asked[0]! : { kind: 'and', type: BOOLEAN, terms: asked }
      return { kind: 'case', type: value.type, branches: [{ when, then: value }], otherwise: undefined }
    }
    return { ...expr, left: side(expr.left), right: side(expr.right) }
  })
}

function guardsOf(expr: Expr, own: Guard['items'], earlier: readonly Guard[]): readonly Guard[] {
  if (!mayRaiseOfRow(expr) || hasSubquery(expr)) return []
  const guards = earlier.filter(({ items }) => isWithin(items, own))
  return guards.reduce((length, { text }) => length + text.length, 0) > REPEATABLE ? [] : guards
}

/** A condition that DuckDB does not split; false instead of NULL. */
export function whereHold(condition: Sql): Sql {
  return sql`CASE WHEN ${condition} THEN true ELSE false END`
}

/**
 * Whether DuckDB may move the condition behind others. Only comparisons are moved; other conditions stay before those
 * that may fail.
 */
function isMoved(expr: Expr): boolean {
  if (expr.kind === 'not') return isMoved(expr.value)
  return expr.kind === 'compare' || expr.kind === 'between' || (expr.kind === 'inList' && expr.values.length === 1)
}

function itemsOf(expr: Expr, sides: Sides): ReadonlySet<RelationNode | undefined> {
  const items = new Set<RelationNode | undefined>()
  visitColumns(expr, (id) => items.add(sides(id)))
  return items
}

function isWithin<T>(some: ReadonlySet<T>, all: ReadonlySet<T>): boolean {
  return [...some].every((item) => all.has(item))
}

/** Whether the condition is like `a.x = b.y`. It must remain a join key; otherwise the join may take forever. */
function isJoinKey(expr: Expr, sides: Sides): boolean {
  if (expr.kind !== 'compare' || expr.operator !== '=') return false
  const [left, right] = [itemsOf(expr.left, sides), itemsOf(expr.right, sides)]
  return left.size > 0 && right.size > 0 && ![...left].some((item) => right.has(item))
}

function readsRaising({ raisingColumns }: RenderState, expr: Expr): boolean {
  let found = false
  if (raisingColumns.size > 0) visitColumns(expr, (id) => (found ||= raisingColumns.has(id)))
  return found
}

/** Records which columns of a projection may fail if rows below it are removed. */
export function rememberRaising(
  { raisingColumns }: RenderState,
  input: RelationNode,
  columns: readonly { readonly id: ColumnId; readonly expression: Expr }[],
): void {
  const removes = removesRows(input)
  for (const { id, expression } of columns) {
    let raises = removes && canRaise(expression)
    if (!raises && raisingColumns.size > 0) visitColumns(expression, (used) => (raises ||= raisingColumns.has(used)))
    if (raises) raisingColumns.add(id)
  }
}

function removesRows(node: RelationNode): boolean {
  if (node.kind === 'project') return removesRows(node.input)
  return node.kind !== 'scan' && node.kind !== 'values' && node.kind !== 'sequence'
}
