import { unreachable } from '../../shared/unreachable.ts'
import { comparisonKey, needsComparisonKey } from '../functions/comparison.ts'
import { duckdbType, rowFieldOf } from '../types/duckdb-representation.ts'
import type {
  AggregateNode,
  BarrierNode,
  ColumnId,
  CommonTable,
  Expr,
  FilterNode,
  JoinNode,
  ProjectNode,
  RelationNode,
  SetNode,
  UnnestNode,
  WindowNode,
  WithNode,
} from '../analyzer/tree.ts'
import { digits, EMPTY, integer, isEmpty, joined, literal, plainName, sql, type Sql } from '../../duckdb/text/sql.ts'
import { overMarked, withMarks } from './distinct-marks.ts'
import {
  asFromItem,
  clauses,
  fromBlock,
  isOpen,
  neededOutputs,
  opened,
  queryBlock,
  selectList,
  selectText,
  whereClause,
  wrapped,
  type Block,
} from './block.ts'
import { isVolatile, someNode } from '../analyzer/walk.ts'
import { hasSubquery, outerColumnsOf } from './composition.ts'
import { rememberRaising, sidesOf } from './guards.ts'
import { canRaise, mayRaiseOfRow } from '../analyzer/raising.ts'
import { renderAggregate, renderWindow } from './render-aggregate.ts'
import { renderConjuncts, renderExpr, termsOf } from './render-expression.ts'
import { besideRow, noteQueryOfRow } from './queries-of-rows.ts'
import { balanced, columnName, type Output, type RenderState } from './render-state.ts'
import { sortText, renderLimit } from './render-limit.ts'
import { renderDistinct, keyedSet, SET_OPERATORS } from './render-distinct.ts'
import { renderArrays, renderValues, renderScan } from './render-leaves.ts'

/** Renders a query with these outputs as one SELECT. */
export function renderQuery(state: RenderState, node: RelationNode, outputs: readonly Output[]): Sql {
  const block = renderRelation(state, node)
  const calculatesKey = outputs.some((output) => output.wrap !== undefined)
  if (block.distinct || (calculatesKey && !isOpen(block))) return selectText(wrapped(state, block), outputs)
  return selectText(block, outputs)
}

/**
 * Renders the top of a statement. A DISTINCT is wrapped in a subquery first, because its columns do not match the
 * statement's one to one.
 */
export function renderTop(state: RenderState, node: RelationNode, outputs: readonly Output[]): Sql {
  const block = renderRelation(state, node)
  if (!block.distinct) return selectText(block, outputs)
  const { orderBy, limit, ...rest } = block
  const inner = wrapped(state, { ...rest, orderBy: isEmpty(limit) ? undefined : orderBy, limit })
  return selectText({ ...inner, orderBy }, outputs)
}

function renderRelation(state: RenderState, node: RelationNode): Block {
  switch (node.kind) {
    case 'scan':
      return renderScan(state, node)
    case 'values':
      return renderValues(state, node)
    case 'arrays':
      return renderArrays(state, node)
    case 'filter':
      return renderFilter(state, node)
    case 'project':
      return renderProject(state, node)
    case 'barrier':
      return renderBarrier(state, node)
    case 'join':
      return renderJoin(state, node)
    case 'unnest':
      return besideRow(state, node, () => renderUnnest(state, node))
    case 'aggregate':
      return renderAggregation(state, node)
    case 'window':
      return renderWindows(state, node, renderRelation(state, node.input))
    case 'distinct':
      return renderDistinct(state, node, renderRelation(state, node.input))
    case 'sort': {
      const inner = renderRelation(state, node.input)
      const block = inner.orderBy === undefined && isEmpty(inner.limit) ? inner : wrapped(state, inner)
      return { ...block, orderBy: (text) => sortText(state, node.keys, text) }
    }
    case 'limit':
      return renderLimit(state, node, renderRelation(state, node.input))
    case 'set':
      return renderSet(state, node)
    case 'with':
      return renderWith(state, node)
    case 'cte': {
      const columns = node.columns.filter((column) => state.needed.has(column.id))
      const name = state.tableNames.get(node.table) ?? tableName(node.table)
      for (const { id, source } of columns) if (state.raisingColumns.has(source)) state.raisingColumns.add(id)
      const items = columns.map(({ id, source }) => sql`${columnName(source)} AS ${columnName(id)}`)
      return queryBlock(
        sql`SELECT ${selectList(items)} FROM ${name}`,
        columns.map((column) => column.id),
      )
    }
    case 'sample': {
      const block = opened(state, renderRelation(state, node.input))
      if (node.percentage >= 100) return block
      return { ...block, where: [...block.where, sql`random() * 100 < ${digits(String(node.percentage))}`] }
    }
    case 'sequence': {
      const { id, start, stop, step } = node
      const bounds = [start, stop, step].map((value) => sql`CAST(${literal(String(value))} AS BIGINT)`)
      return queryBlock(
        sql`SELECT generate_series AS ${columnName(id)} FROM generate_series(${joined(bounds, ', ')})`,
        [id],
      )
    }
    default:
      return unreachable(node)
  }
}

function renderFilter(state: RenderState, node: FilterNode): Block {
  const [input, predicates] = merged(node)
  const { own, ofRowAround } = apartFromRow(state, predicates)
  const conditions = (exprs: readonly Expr[], over: boolean): readonly Sql[] =>
    renderConjuncts(state, exprs, sidesOf(input), over ? 'overFiltered' : 'where')
  // Conditions on rows that other conditions let through stand in an outer SELECT; otherwise they would run on more
  // rows.
  const inner = opened(state, renderRelation(state, input))
  const block = inner.where.length > 0 ? wrapped(state, inner) : inner
  const filtered = { ...block, where: [...block.where, ...conditions(own, filters(input))] }
  if (ofRowAround.length === 0) return filtered
  return { ...wrapped(state, filtered), where: conditions(ofRowAround, true) }
}

/**
 * Splits the conditions of a correlated query. Conditions that do not read the outer row and may fail run once per row
 * of the query, as in Trino, and not per pair of rows. If there are not both kinds, all conditions are `own`.
 */
function apartFromRow(
  state: RenderState,
  predicates: readonly Expr[],
): { readonly own: readonly Expr[]; readonly ofRowAround: readonly Expr[] } {
  const terms = predicates.flatMap(termsOf)
  const isOwn = (term: Expr): boolean => outerColumnsOf(state, term).length === 0 && !hasSubquery(term)
  const [own, ofRowAround] = [terms.filter(isOwn), terms.filter((term) => !isOwn(term))]
  const splits = state.outerColumns.size > 0 && own.some(mayRaiseOfRow) && !terms.some(isVolatile)
  return splits && ofRowAround.length > 0 ? { own, ofRowAround } : { own: predicates, ofRowAround: [] }
}

/**
 * DuckDB does not push conditions below a LIMIT. This protects rows on which a condition may fail, and limits that
 * count rows.
 */
const EVERY_ROW = sql`LIMIT ${integer(2n ** 63n - 1n)}`

/**
 * Renders a barrier. DuckDB's column statistics include rows that a row filter removes, and would show in which data it
 * skips and how much it reads. `least` with one argument hides them, because DuckDB derives no statistics for it.
 */
function renderBarrier(state: RenderState, { input }: BarrierNode): Block {
  const inner = renderRelation(state, input)
  if (!filters(input)) return inner
  const block = wrapped(state, { ...inner, limit: EVERY_ROW })
  const columns = [...block.columns].map(([id, text]) => [id, sql`least(${text})`] as const)
  return { ...block, columns: new Map(columns), computed: true }
}

function filters(node: RelationNode): boolean {
  return node.kind === 'filter' || (node.kind === 'project' && filters(node.input))
}

/** Adjacent filters, innermost first, as far as they may share one WHERE. */
function merged(node: FilterNode): readonly [RelationNode, readonly Expr[]] {
  const { input, predicate } = node
  if (input.kind !== 'filter' || (hasSubquery(input.predicate) && canRaise(predicate))) return [input, [predicate]]
  const [below, predicates] = merged(input)
  return [below, [...predicates, predicate]]
}

function tableName(id: number): Sql {
  return plainName(`w${id}`)
}

/** Expressions over FROM stay in the same SELECT; expressions over computed columns read it as a subquery. */
function renderProject(state: RenderState, { input, columns }: ProjectNode): Block {
  const inner = renderRelation(state, input)
  const block = isOpen(inner) ? inner : wrapped(state, inner)
  const wanted = columns.filter((column) => state.needed.has(column.id))
  if (wanted.length === 0) return block
  const all = new Map(block.columns)
  rememberRaising(state, input, wanted)
  for (const { id, expression } of wanted) all.set(id, renderExpr(state, expression))
  return { ...block, columns: all, computed: true }
}

function renderJoin(state: RenderState, node: JoinNode): Block {
  if (state.fullJoins.delete(node)) {
    const tables = commonTablesOf(state, node)
    if (tables.length > 0) return renderWith(state, { kind: 'with', tables, body: node })
  }
  if (node.lateral && node.right.kind !== 'unnest') noteQueryOfRow(state, node.right)
  const leftBlock = renderRelation(state, node.left)
  const rightBlock = renderRelation(state, node.right)
  const { sql: left } = asFromItem(state, leftBlock)
  const rightItem = asFromItem(state, rightBlock)
  const right = rightItem.kind === 'join' ? sql`(${rightItem.sql})` : rightItem.sql
  const ids = [...readable(state, leftBlock), ...readable(state, rightBlock)]
  const block = (text: Sql): Block => fromBlock({ sql: text, kind: 'join' }, ids)
  const outer = node.type === 'right' || node.type === 'full'
  // In right and full joins, the right side reads no columns of the left side.
  if (node.lateral && !outer) {
    const whole = rightItem.kind === 'query' ? rightItem.sql : sql`(SELECT * FROM ${rightItem.sql})`
    const sides = sidesOf(node.left, node.right)
    const terms = node.condition === undefined ? [] : renderConjuncts(state, [node.condition], sides)
    const lateral = terms.length === 0 ? whole : sql`(SELECT * FROM ${whole} ${whereClause(terms)})`
    return block(
      node.type === 'left'
        ? sql`${left} LEFT JOIN LATERAL ${lateral} ON true`
        : sql`${left} CROSS JOIN LATERAL ${lateral}`,
    )
  }
  if (node.condition === undefined) {
    return block(outer ? sql`${left} ${JOINS[node.type]} ${right} ON true` : sql`${left} CROSS JOIN ${right}`)
  }
  const condition = balanced(renderConjuncts(state, [node.condition], sidesOf(node.left, node.right)), 'AND')
  return block(sql`${left} ${JOINS[node.type]} ${right} ON ${condition}`)
}

const JOINS = {
  cross: sql`JOIN`,
  inner: sql`JOIN`,
  left: sql`LEFT JOIN`,
  right: sql`RIGHT JOIN`,
  full: sql`FULL JOIN`,
}

/** The columns that remain readable after the block becomes an item of FROM. */
function readable(state: RenderState, block: Block): readonly ColumnId[] {
  return [...block.columns.keys()].filter((column) => state.needed.has(column))
}

function renderUnnest(state: RenderState, node: UnnestNode): Block {
  const inner: Sql[] = []
  const outer: Sql[] = []
  const ids: ColumnId[] = []
  const lengths: Sql[] = []
  /** Whether a second SELECT must extract the fields of rows. */
  let spread = false
  /** Volatile values are computed once, in FROM. */
  const once: Sql[] = []
  const valueOf = (value: Expr): Sql => {
    const text = renderExpr(state, value)
    if (!isVolatile(value)) return text
    const name = state.names.fresh()
    once.push(sql`${text} AS ${name}`)
    return name
  }
  for (const { value, columns } of node.arguments) {
    const text = valueOf(value)
    lengths.push(value.type.kind === 'map' ? sql`cardinality(${text})` : sql`len(${text})`)
    const named = columns.map(columnName)
    if (value.type.kind === 'map') {
      inner.push(sql`unnest(map_keys(${text})) AS ${named[0]!}`, sql`unnest(map_values(${text})) AS ${named[1]!}`)
      outer.push(...named)
    } else if (value.type.kind === 'array' && value.type.element.kind === 'row') {
      const row = state.names.fresh()
      spread = true
      inner.push(sql`unnest(${text}) AS ${row}`)
      outer.push(...named.map((name, i) => sql`${rowFieldOf(row, i)} AS ${name}`))
    } else {
      inner.push(sql`unnest(${text}) AS ${named[0]!}`)
      outer.push(named[0]!)
    }
    ids.push(...columns)
  }
  if (node.ordinality !== undefined) {
    const name = columnName(node.ordinality)
    const most = lengths.length === 1 ? lengths[0]! : sql`greatest(${joined(lengths, ', ')})`
    inner.push(sql`unnest(range(1, CAST(${most} AS BIGINT) + 1)) AS ${name}`)
    outer.push(name)
    ids.push(node.ordinality)
  }
  const from =
    once.length > 0
      ? sql` FROM (SELECT ${joined(once, ', ')})`
      : state.inQueryOfRow.has(node)
        ? sql` FROM (SELECT 1)`
        : EMPTY
  const text = sql`SELECT ${joined(inner, ', ')}${from}`
  return queryBlock(spread ? sql`SELECT ${joined(outer, ', ')} FROM (${text})` : text, ids)
}

function renderAggregation(state: RenderState, node: AggregateNode): Block {
  const keys = node.keys.map(({ input, type }) => {
    const text = columnName(input)
    return needsComparisonKey(type) ? comparisonKey(type, text, state.names) : text
  })
  const { block, marks } = withMarks(state, node, opened(state, renderRelation(state, node.input)), keys)
  const columns = new Map<ColumnId, Sql>()
  node.keys.forEach(({ id, input, type }, i) => {
    if (state.raisingColumns.has(input)) state.raisingColumns.add(id)
    const text = columnName(input)
    if (!needsComparisonKey(type)) columns.set(id, text)
    else if (node.sets === undefined) columns.set(id, sql`any_value(${text})`)
    else columns.set(id, sql`CASE WHEN grouping(${keys[i]!}) = 0 THEN any_value(${text}) END`)
  })
  for (const { id, call } of node.aggregates) {
    if (!state.needed.has(id)) continue
    const marked = marks.get(id)
    columns.set(
      id,
      marked === undefined
        ? renderAggregate(state, call)
        : overMarked(marked, keys, (isFirst) => renderAggregate(state, call, isFirst)),
    )
  }
  for (const { id, keys: indexes, type } of node.groupings) {
    // Without grouping sets, every key is part of the group.
    columns.set(
      id,
      node.sets === undefined || indexes.length === 0
        ? sql`CAST(0 AS ${duckdbType(type)})`
        : sql`CAST(grouping(${keysOf(keys, indexes)}) AS ${duckdbType(type)})`,
    )
  }
  const tail = groupBy(node, keys)
  if (columns.size === 0 && isEmpty(tail)) {
    // An aggregation without used columns still returns its one row.
    const from = isEmpty(block.from.sql) ? sql`(SELECT 1)` : block.from.sql
    return queryBlock(clauses([sql`SELECT count(*) AS one FROM ${from}`, whereClause(block.where)]), [])
  }
  const aggregated: Block = { ...block, columns, tail, computed: true }
  return state.rowPerGroup.has(node) ? withCount(state, aggregated) : aggregated
}

/** Adds a row count, which is never NULL, to the block's columns. */
function withCount(state: RenderState, block: Block): Block {
  const outputs = neededOutputs(state, block)
  const counted = { ...block, columns: new Map([...block.columns, [-1, sql`count(*)`] as const]) }
  return queryBlock(
    selectText(counted, [...outputs, { column: -1, name: state.names.fresh() }]),
    outputs.map((output) => output.column),
  )
}

function keysOf(keys: readonly Sql[], indexes: readonly number[]): Sql {
  return joined(
    indexes.map((index) => keys[index]!),
    ', ',
  )
}

function groupBy({ sets, keys: definitions }: AggregateNode, keys: readonly Sql[]): Sql {
  if (sets !== undefined) {
    const list = sets.map((set) => sql`(${keysOf(keys, set)})`)
    return sql`GROUP BY GROUPING SETS (${joined(list, ', ')})`
  }
  return definitions.length === 0 ? EMPTY : sql`GROUP BY ${joined(keys, ', ')}`
}

function renderWindows(state: RenderState, node: WindowNode, input: Block): Block {
  const block = opened(state, input)
  const columns = new Map(block.columns)
  for (const { id, call } of node.columns) {
    if (state.needed.has(id)) columns.set(id, renderWindow(state, call))
  }
  return { ...block, columns, computed: true }
}

function renderSet(state: RenderState, node: SetNode): Block {
  const columns =
    node.all && node.operator === 'union' ? node.columns.filter((column) => state.needed.has(column.id)) : node.columns
  const special = !(node.all && node.operator === 'union') && columns.some((column) => needsComparisonKey(column.type))
  const positions = columns.map((column) => node.columns.indexOf(column))
  const texts = node.inputs.map((input) =>
    renderQuery(
      state,
      input.node,
      positions.map((position, i) => ({ column: input.columns[position]!, name: columnName(columns[i]!.id) })),
    ),
  )
  const ids = columns.map((column) => column.id)
  columns.forEach(({ id }, i) => {
    const raises = node.inputs.some((input) => state.raisingColumns.has(input.columns[positions[i]!]!))
    if (raises) state.raisingColumns.add(id)
  })
  if (special) return keyedSet(state, node, texts)
  const parts = texts.map((text) => sql`(${text})`)
  const operator = node.all ? (`${node.operator} all` as const) : node.operator
  return fromBlock({ sql: sql`(${joined(parts, SET_OPERATORS[operator])})`, kind: 'table' }, ids)
}

function renderWith(state: RenderState, node: WithNode): Block {
  const texts = node.tables.flatMap((table) => renderCommonTable(state, table))
  const block = renderRelation(state, node.body)
  return { ...block, with: [...texts, ...block.with] }
}

/** The common tables that a relation reads, in the order of their definition. */
function commonTablesOf(state: RenderState, node: RelationNode): readonly CommonTable[] {
  const read = new Set<number>()
  const visit = (tree: RelationNode): void => {
    someNode(tree, (part) => {
      const table = part.kind === 'cte' && !read.has(part.table) ? state.commonTables.get(part.table) : undefined
      if (table === undefined) return false
      read.add(table.id)
      visit(table.node)
      if (table.step !== undefined) visit(table.step.node)
      return false
    })
  }
  visit(node)
  return [...state.commonTables.values()].filter(({ id }) => read.has(id))
}

function renderCommonTable(state: RenderState, table: CommonTable): readonly Sql[] {
  const used = table.columns.filter((column) => state.needed.has(column.id))
  const outputs = used.map(({ id }) => ({ column: id, name: columnName(id) }))
  const base = renderQuery(state, table.node, outputs)
  state.commonTables.set(table.id, table)
  const name = tableName(table.id)
  if (table.step === undefined) return [sql`${name} AS (${base})`]
  return renderRecursion(
    state,
    table,
    base,
    used.map((column) => table.columns.indexOf(column)),
  )
}

/**
 * Expands a recursion into the maximum number of steps, as Trino does. The steps are ordinary queries; a step beyond
 * the limit fails.
 */
function renderRecursion(
  state: RenderState,
  table: CommonTable,
  base: Sql,
  positions: readonly number[],
): readonly Sql[] {
  const step = table.step!
  const level = (i: number): Sql => plainName(`w${table.id}_${i}`)
  const outputs = positions.map((position) => ({
    column: step.columns[position]!,
    name: columnName(table.columns[position]!.id),
  }))
  const texts = [sql`${level(0)} AS (${base})`]
  for (let i = 1; i <= step.maxDepth + 1; i++) {
    state.tableNames.set(table.id, level(i - 1))
    texts.push(sql`${level(i)} AS (${renderQuery(state, step.node, outputs)})`)
  }
  state.tableNames.delete(table.id)
  const list = selectList(outputs.map((output) => output.name))
  const message = `NOT_SUPPORTED: Recursion depth limit exceeded (${step.maxDepth}). Use 'max_recursion_depth' session property to modify the limit.`
  // The message depends on a row, so that DuckDB does not raise the error while preparing the statement.
  const raised = sql`u_raise(concat(${literal(message)}, CASE WHEN random() < 0 THEN '' END))`
  const levels = Array.from({ length: step.maxDepth + 1 }, (_, i) => sql`SELECT ${list} FROM ${level(i)}`)
  const failing = sql`SELECT ${list} FROM ${level(step.maxDepth + 1)} WHERE ${raised} IS NOT NULL`
  const all = joined([...levels, failing], ' UNION ALL ')
  const whole = step.distinct ? sql`SELECT DISTINCT * FROM (${all})` : all
  return [...texts, sql`${tableName(table.id)} AS (${whole})`]
}
