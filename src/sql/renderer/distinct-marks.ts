import { EngineError } from '../../shared/engine-error.ts'
import type { AggregateExpr, AggregateNode, ColumnId } from '../analyzer/tree.ts'
import { comparisonKey } from '../functions/comparison.ts'
import { EMPTY, joined, sql, type Sql } from '../text/sql.ts'
import { neededOutputs, queryBlock, selectText, type Block } from './block.ts'
import { filteredArgument, needsMark, renderExpr } from './render-expression.ts'
import type { Output, RenderState } from './render-state.ts'

/** The input, with a column a DISTINCT aggregate that says which rows are the first of equal ones in their group. */
export function withMarks(
  state: RenderState,
  node: AggregateNode,
  block: Block,
  keys: readonly Sql[],
): { readonly block: Block; readonly marks: ReadonlyMap<ColumnId, Sql> } {
  const marked = node.aggregates.filter(({ id, call }) => state.needed.has(id) && needsMark(call))
  if (marked.length === 0) return { block, marks: new Map() }
  if (node.sets !== undefined && node.sets.length > 1) {
    const { name } = marked[0]!.call.function
    throw new EngineError('NOT_SUPPORTED', `DISTINCT in ${name} is not supported with several grouping sets`)
  }
  const grouping = node.sets?.[0]?.map((index) => keys[index]!) ?? keys
  const outputs = neededOutputs(state, block)
  const calculated = new Map(block.columns)
  const marks = new Map<ColumnId, Sql>()
  const added = marked.map(({ id, call }, i): Output => {
    const column = -1 - i
    const name = state.names.fresh()
    const partition = joined([...grouping, ...distinctKeys(state, call)], ', ')
    calculated.set(column, sql`(row_number() OVER (PARTITION BY ${partition}) = 1)`)
    marks.set(id, name)
    return { column, name }
  })
  const text = selectText({ ...block, columns: calculated, computed: true }, [...outputs, ...added])
  return {
    block: queryBlock(
      text,
      outputs.map((output) => output.column),
    ),
    marks,
  }
}

/** Of a row: the values that make it another one for DISTINCT. */
function distinctKeys(state: RenderState, call: AggregateExpr): readonly Sql[] {
  const keys = call.arguments
    .filter(({ kind }) => kind !== 'lambda')
    .map((argument) => {
      const rendered = filteredArgument(state, call, argument)
      return rendered.kind === 'lambda' ? EMPTY : comparisonKey(argument.type, rendered.sql, state.names)
    })
  return call.filter === undefined ? keys : [renderExpr(state, call.filter), ...keys]
}
