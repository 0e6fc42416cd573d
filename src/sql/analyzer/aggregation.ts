import { EngineError } from '../../shared/engine-error.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Span } from '../syntax/span.ts'
import { INTEGER, BIGINT } from '../types/sql-type.ts'
import { errorAt, newId, type AnalysisContext } from './context.ts'
import { columnOf } from './build.ts'
import { sumsProduct } from './decimal-products.ts'
import { withFilteringQueries } from './filtering-queries.ts'
import { checkedAggregate } from './nested-order.ts'
import { canRaise } from './raising.ts'
import type {
  AggregateExpr,
  AggregateNode,
  ComputedColumn,
  ColumnId,
  Expr,
  GroupingExpr,
  RelationNode,
  WindowExpr,
} from './tree.ts'
import { childrenOfExpr, isVolatile, exprKey, mapChildren, someExpr, visitColumns } from './walk.ts'

/** An expression and its place in the text. */
export interface Sourced {
  readonly node: Expression
  readonly expr: Expr
  /** The name in error messages of a column from `*`; these messages have no position. */
  readonly field?: string
  /** Checks on the expression, run after all expressions before it are valid. */
  readonly verify?: () => void
}

export interface Grouping {
  /** Distinct keys. */
  readonly keys: readonly Expr[]
  /** Lists of indexes into `keys`; undefined for one set of all keys. */
  readonly sets: readonly (readonly number[])[] | undefined
}

export interface Aggregated {
  readonly node: RelationNode
  /** Rewrites an expression to the aggregation's output. */
  readonly rewrite: (expr: Expr) => Expr
}

/** The size of an aggregate's argument, in expressions, from which it is computed below the aggregation. */
const LONG = 6

/** GROUPING of more keys than this returns a bigint. */
const INTEGER_GROUPING = 31

/**
 * Whether an expression reads only columns of outer queries. DuckDB would move its aggregate to the outer query, unless
 * the expression is computed below the aggregation.
 */
function readsOthersAlone(expr: Expr, own: ReadonlySet<ColumnId>): boolean {
  let [others, owned] = [false, false]
  visitColumns(expr, (id) => (own.has(id) ? (owned = true) : (others = true)))
  return others && !owned
}

/**
 * Puts an aggregation below expressions that call aggregates or name group keys. `source` contains the columns of FROM:
 * the expressions may use them only inside aggregates or as keys.
 */
export function putAggregation(
  context: AnalysisContext,
  input: RelationNode,
  grouping: Grouping,
  expressions: readonly Sourced[],
  source: ReadonlySet<ColumnId>,
): Aggregated {
  const aggregation = new Aggregation(context, grouping, source)
  for (const { node, expr, field, verify: before } of expressions) {
    before?.()
    if (field !== undefined && !isAggregated(context, aggregation, expr)) {
      throw new EngineError('EXPRESSION_NOT_AGGREGATE', `Column ${field} not in GROUP BY clause`)
    }
    verify(context, aggregation, expr, node, '')
    someExpr(expr, (part) => {
      if (part.kind === 'aggregate') refuseCaptured(context, node, part, (id) => !aggregation.isOpen(id))
      return false
    })
    aggregation.rewrite(expr)
  }
  return { node: aggregation.over(input), rewrite: aggregation.rewrite }
}

/** Collects the columns of an aggregation while expressions are rewritten to its output. */
class Aggregation implements Verifier {
  readonly #context: AnalysisContext
  readonly #grouping: Grouping
  readonly #source: ReadonlySet<ColumnId>
  readonly #keys: AggregateNode['keys']
  readonly #keyColumns: ReadonlyMap<string, AggregateNode['keys'][number]>
  readonly #keyIds: ReadonlySet<ColumnId>
  /** Whether every key is a column. */
  readonly #onlyColumns: boolean
  /** The columns that are computed below the aggregation. */
  readonly #computed: ComputedColumn[] = []
  readonly #aggregates = new Map<string | Expr, { readonly id: ColumnId; readonly call: AggregateExpr }>()
  readonly #groupings = new Map<string, AggregateNode['groupings'][number]>()
  /** Arguments computed below the aggregation, since a rendering may repeat them: long and volatile ones. */
  readonly #calculated = new Map<string | Expr, ColumnId>()
  /** Volatile filter conditions: evaluated once, below the arguments that depend on them. */
  readonly #conditions: ComputedColumn[] = []

  constructor(context: AnalysisContext, grouping: Grouping, source: ReadonlySet<ColumnId>) {
    this.#context = context
    this.#grouping = grouping
    this.#source = source
    this.#keys = grouping.keys.map((expr) => {
      if (expr.kind === 'column' && source.has(expr.id)) return { id: expr.id, input: expr.id, type: expr.type }
      const id = newId(context)
      this.#computed.push({ id, expression: expr })
      return { id, input: id, type: expr.type }
    })
    this.#keyColumns = new Map(grouping.keys.map((expr, i) => [exprKey(expr), this.#keys[i]!]))
    this.#keyIds = new Set(this.#keys.map((key) => key.id))
    this.#onlyColumns = grouping.keys.every((expr) => expr.kind === 'column')
  }

  isKey(expr: Expr): boolean {
    return this.#onlyColumns && expr.kind !== 'column' ? false : this.#keyColumns.has(exprKey(expr))
  }

  isOpen(id: ColumnId): boolean {
    return this.#source.has(id) && !this.#keyIds.has(id)
  }

  /** Rewrites an expression to the aggregation's output. Adds the aggregates that it calls. */
  readonly rewrite = (expr: Expr): Expr => {
    if (expr.kind === 'column' || expr.kind === 'constant') {
      const key = this.#onlyColumns ? undefined : this.#keyColumns.get(exprKey(expr))
      return key === undefined ? expr : columnOf(key.id, key.type)
    }
    const text = !this.#onlyColumns || expr.kind === 'aggregate' || expr.kind === 'grouping' ? exprKey(expr) : ''
    if (expr.kind === 'aggregate') {
      // A volatile expression equals only itself.
      const own = isVolatile(expr) ? expr : text
      let found = this.#aggregates.get(own)
      if (found === undefined) {
        found = { id: newId(this.#context), call: this.#withArguments(expr) }
        this.#aggregates.set(own, found)
      }
      return columnOf(found.id, expr.type)
    }
    if (expr.kind === 'grouping') return this.#groupingColumn(expr, text)
    const key = this.#keyColumns.get(text)
    return key === undefined ? mapChildren(expr, this.rewrite) : columnOf(key.id, key.type)
  }

  /** The aggregation of the rows of `input`. */
  over(input: RelationNode): RelationNode {
    const asked: RelationNode =
      this.#conditions.length === 0 ? input : { kind: 'project', input, columns: this.#conditions }
    let node: RelationNode =
      this.#computed.length === 0 ? asked : { kind: 'project', input: asked, columns: this.#computed }
    const groups = this.#keys.map((key) => columnOf(key.input, key.type))
    const { sets } = this.#grouping
    const aggregates = [...this.#aggregates.values()].map(({ id, call }) => {
      // With several grouping sets, the groups are not those of the rows.
      if (sets !== undefined) return { id, call }
      const checked = checkedAggregate(this.#context, node, groups, call)
      node = checked.node
      return { id, call: checked.call }
    })
    const groupings = [...this.#groupings.values()]
    return withFilteringQueries({ kind: 'aggregate', input: node, keys: this.#keys, sets, aggregates, groupings })
  }

  #groupingColumn(expr: GroupingExpr, key: string): Expr {
    const { keys } = this.#grouping
    let found = this.#groupings.get(key)
    if (found === undefined) {
      const indexes = expr.columns.map((column) => keys.findIndex((each) => exprKey(each) === exprKey(column)))
      const type = expr.columns.length > INTEGER_GROUPING ? BIGINT : INTEGER
      found = { id: newId(this.#context), keys: indexes, type }
      this.#groupings.set(key, found)
    }
    return columnOf(found.id, found.type)
  }

  #withArguments(call: AggregateExpr): AggregateExpr {
    const asked = call.filter && this.#conditionOf(call.filter)
    const filtered: AggregateExpr =
      asked === undefined
        ? call
        : {
            ...call,
            filter: asked,
            arguments: sumsProduct(call) ? call.arguments : call.arguments.map((each) => whereHolds(asked, each)),
            orderBy: call.orderBy.map((key) => ({ ...key, value: whereHolds(asked, key.value) })),
          }
    if (sumsProduct(filtered)) return filtered
    return { ...filtered, arguments: filtered.arguments.map((each) => this.#argument(each)) }
  }

  #conditionOf(filter: Expr): Expr {
    if (!isVolatile(filter)) return filter
    const id = newId(this.#context)
    this.#conditions.push({ id, expression: filter })
    return columnOf(id, filter.type)
  }

  #argument(expr: Expr): Expr {
    if (expr.kind === 'constant' || expr.kind === 'lambda') return expr
    const below = isLong(expr) || isVolatile(expr) || readsOthersAlone(expr, this.#source)
    if (!below || (expr.kind === 'column' && this.#source.has(expr.id))) return expr
    const key = isVolatile(expr) ? expr : exprKey(expr)
    let id = this.#calculated.get(key)
    if (id === undefined) {
      id = newId(this.#context)
      this.#calculated.set(key, id)
      this.#computed.push({ id, expression: expr })
    }
    return columnOf(id, expr.type)
  }
}

/**
 * Refuses lambdas of an aggregate that read columns: they run on several rows at a time, so no single row's value
 * applies.
 * @param isShared whether all rows of a group share the column's value
 */
export function refuseCaptured(
  context: AnalysisContext,
  node: { readonly span: Span },
  { function: { name }, arguments: args }: AggregateExpr | WindowExpr,
  isShared: (id: ColumnId) => boolean = () => false,
): void {
  for (const argument of args) {
    if (argument.kind !== 'lambda') continue
    visitColumns(argument, (id, column) => {
      if (isShared(id)) return
      const message = `Lambda of ${name} cannot use columns of the query: pass them within its input`
      throw errorAt(context, context.origins.get(column) ?? node, 'NOT_SUPPORTED', message)
    })
  }
}

/**
 * Evaluates an argument that may fail only for rows that FILTER keeps: engines evaluate arguments before the filter.
 */
function whereHolds(filter: Expr, value: Expr): Expr {
  if (value.kind === 'lambda' || !canRaise(value)) return value
  return { kind: 'case', type: value.type, branches: [{ when: filter, then: value }], otherwise: undefined }
}

/** Whether an expression is more than plain arithmetic over a few columns. */
function isLong(expr: Expr): boolean {
  let size = 0
  let calls = false
  const visit = (part: Expr): void => {
    size++
    if (part.kind === 'call' || part.kind === 'cast' || part.kind === 'engineCall' || part.kind === 'let') calls = true
    childrenOfExpr(part).forEach(visit)
  }
  visit(expr)
  return calls && size > LONG
}

interface Verifier {
  isKey(expr: Expr): boolean
  /** Whether the column is a column of FROM and not a key. */
  isOpen(id: ColumnId): boolean
}

/** Refuses an expression that uses a column of FROM outside of aggregates and keys. */
function verify(context: AnalysisContext, verifier: Verifier, expr: Expr, node: Expression, label: string): void {
  if (isAggregated(context, verifier, expr)) return
  throw errorAt(
    context,
    node,
    'EXPRESSION_NOT_AGGREGATE',
    `${label}'${context.print(node)}' must be an aggregate expression or appear in GROUP BY clause`,
  )
}

function isAggregated(context: AnalysisContext, verifier: Verifier, expr: Expr): boolean {
  if (expr.kind === 'aggregate' || expr.kind === 'grouping' || verifier.isKey(expr)) return true
  switch (expr.kind) {
    case 'column':
      return !verifier.isOpen(expr.id)
    case 'window': {
      const verifyPart = (part: Expr, label: string): void => {
        const node = context.origins.get(part)
        if (node !== undefined) verify(context, verifier, part, node, label)
      }
      expr.partitionBy.forEach((part) => verifyPart(part, 'PARTITION BY expression '))
      expr.orderBy.forEach(({ value }) => verifyPart(value, 'ORDER BY expression '))
      const { start, end } = expr.frame ?? {}
      for (const [side, bound] of [
        ['start', start?.value],
        ['end', end?.value],
      ] as const) {
        const at = bound && context.origins.get(bound)
        if (at === undefined || isAggregated(context, verifier, bound!)) continue
        const message = `Window frame ${side} must be an aggregate expression or appear in GROUP BY clause`
        throw errorAt(context, at, 'EXPRESSION_NOT_AGGREGATE', message)
      }
      break
    }
    case 'scalarSubquery':
    case 'exists':
    case 'inSubquery':
    case 'quantified':
      visitColumns(expr.query.node, (id, column) => {
        if (!verifier.isOpen(id)) return
        const node = column && context.origins.get(column)
        if (node === undefined) return
        throw errorAt(
          context,
          node,
          'EXPRESSION_NOT_AGGREGATE',
          `Subquery uses '${context.print(node)}' which must appear in GROUP BY clause`,
        )
      })
      break
  }
  return childrenOfExpr(expr).every((child) => isAggregated(context, verifier, child))
}
