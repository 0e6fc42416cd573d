import { EngineError } from '../../shared/engine-error.ts'
import { comparisonKey, needsComparisonKey, sortItems } from '../functions/comparison.ts'
import type { CallClauses, RenderArgument } from '../functions/rendering.ts'
import { narrowFactors } from '../analyzer/decimal-products.ts'
import type { AggregateExpr, BoundFrame, Expr, ExprSortKey, FrameEnd, WindowExpr } from '../analyzer/tree.ts'
import { code, EMPTY, integer, isEmpty, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { duckdbType, isFine } from '../types/duckdb-representation.ts'
import { isFloating } from '../types/sql-type.ts'
import { clauses as joinedClauses } from './block.ts'
import { FRAME_BOUNDS, frameOffset } from './frame-offset.ts'
import { narrowProduct } from './narrow-sum.ts'
import { renderArgument, renderExpr } from './render-expression.ts'
import { balanced, type RenderState } from './render-state.ts'
import { dayLength, isTimeFrame, timeFrames, type TimeFrame } from './time-frames.ts'

// Renders expressions over many rows: aggregates and windows.

function renderSort(state: RenderState, keys: readonly ExprSortKey[]): Sql {
  return joined(
    keys.flatMap(({ value, descending, nullsFirst }) =>
      sortItems(value.type, renderExpr(state, value), !descending, nullsFirst, state.names),
    ),
    ', ',
  )
}

function isConstantKey(value: Expr): boolean {
  return value.kind === 'constant' || (value.kind === 'cast' && isConstantKey(value.value))
}

/** @param first whether a row is the first with its values, where DuckDB's DISTINCT cannot decide this (`withMarks`) */
export function renderAggregate(state: RenderState, written: AggregateExpr, first?: Sql): Sql {
  const call = first === undefined ? written : { ...written, distinct: false }
  const filters = [...(call.filter === undefined ? [] : [renderExpr(state, call.filter)]), ...(first ? [first] : [])]
  const clauses: CallClauses = {
    ...ofArguments(state, call.distinct, call.orderBy),
    ...(filters.length === 0 ? {} : { filter: balanced(filters, 'AND') }),
  }
  const render = (args: readonly RenderArgument[]): Sql =>
    call.function.render({ args, session: state.session, names: state.names, clauses })
  const factors = call.function.name === 'sum' && !call.distinct ? narrowFactors(call.arguments[0]!) : undefined
  if (factors === undefined) return render(aggregated(state, call))
  // Rows whose product fits 64 bits are summed separately: exact, and many times faster.
  const { fits, product } = narrowProduct(factors, (factor) => renderExpr(state, factor))
  const filter = clauses.filter === undefined ? EMPTY : sql` FILTER (WHERE ${clauses.filter})`
  const asked = clauses.filter === undefined ? sql` ELSE` : sql` WHEN ${clauses.filter} THEN`
  const type = duckdbType(call.type)
  const narrow = sql`CAST(sum(CASE WHEN ${fits} THEN ${product} END)${filter} AS ${type})`
  const wide = render([
    { kind: 'value', sql: sql`CASE WHEN ${fits} THEN NULL${asked} ${renderExpr(state, call.arguments[0]!)} END` },
  ])
  // DuckDB plans each mention of either sum again.
  return sql`coalesce(CAST(${narrow} + ${wide} AS ${type}), ${narrow}, ${wide})`
}

function ofArguments(state: RenderState, distinct: boolean, order: readonly ExprSortKey[]): CallClauses {
  // A constant has no effect on the order, and DuckDB rejects a bare literal there.
  const orderBy = order.filter(({ value }) => !isConstantKey(value))
  return { distinct, ...(orderBy.length === 0 ? {} : { orderBy: renderSort(state, orderBy) }) }
}

function aggregated(state: RenderState, call: AggregateExpr | WindowExpr): readonly RenderArgument[] {
  return call.arguments.map((argument): RenderArgument => {
    const rendered = renderArgument(state, argument)
    const byKey = call.distinct && call.function.kind === 'aggregate' && call.function.duplicates === 'key'
    if (byKey && rendered.kind === 'value') {
      return { kind: 'value', sql: comparisonKey(argument.type, rendered.sql, state.names) }
    }
    return rendered
  })
}

/** Whether DISTINCT of a call is implemented by marking the first row of equal values. */
export function needsMark({ distinct, function: called, arguments: values }: AggregateExpr | WindowExpr): boolean {
  if (!distinct || called.kind !== 'aggregate') return false
  return (
    called.duplicates === 'marked' ||
    (called.duplicates === 'engine' && values.some(({ type }) => needsComparisonKey(type)))
  )
}

export function renderWindow(state: RenderState, call: WindowExpr): Sql {
  if (needsMark(call)) {
    throw new EngineError('NOT_SUPPORTED', `DISTINCT in ${call.function.name} is not supported over a window`)
  }
  const partition = call.partitionBy.map((expr) => comparisonKey(expr.type, renderExpr(state, expr), state.names))
  const { frame, orderBy } = call
  // DuckDB returns a negative count for a frame that starts after its end.
  const countsRows = call.function.name === 'count' && call.arguments.length === 0
  const maybeNegative = countsRows && frame?.start.value !== undefined && frame.end.value !== undefined
  const render = (order: Sql, frameText: Sql): Sql => {
    const text = call.function.render({
      args: aggregated(state, call),
      session: state.session,
      names: state.names,
      clauses: {
        ...ofArguments(state, call.distinct, call.argumentOrder),
        ...(call.filter === undefined ? {} : { filter: renderExpr(state, call.filter) }),
        over: joinedClauses([
          partition.length === 0 ? EMPTY : sql`PARTITION BY ${joined(partition, ', ')}`,
          isEmpty(order) ? EMPTY : sql`ORDER BY ${order}`,
          frameText,
        ]),
        ignoreNulls: call.ignoreNulls,
      },
    })
    return maybeNegative ? sql`greatest(${text}, 0)` : text
  }
  const [first] = orderBy
  if (frame !== undefined && first !== undefined && isTimeFrame(frame, first.value.type)) {
    return overTimes(state, frame, first, render)
  }
  // DuckDB accepts distance frames over one key only, and sorts NaN before all numbers if NULLs are first. In a bounded
  // frame, NULLs see only each other, so that they may as well be last.
  const byDistance = frame?.type === 'RANGE' && (frame.start.value ?? frame.end.value) !== undefined
  const bounded = !frame?.start.type.startsWith('UNBOUNDED') && !frame?.end.type.startsWith('UNBOUNDED')
  const apart = byDistance && bounded && first?.nullsFirst === true && isFloating(first.value.type)
  if (apart) partition.push(sql`(${renderExpr(state, first.value)} IS NULL)`)
  const order =
    first === undefined
      ? EMPTY
      : byDistance
        ? renderOneKey(state, apart ? { ...first, nullsFirst: false } : first)
        : renderSort(state, orderBy)
  return render(order, frame === undefined ? EMPTY : renderFrame(state, frame, orderBy))
}

function renderOneKey(state: RenderState, { value, descending, nullsFirst }: ExprSortKey): Sql {
  const key = comparisonKey(value.type, renderExpr(state, value), state.names)
  return inOrder(key, { descending, nullsFirst })
}

function inOrder(key: Sql, { descending, nullsFirst }: Pick<ExprSortKey, 'descending' | 'nullsFirst'>): Sql {
  return sql`${key} ${code(descending ? 'DESC' : 'ASC')} NULLS ${code(nullsFirst ? 'FIRST' : 'LAST')}`
}

/** A window over times: one window for each kind of frame; each row picks its own. */
function overTimes(
  state: RenderState,
  { start, end }: BoundFrame,
  { value, descending, nullsFirst }: ExprSortKey,
  render: (order: Sql, frame: Sql) => Sql,
): Sql {
  const { type } = value
  const text = comparisonKey(type, renderExpr(state, value), state.names)
  const key = type.kind === 'time' && !isFine(type) ? sql`epoch_us(${text})` : text
  const day = dayLength(type)
  const endOf = ({ type: which, value: offset }: FrameEnd): TimeFrame['start'] => ({
    type: which,
    offset: offset && sql`(${frameOffset('RANGE', offset, renderExpr(state, offset), type)} % ${integer(day)})`,
  })
  const order = inOrder(key, { descending, nullsFirst })
  const frames = timeFrames({ key, descending, start: endOf(start), end: endOf(end) }, day)
  const branches = frames.map(({ when, frame }) =>
    when === undefined ? sql`ELSE ${render(order, frame)}` : sql`WHEN ${when} THEN ${render(order, frame)}`,
  )
  return sql`CASE ${joined(branches, ' ')} END`
}

function renderFrame(state: RenderState, { type, start, end }: BoundFrame, orderBy: readonly ExprSortKey[]): Sql {
  const [from, to] = [renderFrameEnd(state, type, start, orderBy), renderFrameEnd(state, type, end, orderBy)]
  return sql`${code(type)} BETWEEN ${from} AND ${to}`
}

function renderFrameEnd(
  state: RenderState,
  type: BoundFrame['type'],
  { type: which, value }: FrameEnd,
  orderBy: readonly ExprSortKey[],
): Sql {
  const end = FRAME_BOUNDS[which]
  if (value === undefined) return end
  return sql`${frameOffset(type, value, renderExpr(state, value), orderBy[0]?.value.type)} ${end}`
}
