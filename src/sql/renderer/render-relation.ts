import { unreachable } from '../../shared/unreachable.ts'
import { comparisonKey, needsKey, sortItems } from '../functions/comparison.ts'
import { duckdbType, rowFieldOf } from '../types/duckdb-representation.ts'
import type {
  AggregateNode,
  ColumnId,
  CommonTable,
  DistinctNode,
  JoinNode,
  LimitNode,
  ProjectNode,
  RelationNode,
  ScanNode,
  SetNode,
  SortKey,
  UnnestNode,
  ValuesNode,
  WindowNode,
  WithNode,
} from '../analyzer/tree.ts'
import {
  asFromItem,
  fromBlock,
  isOpen,
  neededOutputs,
  opened,
  selectText,
  wrapped,
  type Block,
  type SortText,
} from './block.ts'
import { renderAggregate, renderConjuncts, renderExpr, renderWindow } from './render-expression.ts'
import { balanced, columnName, type Output, type RenderState } from './render-state.ts'

/** A query with these outputs, as one SELECT. */
export function renderQuery(state: RenderState, node: RelationNode, outputs: readonly Output[]): string {
  const block = renderRelation(state, node)
  const calculatesKey = outputs.some((output) => output.wrap !== undefined)
  if (block.distinct || (calculatesKey && !isOpen(block))) return selectText(wrapped(state, block), outputs)
  return selectText(block, outputs)
}

/** The top of a statement. A DISTINCT is closed first: its columns are not the statement's one by one. */
export function renderTop(state: RenderState, node: RelationNode, outputs: readonly Output[]): string {
  const block = renderRelation(state, node)
  if (!block.distinct) return selectText(block, outputs)
  const { orderBy, limit, ...rest } = block
  const inner = wrapped(state, { ...rest, orderBy: limit === '' ? undefined : orderBy, limit })
  return selectText({ ...inner, orderBy }, outputs)
}

function renderRelation(state: RenderState, node: RelationNode): Block {
  switch (node.kind) {
    case 'scan':
      return renderScan(state, node)
    case 'values':
      return renderValues(state, node)
    case 'filter': {
      const block = opened(state, renderRelation(state, node.input))
      return { ...block, where: [...block.where, ...renderConjuncts(state, node.predicate)] }
    }
    case 'project':
      return renderProject(state, node)
    case 'join':
      return renderJoin(state, node)
    case 'unnest':
      return renderUnnest(state, node)
    case 'aggregate':
      return renderAggregation(state, node)
    case 'window':
      return renderWindows(state, node)
    case 'distinct':
      return renderDistinct(state, node)
    case 'sort': {
      const inner = renderRelation(state, node.input)
      const block = inner.orderBy === undefined && inner.limit === '' ? inner : wrapped(state, inner)
      return { ...block, orderBy: (text) => sortText(state, node.keys, text) }
    }
    case 'limit':
      return renderLimit(state, node)
    case 'set':
      return renderSet(state, node)
    case 'with':
      return renderWith(state, node)
    case 'cte': {
      const columns = node.columns.filter((column) => state.needed.has(column.id))
      const name = state.tableNames.get(node.table) ?? tableName(node.table)
      const items = columns.map(({ id, source }) => `${columnName(source)} AS ${columnName(id)}`)
      return fromBlock(
        `(SELECT ${items.length === 0 ? '1 AS one' : items.join(', ')} FROM ${name})`,
        columns.map((column) => column.id),
      )
    }
    case 'sample': {
      const block = opened(state, renderRelation(state, node.input))
      if (node.percentage >= 100) return block
      return { ...block, where: [...block.where, `random() * 100 < ${node.percentage}`] }
    }
    case 'sequence': {
      const { id, start, stop, step } = node
      const bound = (value: bigint): string => `CAST('${value}' AS BIGINT)`
      return fromBlock(
        `(SELECT generate_series AS ${columnName(id)} FROM generate_series(${bound(start)}, ${bound(stop)}, ${bound(step)}))`,
        [id],
      )
    }
    default:
      return unreachable(node)
  }
}

function tableName(id: number): string {
  return `w${id}`
}

function sortText(state: RenderState, keys: readonly SortKey[], text: SortText): readonly string[] {
  return keys.flatMap(({ column, type, descending, nullsFirst }) => {
    const alone = !needsKey(type) && !(nullsFirst && (type.kind === 'double' || type.kind === 'real'))
    return sortItems(type, text(column, alone), !descending, nullsFirst, state.names)
  })
}

function renderScan(state: RenderState, scan: ScanNode): Block {
  const columns = scan.columns.filter((column) => state.needed.has(column.id))
  const index = state.scans.push({ scan, columns: columns.map((column) => column.name) }) - 1
  const items = columns.map(({ id, name }) => `"${name.replaceAll('"', '""')}" AS ${columnName(id)}`)
  return fromBlock(
    `(SELECT ${items.length === 0 ? '1 AS one' : items.join(', ')} FROM "$s${index}")`,
    columns.map((column) => column.id),
  )
}

function renderValues(state: RenderState, { columns, rows }: ValuesNode): Block {
  if (columns.length === 0) return fromBlock(rows.length === 1 ? '' : `range(${rows.length})`, [])
  const typed = (texts: readonly string[]): string =>
    texts.map((text, i) => `${text} AS ${columnName(columns[i]!.id)}`).join(', ')
  const [first] = rows
  if (rows.length === 1) {
    return fromBlock(
      `(SELECT ${typed(first!.map((expr) => renderExpr(state, expr)))})`,
      columns.map((column) => column.id),
    )
  }
  const text = rows.map((row) => `(${row.map((expr) => renderExpr(state, expr)).join(', ')})`).join(', ')
  const names = columns.map((column) => columnName(column.id)).join(', ')
  return fromBlock(
    `(VALUES ${text}) AS ${state.names.fresh()}(${names})`,
    columns.map((column) => column.id),
  )
}

/** Calculations over FROM stay in the same SELECT; those over calculated columns read it. */
function renderProject(state: RenderState, { input, columns }: ProjectNode): Block {
  const inner = renderRelation(state, input)
  const block = isOpen(inner) ? inner : wrapped(state, inner)
  const wanted = columns.filter((column) => state.needed.has(column.id))
  if (wanted.length === 0) return block
  const all = new Map(block.columns)
  for (const { id, expression } of wanted) all.set(id, renderExpr(state, expression))
  return { ...block, columns: all, computed: true }
}

function renderJoin(state: RenderState, node: JoinNode): Block {
  const leftBlock = renderRelation(state, node.left)
  const rightBlock = renderRelation(state, node.right)
  const left = asFromItem(state, leftBlock)
  const rightItem = asFromItem(state, rightBlock)
  const right = node.right.kind === 'join' && rightItem === rightBlock.from ? `(${rightItem})` : rightItem
  const ids = [...readable(state, leftBlock), ...readable(state, rightBlock)]
  if (node.lateral) {
    const lateral =
      rightItem.startsWith('(SELECT') || rightItem.startsWith('(WITH') ? rightItem : `(SELECT * FROM ${rightItem})`
    return fromBlock(
      node.type === 'left' ? `${left} LEFT JOIN LATERAL ${lateral} ON true` : `${left} CROSS JOIN LATERAL ${lateral}`,
      ids,
    )
  }
  if (node.condition === undefined) return fromBlock(`${left} CROSS JOIN ${right}`, ids)
  const word = { cross: 'JOIN', inner: 'JOIN', left: 'LEFT JOIN', right: 'RIGHT JOIN', full: 'FULL JOIN' }[node.type]
  return fromBlock(`${left} ${word} ${right} ON ${balanced(renderConjuncts(state, node.condition), 'AND')}`, ids)
}

/** The columns that stay readable once the block is an item of FROM. */
function readable(state: RenderState, block: Block): readonly ColumnId[] {
  return [...block.columns.keys()].filter((column) => state.needed.has(column))
}

function renderUnnest(state: RenderState, node: UnnestNode): Block {
  const inner: string[] = []
  const outer: string[] = []
  const ids: ColumnId[] = []
  const lengths: string[] = []
  for (const { value, columns } of node.arguments) {
    const text = renderExpr(state, value)
    lengths.push(value.type.kind === 'map' ? `cardinality(${text})` : `len(${text})`)
    const named = columns.map(columnName)
    if (value.type.kind === 'map') {
      inner.push(`unnest(map_keys(${text})) AS ${named[0]}`, `unnest(map_values(${text})) AS ${named[1]}`)
      outer.push(...named)
    } else if (value.type.kind === 'array' && value.type.element.kind === 'row') {
      const row = state.names.fresh()
      inner.push(`unnest(${text}) AS ${row}`)
      outer.push(...named.map((name, i) => `${rowFieldOf(row, i)} AS ${name}`))
    } else {
      inner.push(`unnest(${text}) AS ${named[0]}`)
      outer.push(named[0]!)
    }
    ids.push(...columns)
  }
  if (node.ordinality !== undefined) {
    const name = columnName(node.ordinality)
    const most = lengths.length === 1 ? lengths[0]! : `greatest(${lengths.join(', ')})`
    inner.push(`unnest(range(1, CAST(${most} AS BIGINT) + 1)) AS ${name}`)
    outer.push(name)
    ids.push(node.ordinality)
  }
  const plain = inner.every((item, i) => item.endsWith(` AS ${outer[i]}`)) && inner.length === outer.length
  const text = `SELECT ${inner.join(', ')}`
  return fromBlock(plain ? `(${text})` : `(SELECT ${outer.join(', ')} FROM (${text}))`, ids)
}

function renderAggregation(state: RenderState, node: AggregateNode): Block {
  const block = opened(state, renderRelation(state, node.input))
  const columns = new Map<ColumnId, string>()
  const keys = node.keys.map(({ input, type }) => {
    const text = columnName(input)
    return needsKey(type) ? comparisonKey(type, text, state.names) : text
  })
  node.keys.forEach(({ id, input, type }, i) => {
    const text = columnName(input)
    if (!needsKey(type)) columns.set(id, text)
    else if (node.sets === undefined) columns.set(id, `any_value(${text})`)
    else columns.set(id, `CASE WHEN grouping(${keys[i]}) = 0 THEN any_value(${text}) END`)
  })
  for (const { id, call } of node.aggregates) {
    if (state.needed.has(id)) columns.set(id, renderAggregate(state, call))
  }
  for (const { id, keys: indexes, type } of node.groupings) {
    // Without sets every key is grouped by.
    columns.set(
      id,
      node.sets === undefined || indexes.length === 0
        ? `CAST(0 AS ${duckdbType(type)})`
        : `CAST(grouping(${indexes.map((index) => keys[index]).join(', ')}) AS ${duckdbType(type)})`,
    )
  }
  const tail = groupBy(node, keys)
  if (columns.size === 0 && tail === '') {
    // An aggregation without anything to show still gives its one row.
    return fromBlock(
      `(SELECT count(*) AS one FROM ${block.from === '' ? '(SELECT 1)' : block.from}${block.where.length === 0 ? '' : ` WHERE ${block.where.join(' AND ')}`})`,
      [],
    )
  }
  return { ...block, columns, tail, computed: true }
}

function groupBy({ sets, keys: definitions }: AggregateNode, keys: readonly string[]): string {
  if (sets !== undefined) {
    const list = sets.map((set) => `(${set.map((index) => keys[index]).join(', ')})`)
    return `GROUP BY GROUPING SETS (${list.join(', ')})`
  }
  return definitions.length === 0 ? '' : `GROUP BY ${keys.join(', ')}`
}

function renderWindows(state: RenderState, node: WindowNode): Block {
  const block = opened(state, renderRelation(state, node.input))
  const columns = new Map(block.columns)
  for (const { id, call } of node.columns) {
    if (state.needed.has(id)) columns.set(id, renderWindow(state, call))
  }
  return { ...block, columns, computed: true }
}

function renderDistinct(state: RenderState, { input, columns }: DistinctNode): Block {
  const inner = renderRelation(state, input)
  const special = columns.filter((column) => needsKey(column.type))
  if (special.length > 0) {
    const block = opened(state, inner)
    const keys = columns.map(({ id, type }) => comparisonKey(type, columnName(id), state.names))
    const text = columns.map(({ id }) => columnName(id)).join(', ')
    const where = block.where.length === 0 ? '' : ` WHERE ${block.where.join(' AND ')}`
    const ctes = block.with.length === 0 ? '' : `WITH ${block.with.join(', ')} `
    const from = block.from === '' ? '' : ` FROM ${block.from}`
    return fromBlock(
      `(${ctes}SELECT DISTINCT ON (${keys.join(', ')}) ${text}${from}${where})`,
      columns.map((column) => column.id),
    )
  }
  const block =
    inner.tail === '' && !inner.distinct && inner.orderBy === undefined && inner.limit === ''
      ? inner
      : wrapped(state, inner)
  const kept = new Map(columns.map(({ id }) => [id, block.columns.get(id) ?? columnName(id)]))
  return { ...block, columns: kept, distinct: true, computed: true }
}

function renderLimit(state: RenderState, node: LimitNode): Block {
  const inner = renderRelation(state, node.input)
  const { offset, ties } = node
  // Sorted by constants alone, every row ties with the first.
  const count = ties?.length === 0 ? undefined : node.count
  if (ties !== undefined && ties.length > 0) {
    const block = opened(state, inner.orderBy === undefined ? inner : { ...inner, orderBy: undefined })
    const order = sortText(state, ties, columnName).join(', ')
    const rank = state.names.fresh()
    const number = state.names.fresh()
    const outputs = neededOutputs(state, block)
    const text = selectText(
      {
        ...block,
        columns: new Map([
          ...block.columns,
          [-1, `rank() OVER (ORDER BY ${order})`],
          [-2, `row_number() OVER (ORDER BY ${order})`],
        ]),
      },
      [...outputs, { column: -1, name: rank }, { column: -2, name: number }],
    )
    // After OFFSET the first row left decides from where ranks count: ties of skipped rows keep their rank.
    const skip = offset ?? '0'
    const where = [`${number} > ${skip}`, `${rank} <= ${BigInt(skip) + BigInt(count ?? '0')}`]
    return {
      ...fromBlock(
        `(${text})`,
        outputs.map((output) => output.column),
      ),
      where,
      orderBy: (column) => sortText(state, ties, column),
    }
  }
  const block = inner.limit === '' ? inner : wrapped(state, inner)
  const limit = [count === undefined ? '' : `LIMIT ${count}`, offset === undefined ? '' : `OFFSET ${offset}`]
  return { ...block, limit: limit.filter((part) => part !== '').join(' ') }
}

function renderSet(state: RenderState, node: SetNode): Block {
  const columns =
    node.all && node.operator === 'union' ? node.columns.filter((column) => state.needed.has(column.id)) : node.columns
  const special = !(node.all && node.operator === 'union') && columns.some((column) => needsKey(column.type))
  const positions = columns.map((column) => node.columns.indexOf(column))
  const texts = node.inputs.map((input) =>
    renderQuery(
      state,
      input.node,
      positions.map((position, i) => ({ column: input.columns[position]!, name: columnName(columns[i]!.id) })),
    ),
  )
  const ids = columns.map((column) => column.id)
  const word = `${node.operator.toUpperCase()}${node.all ? ' ALL' : ''}`
  if (!special) return fromBlock(`(${texts.map((text) => `(${text})`).join(` ${word} `)})`, ids)
  return keyedSet(state, node, texts)
}

/** A set operation over values that are equal though held differently (zones, maps): by keys, one value of each shown. */
function keyedSet(state: RenderState, node: SetNode, texts: readonly string[]): Block {
  const keyNames = node.columns.map(() => state.names.fresh())
  const keys = node.columns.map(
    ({ id, type }, i) => `${comparisonKey(type, columnName(id), state.names)} AS ${keyNames[i]}`,
  )
  const keyed = texts.map((text) => `SELECT *, ${keys.join(', ')} FROM (${text})`)
  const shown = node.columns.map(({ id }) => `any_value(${columnName(id)}) AS ${columnName(id)}`).join(', ')
  const ids = node.columns.map((column) => column.id)
  const side = state.names.fresh()
  const all = keyed.map((text, i) => `SELECT *, ${i} AS ${side} FROM (${text})`).join(' UNION ALL ')
  const last = texts.length - 1
  const having = {
    union: '',
    intersect: ` HAVING count(DISTINCT ${side}) = ${texts.length}`,
    except: ` HAVING max(${side}) < ${last}`,
  }[node.operator]
  return fromBlock(`(SELECT ${shown} FROM (${all}) GROUP BY ${keyNames.join(', ')}${having})`, ids)
}

function renderWith(state: RenderState, node: WithNode): Block {
  const texts = node.tables.flatMap((table) => renderCommonTable(state, table))
  const block = renderRelation(state, node.body)
  return { ...block, with: [...texts, ...block.with] }
}

function renderCommonTable(state: RenderState, table: CommonTable): readonly string[] {
  const used = table.columns.filter((column) => state.needed.has(column.id))
  const outputs = used.map(({ id }) => ({ column: id, name: columnName(id) }))
  const base = renderQuery(state, table.node, outputs)
  const name = tableName(table.id)
  if (table.step === undefined) return [`${name} AS (${base})`]
  return renderRecursion(
    state,
    table,
    base,
    used.map((column) => table.columns.indexOf(column)),
  )
}

/**
 * A recursion is spread out into as many steps as are allowed, as Trino does it: the steps are queries like others,
 * and one that would go on fails.
 */
function renderRecursion(
  state: RenderState,
  table: CommonTable,
  base: string,
  positions: readonly number[],
): readonly string[] {
  const step = table.step!
  const name = tableName(table.id)
  const level = (i: number): string => `${name}_${i}`
  const outputs = positions.map((position) => ({
    column: step.columns[position]!,
    name: columnName(table.columns[position]!.id),
  }))
  const texts = [`${level(0)} AS (${base})`]
  for (let i = 1; i <= step.maxDepth + 1; i++) {
    state.tableNames.set(table.id, level(i - 1))
    texts.push(`${level(i)} AS (${renderQuery(state, step.node, outputs)})`)
  }
  state.tableNames.delete(table.id)
  const list = outputs.map((output) => output.name).join(', ') || '1 AS one'
  const message = `NOT_SUPPORTED: Recursion depth limit exceeded (${step.maxDepth}). Use 'max_recursion_depth' session property to modify the limit.`
  // Depends on a row, so that it is not calculated while the statement is prepared.
  const raised = `u_raise(concat('${message.replaceAll("'", "''")}', CASE WHEN random() < 0 THEN '' END))`
  const levels = Array.from({ length: step.maxDepth + 1 }, (_, i) => `SELECT ${list} FROM ${level(i)}`)
  const failing = `SELECT ${list} FROM ${level(step.maxDepth + 1)} WHERE ${raised} IS NOT NULL`
  const whole = [...levels, failing].join(' UNION ALL ')
  texts.push(`${name} AS (${step.distinct ? `SELECT DISTINCT * FROM (${whole})` : whole})`)
  return texts
}
