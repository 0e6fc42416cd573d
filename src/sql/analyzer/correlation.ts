import type { Span } from '../syntax/span.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import { canCoerce } from '../types/coercion.ts'
import type {
  AggregateNode,
  ColumnId,
  Expr,
  FilterNode,
  JoinNode,
  LimitNode,
  ProjectNode,
  RelationNode,
} from './tree.ts'
import { columnOf, constant } from './build.ts'
import { neededColumns } from './needed-columns.ts'
import {
  collectDefined,
  isQuery,
  isVolatile,
  someExpr,
  someNode,
  visitColumns,
  WITHOUT_NODES,
  type TreeNode,
} from './walk.ts'

/**
 * The position of a correlated query. `value`: the query supplies its only value or its rows. `rows`: a predicate
 * (EXISTS, ANY, ALL) tests its rows. `in`: the right side of IN. `joined`: a join with a condition other than TRUE.
 * `lateral`: LATERAL supplies rows for each outer row. `outer lateral`: the same in an outer join, which keeps outer
 * rows without a match. For `in` and `joined`, Trino can decorrelate fewer queries.
 */
export type SubqueryPosition = 'value' | 'rows' | 'in' | 'joined' | 'lateral' | 'outer lateral'

/**
 * Returns whether a query is correlated. Registers it so that `verifyCorrelated` refuses it where Trino's planner
 * cannot decorrelate it. Trino pulls conditions on outer columns up through the nodes above them. This works if the
 * columns that these conditions need are constant within one outer row (because of an equality) or are kept unchanged.
 * DuckDB could run more queries, but a statement should mean the same on both.
 */
export function verifyCorrelation(
  context: AnalysisContext,
  at: { readonly span: Span },
  node: RelationNode,
  outputs: readonly ColumnId[],
  position: SubqueryPosition = 'value',
): boolean {
  const inner = new Set<ColumnId>()
  collectDefined(node, inner)
  const decorrelation = new Decorrelation(inner)
  if (!decorrelation.usesOuter(node)) return false
  if (context.unplanned === true) return true
  context.correlated.push({
    takenApart: (needed) =>
      decorrelation.takesApart(
        withTablesRead(node),
        outputs.filter((id) => needed?.has(id) !== false),
        position,
      ),
    refused: () => errorAt(context, at, 'NOT_SUPPORTED', 'Given correlated subquery is not supported'),
  })
  return true
}

/**
 * Refuses the queries that `verifyCorrelation` registered. It runs after all other checks of the statement. Trino's
 * planner meets the outermost and last query first; by then it has removed columns that are never read.
 * @param root the whole statement with its outputs; undefined if all columns of its queries are read
 */
export function verifyCorrelated(
  { correlated }: AnalysisContext,
  root?: { readonly node: RelationNode; readonly outputs: readonly ColumnId[] },
): void {
  if (correlated.length === 0) return
  const needed = root === undefined ? undefined : neededColumns(root.node, root.outputs)
  const refused = correlated.findLast((query) => !query.takenApart(needed))
  if (refused !== undefined) throw refused.refused()
}

/**
 * The tree with each common table inlined at each reference, as Trino's planner sees it. A table that is read twice is
 * one object at two positions.
 */
function withTablesRead(node: RelationNode): RelationNode {
  return someNode(node, ({ kind }) => kind === 'with') ? spreadOut(node, new Map()) : node
}

function spreadOut<Part>(part: Part, tables: ReadonlyMap<number, RelationNode>): Part
function spreadOut(part: unknown, tables: ReadonlyMap<number, RelationNode>): unknown {
  if (typeof part !== 'object' || part === null) return part
  if (Array.isArray(part)) return part.map((item) => spreadOut(item, tables) as unknown)
  if (!('kind' in part)) return withParts(part, tables)
  const node = part as RelationNode
  if (node.kind === 'with') {
    const all = new Map(tables)
    for (const table of node.tables) if (table.step === undefined) all.set(table.id, spreadOut(table.node, all))
    return { ...node, body: spreadOut(node.body, all) }
  }
  const table = node.kind === 'cte' ? tables.get(node.table) : undefined
  if (node.kind !== 'cte' || table === undefined) return withParts(part, tables)
  const columns = node.columns.map(({ id, source, type }) => ({ id, expression: columnOf(source, type) }))
  return { kind: 'project', input: table, columns } satisfies RelationNode
}

function withParts(part: object, tables: ReadonlyMap<number, RelationNode>): object {
  const parts = Object.entries(part).map(([name, value]: [string, unknown]) => [
    name,
    WITHOUT_NODES.has(name) ? value : spreadOut(value, tables),
  ])
  return Object.fromEntries(parts) as object
}

/** Facts about a node of a plan, when conditions on the outer query are moved from below the node to above it. */
interface Pulled {
  /** The columns that the conditions read. */
  readonly needed: ReadonlySet<ColumnId>
  /** The needed columns that have one value per row of the outer query. */
  readonly constants: ReadonlySet<ColumnId>
  /** Whether there is at most one row per row of the outer query. */
  readonly single: boolean
  /** Whether the rows come from UNNEST of outer values: projections, an order and a limit may stand above it. */
  readonly unnested: boolean
}

const NOTHING: Pulled = { needed: new Set(), constants: new Set(), single: false, unnested: false }
const UNNESTED: Pulled = { ...NOTHING, unnested: true }

class Decorrelation {
  readonly #inner: ReadonlySet<ColumnId>

  constructor(inner: ReadonlySet<ColumnId>) {
    this.#inner = inner
  }

  usesOuter(tree: Expr | RelationNode): boolean {
    const seen = new Set<TreeNode>()
    return someNode(tree, (node) => {
      if (seen.has(node)) return 'leave'
      seen.add(node)
      return node.kind === 'column' && !this.#inner.has(node.id)
    })
  }

  takesApart(node: RelationNode, outputs: readonly ColumnId[], position: SubqueryPosition): boolean {
    if (position === 'in') return this.#inPredicate(node)
    if (position === 'joined') return this.of(node, outputs)?.unnested === false
    const base = belowProjections(node)
    // Expressions over a single row may read the outer query.
    if (isOneRow(base) && (position !== 'rows' || outputs.length === 0)) return true
    if (base.kind === 'aggregate' && isGlobal(base)) {
      if (outputs.length === 0 && position === 'rows') return true
      if (position !== 'rows') return this.#global(base, readBelow(node, outputs))
    }
    if ((position === 'lateral' || position === 'outer lateral') && this.#groups(node, position, outputs)) {
      return true
    }
    return this.of(node, outputs) !== undefined
  }

  /** IN pulls conditions up only through projections and other conditions. */
  #inPredicate(node: RelationNode): boolean {
    if (!this.usesOuter(node)) return true
    switch (node.kind) {
      case 'project':
        return !node.columns.some(({ expression }) => this.usesOuter(expression)) && this.#inPredicate(node.input)
      case 'filter':
        return !termsOf(node.predicate).some((term) => this.#outerQuery(term)) && this.#inPredicate(node.input)
      case 'join':
        return !this.usesOuter(node.left) && !this.usesOuter(node.right)
      case 'with':
        return this.#inPredicate(node.body)
      case 'limit':
        return node.count === '0'
      default:
        return false
    }
  }

  /** Whether the expression contains a query that reads the outer query. */
  #outerQuery(expr: Expr): boolean {
    return someExpr(expr, (part) => isQuery(part) && this.usesOuter(part))
  }

  /** Whether a grouping inside LATERAL can be decorrelated: its groups become groups per outer row. */
  #groups(node: RelationNode, position: 'lateral' | 'outer lateral', outputs: readonly ColumnId[]): boolean {
    if (node.kind === 'project') return this.#groups(node.input, position, columnsBelow(node, outputs))
    if (node.kind === 'with') return this.#groups(node.body, position, outputs)
    if (node.kind === 'distinct') {
      const columns = node.columns.map(({ id }) => id)
      const below = this.of(node.input, columns)
      return below !== undefined && !below.unnested
    }
    if (node.kind !== 'aggregate' || isGlobal(node) || (node.sets !== undefined && node.sets.length !== 1)) return false
    const read = withRead(node, outputs)
    if (read.aggregates.some(({ call }) => this.usesOuter(call))) return false
    if (read.aggregates.length > 0 && position === 'outer lateral') return false
    const below = this.of(node.input, columnsOf(read))
    return below !== undefined && !below.unnested
  }

  #global(node: AggregateNode, outputs: readonly ColumnId[]): boolean {
    const read = withRead(node, outputs)
    if (this.#groupsUnnested(read.input, columnsOf(read))) {
      // If every aggregate has a filter, Trino turns the filters into a condition below the aggregation, which it
      // cannot pull up.
      return read.aggregates.length === 0 || read.aggregates.some(({ call }) => call.filter === undefined)
    }
    if (read.aggregates.some(({ call }) => this.usesOuter(call))) return false
    return this.of(read.input, columnsOf(read)) !== undefined
  }

  /** Whether the rows come from UNNEST of outer values, possibly grouped. */
  #groupsUnnested(node: RelationNode, outputs: readonly ColumnId[]): boolean {
    if (node.kind === 'project') return this.#groupsUnnested(node.input, columnsBelow(node, outputs))
    if (node.kind === 'distinct') {
      return this.#groupsUnnested(
        node.input,
        node.columns.map(({ id }) => id),
      )
    }
    if (node.kind !== 'aggregate') return this.of(node, outputs)?.unnested === true
    if (isGlobal(node) || (node.sets !== undefined && node.sets.length !== 1)) return false
    const read = withRead(node, outputs)
    return this.#groupsUnnested(read.input, columnsOf(read))
  }

  /** Returns undefined if conditions cannot be pulled up. @param outputs the columns of the node that are read */
  of(node: RelationNode, outputs: readonly ColumnId[]): Pulled | undefined {
    if (!this.usesOuter(node)) return NOTHING
    switch (node.kind) {
      case 'filter':
        return this.#filter(node, outputs)
      case 'project':
        return this.#project(node, outputs)
      case 'join':
        return this.#join(node, outputs)
      case 'sort': {
        const outerKey = node.keys.some(({ column }) => this.#isOuter(column, node.input))
        return outerKey ? undefined : this.of(node.input, outputs)
      }
      case 'limit':
        return this.#limit(node, outputs)
      case 'aggregate':
        return this.#aggregate(node, outputs)
      case 'distinct': {
        const columns = node.columns.map(({ id }) => id)
        return grouped(this.of(node.input, columns), columns, columns)
      }
      case 'window':
        // Window functions whose result is never read are not computed.
        return node.columns.some(({ id }) => outputs.includes(id)) ? undefined : this.of(node.input, outputs)
      case 'with':
        return this.of(node.body, outputs)
      case 'unnest':
        return UNNESTED
      default:
        return undefined
    }
  }

  #project(node: ProjectNode, outputs: readonly ColumnId[]): Pulled | undefined {
    const below = this.of(node.input, columnsBelow(node, outputs))
    if (below === undefined || below.unnested) return below
    const read = node.columns.filter(({ id }) => outputs.includes(id)).map(({ expression }) => expression)
    const correlated = this.usesOuter(node.input)
    const apart = read.some((expr) => this.usesOuter(expr) || (correlated && hasSubquery(expr)))
    return apart ? undefined : below
  }

  /** Conditions of inner joins are handled like those of WHERE. */
  #join(node: JoinNode, outputs: readonly ColumnId[]): Pulled | undefined {
    const everyRow = node.condition === undefined || isTrue(node.condition)
    if (node.lateral && everyRow && isUnreadRow(node.left, outputs) && !this.usesOuter(node.left)) {
      if (node.right.kind === 'unnest') return UNNESTED
    }
    if (node.type === 'cross' && (!node.lateral || isUnreadRow(node.right, outputs))) {
      // A single row with no column that is read does not count as a join side.
      const counted = [node.left, node.right].filter((side) => !isUnreadRow(side, outputs))
      if (counted.length === 0) return NOTHING
      return counted.length === 1 ? this.of(counted[0]!, outputs) : undefined
    }
    const { condition, ...plain } = node
    if (node.type !== 'inner' || condition === undefined) return undefined
    return this.#filter({ kind: 'filter', input: { ...plain, condition: undefined }, predicate: condition }, outputs)
  }

  #filter({ input, predicate }: FilterNode, outputs: readonly ColumnId[]): Pulled | undefined {
    const read = [...outputs]
    visitColumns(predicate, (id) => read.push(id))
    const below = this.of(input, read)
    if (below === undefined || below.unnested) return undefined
    const [needed, constants] = [new Set(below.needed), new Set(below.constants)]
    for (const term of termsOf(predicate)) {
      if (!this.usesOuter(term)) continue
      if (this.#outerQuery(term)) return undefined
      if (!hasSubquery(term)) visitColumns(term, (id) => this.#inner.has(id) && needed.add(id))
      const constant = this.#constantBy(term)
      if (constant !== undefined) constants.add(constant)
    }
    return { ...below, needed, constants }
  }

  /** The column that an equality with values of the outer query makes constant. */
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
    const below = this.of(input, outputs)
    if (below === NOTHING) return below
    if (offset !== undefined) return undefined
    if (below === undefined || below.unnested) return below
    if (ties !== undefined) return undefined
    if (below.single) return below
    const { needed, constants } = below
    const isConstant = (columns: Iterable<ColumnId>): boolean => [...columns].every((id) => constants.has(id))
    if (!isConstant(needed)) return undefined
    if (input.kind === 'sort') return { ...below, single: count === '1' }
    if (count !== '1') return below
    // LIMIT 1 over equal rows yields one row.
    const read = readColumns(input, outputs)
    return constants.size > 0 && read !== undefined && isConstant(read) ? { ...below, single: true } : undefined
  }

  #aggregate(whole: AggregateNode, outputs: readonly ColumnId[]): Pulled | undefined {
    const node = withRead(whole, outputs)
    if (isGlobal(node) && outputs.length === 0) return NOTHING
    if (isGlobal(node) && this.of(node.input, columnsOf(node)) === NOTHING) {
      return node.aggregates.some(({ call }) => this.usesOuter(call)) ? undefined : NOTHING
    }
    if (isGlobal(node) || node.aggregates.some(({ call }) => this.usesOuter(call))) return undefined
    const below = this.of(node.input, columnsOf(node))
    if (below === undefined) return undefined
    if (node.sets !== undefined && node.sets.length !== 1) return undefined
    return grouped(
      below,
      node.keys.map(({ input }) => input),
      node.keys.map(({ id }) => id),
    )
  }
}

/**
 * The effect of grouping by `keys`, which the output shows as `names`. Further columns that conditions need become keys
 * if they are constant.
 */
function grouped(below: Pulled | undefined, keys: readonly ColumnId[], names: readonly ColumnId[]): Pulled | undefined {
  if (below === undefined || below.unnested) return undefined
  const { needed, constants } = below
  const isKey = new Set(keys)
  if ([...needed].some((id) => !isKey.has(id) && !constants.has(id))) return undefined
  const shown = names.filter((_, i) => constants.has(keys[i]!))
  return { ...below, constants: new Set([...constants, ...shown]), single: shown.length === keys.length }
}

/** The input columns that the read outputs of a projection are computed from. */
function columnsBelow({ columns }: ProjectNode, outputs: readonly ColumnId[]): readonly ColumnId[] {
  const needed = new Set(outputs)
  for (const { id, expression } of columns) {
    if (needed.delete(id)) visitColumns(expression, (column) => needed.add(column))
  }
  return [...needed]
}

/** The input columns behind the outputs; undefined if an output is computed. */
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

/** The column of an expression that is a column or an injective cast of a column. */
function columnIn(expr: Expr): ColumnId | undefined {
  if (expr.kind === 'column') return expr.id
  if (expr.kind !== 'cast' || expr.value.kind !== 'column') return undefined
  const exact = canCoerce(expr.value.type, expr.type) && expr.type.kind !== 'double' && expr.type.kind !== 'real'
  return exact ? expr.value.id : undefined
}

/** The aggregation without aggregates that are never read. */
function withRead(node: AggregateNode, outputs: readonly ColumnId[]): AggregateNode {
  return { ...node, aggregates: node.aggregates.filter(({ id }) => outputs.includes(id)) }
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
  return someExpr(expr, isQuery)
}

function isUnreadRow(node: RelationNode, outputs: readonly ColumnId[]): boolean {
  const base = belowProjections(node)
  if (!isOneRow(base) && (base.kind !== 'aggregate' || !isGlobal(base))) return false
  const defined = new Set<ColumnId>()
  collectDefined(node, defined)
  return !outputs.some((id) => defined.has(id))
}

/** Whether the aggregation returns exactly one row whatever its input is. */
function isGlobal({ keys, sets }: AggregateNode): boolean {
  return keys.length === 0 && (sets === undefined || sets.length === 1)
}

function isOneRow(node: RelationNode): boolean {
  const base = belowProjections(node)
  if (base.kind === 'join') return base.type === 'cross' && isOneRow(base.left) && isOneRow(base.right)
  return base.kind === 'values' && base.rows.length === 1
}

/** The columns of `belowProjections(node)` that are read. */
function readBelow(node: RelationNode, outputs: readonly ColumnId[]): readonly ColumnId[] {
  switch (node.kind) {
    case 'project':
      return readBelow(node.input, columnsBelow(node, outputs))
    case 'sort':
    case 'limit':
      return readBelow(node.input, outputs)
    case 'filter':
      return isTrue(node.predicate) ? readBelow(node.input, outputs) : outputs
    case 'with':
      return readBelow(node.body, outputs)
    default:
      return outputs
  }
}

/** The node below projections, sorts and limits of at least one row. */
function belowProjections(node: RelationNode): RelationNode {
  switch (node.kind) {
    case 'project':
    case 'sort':
      return belowProjections(node.input)
    case 'limit': {
      const below = belowProjections(node.input)
      const single = below.kind === 'aggregate' && isGlobal(below)
      return node.count === '0' || (node.offset !== undefined && !single) ? node : below
    }
    case 'filter':
      return isTrue(node.predicate) ? belowProjections(node.input) : node
    case 'with':
      return belowProjections(node.body)
    default:
      return node
  }
}

/** Whether a condition is known at planning time to keep all rows. */
function isTrue(predicate: Expr): boolean {
  if (constant(predicate) === true) return true
  if (predicate.kind !== 'compare' || predicate.operator !== '=') return false
  const [left, right] = [constant(predicate.left), constant(predicate.right)]
  return left !== undefined && left !== null && left === right
}
