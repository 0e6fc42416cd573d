import type { AggregateExpr, AggregateNode, ColumnId } from '../analyzer/tree.ts'
import { comparisonKey } from '../functions/comparison.ts'
import { integer, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { neededOutputs, queryBlock, selectText, type Block } from './block.ts'
import { needsMark } from './render-aggregate.ts'
import { renderExpr } from './render-expression.ts'
import type { Output, RenderState } from './render-state.ts'

/** Which rows are the first of equal ones in the groups of a set. */
export interface SetMark {
  /** Indexes into the keys of the aggregation. */
  readonly set: readonly number[]
  readonly isFirst: Sql
}

/** The input, with a column a DISTINCT aggregate and a grouping set that says which rows are the first of equal ones in their group. */
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

/** An aggregate over the rows that are marked: of several sets, over those of the set that a group is of. */
export function overMarked(marks: readonly SetMark[], keys: readonly Sql[], aggregate: (isFirst: Sql) => Sql): Sql {
  const [only, ...others] = marks
  if (others.length === 0) return aggregate(only!.isFirst)
  const branches = marks.map(({ set, isFirst }) => {
    // As GROUPING tells it: a bit for each key that is not grouped by, the first key's the highest.
    const absent = keys.reduce((bits, _, index) => bits * 2 + (set.includes(index) ? 0 : 1), 0)
    return sql`WHEN ${integer(absent)} THEN ${aggregate(isFirst)}`
  })
  return sql`CASE grouping(${joined(keys, ', ')}) ${joined(branches, ' ')} END`
}

function differentSets(sets: AggregateNode['sets'] & {}): readonly (readonly number[])[] {
  const byKeys = sets.map((set) => [[...new Set(set)].toSorted((a, b) => a - b).join(' '), set] as const)
  return [...new Map(byKeys).values()]
}

/** Of a row: the values that make it another one for DISTINCT. */
function distinctKeys(state: RenderState, call: AggregateExpr): readonly Sql[] {
  const keys = call.arguments
    .filter(({ kind }) => kind !== 'lambda')
    .map((argument) => comparisonKey(argument.type, renderExpr(state, argument), state.names))
  return call.filter === undefined ? keys : [renderExpr(state, call.filter), ...keys]
}
