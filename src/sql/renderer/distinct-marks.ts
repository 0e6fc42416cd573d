import type { AggregateExpr, AggregateNode, ColumnId } from '../analyzer/tree.ts'
import { comparisonKey } from '../functions/comparison.ts'
import { integer, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { neededOutputs, queryBlock, selectText, type Block } from './block.ts'
import { needsMark } from './render-aggregate.ts'
import { renderExpr } from './render-expression.ts'
import type { Output, RenderState } from './render-state.ts'

/** A mark of the rows that are the first of equal rows in the groups of a grouping set. */
export interface SetMark {
  /** Indexes into the keys of the aggregation. */
  readonly set: readonly number[]
  readonly isFirst: Sql
}

/** Adds a column for each DISTINCT aggregate and grouping set that marks the first of equal rows in each group. */
export function withMarks(
  state: RenderState,
  node: AggregateNode,
  block: Block,
  keys: readonly Sql[],
): { readonly block: Block; readonly marks: ReadonlyMap<ColumnId, readonly SetMark[]> } {
  const marked = node.aggregates.filter(({ id, call }) => state.needed.has(id) && needsMark(call))
  if (marked.length === 0) return { block, marks: new Map() }
  const sets = differentSets(node.sets ?? [keys.map((_, index) => index)])
  const outputs = neededOutputs(state, block)
  const calculated = new Map(block.columns)
  const added: Output[] = []
  const marks = new Map<ColumnId, readonly SetMark[]>()
  for (const { id, call } of marked) {
    const ofCall = sets.map((set): SetMark => {
      const output = { column: -1 - added.length, name: state.names.fresh() }
      const partition = joined([...set.map((index) => keys[index]!), ...distinctKeys(state, call)], ', ')
      calculated.set(output.column, sql`(row_number() OVER (PARTITION BY ${partition}) = 1)`)
      added.push(output)
      return { set, isFirst: output.name }
    })
    marks.set(id, ofCall)
  }
  const text = selectText({ ...block, columns: calculated, computed: true }, [...outputs, ...added])
  return {
    block: queryBlock(
      text,
      outputs.map((output) => output.column),
    ),
    marks,
  }
}

/** An aggregate over marked rows; with several grouping sets, the marks of the group's own set apply. */
export function overMarked(marks: readonly SetMark[], keys: readonly Sql[], aggregate: (isFirst: Sql) => Sql): Sql {
  const [only, ...others] = marks
  if (others.length === 0) return aggregate(only!.isFirst)
  const branches = marks.map(({ set, isFirst }) => {
    // Same as GROUPING: one bit for each key outside the set, the first key's bit highest.
    const absent = keys.reduce((bits, _, index) => bits * 2 + (set.includes(index) ? 0 : 1), 0)
    return sql`WHEN ${integer(absent)} THEN ${aggregate(isFirst)}`
  })
  return sql`CASE grouping(${joined(keys, ', ')}) ${joined(branches, ' ')} END`
}

function differentSets(sets: AggregateNode['sets'] & {}): readonly (readonly number[])[] {
  const byKeys = sets.map((set) => [[...new Set(set)].toSorted((a, b) => a - b).join(' '), set] as const)
  return [...new Map(byKeys).values()]
}

/** The values by which DISTINCT distinguishes rows. */
function distinctKeys(state: RenderState, call: AggregateExpr): readonly Sql[] {
  const keys = call.arguments
    .filter(({ kind }) => kind !== 'lambda')
    .map((argument) => comparisonKey(argument.type, renderExpr(state, argument), state.names))
  return call.filter === undefined ? keys : [renderExpr(state, call.filter), ...keys]
}
