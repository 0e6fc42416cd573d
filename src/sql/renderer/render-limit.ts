import { needsComparisonKey, sortItems } from '../functions/comparison.ts'
import type { LimitNode, SortKey } from '../analyzer/tree.ts'
import { digits, EMPTY, integer, isEmpty, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { clauses, neededOutputs, opened, queryBlock, selectText, wrapped, type Block, type SortText } from './block.ts'
import { columnName, type RenderState } from './render-state.ts'

export function sortText(state: RenderState, keys: readonly SortKey[], text: SortText): readonly Sql[] {
  return keys.flatMap(({ column, type, descending, nullsFirst }) => {
    const alone = !needsComparisonKey(type) && !(nullsFirst && (type.kind === 'double' || type.kind === 'real'))
    return sortItems(type, text(column, alone), !descending, nullsFirst, state.names)
  })
}

export function renderLimit(state: RenderState, node: LimitNode, inner: Block): Block {
  const { offset, ties } = node
  // If the sort has only constant keys, all rows tie with the first row.
  const count = ties?.length === 0 ? undefined : node.count
  if (ties !== undefined && ties.length > 0) {
    const block = opened(state, inner.orderBy === undefined ? inner : { ...inner, orderBy: undefined })
    const order = joined(sortText(state, ties, columnName), ', ')
    const rank = state.names.fresh()
    const number = state.names.fresh()
    const outputs = neededOutputs(state, block)
    const text = selectText(
      {
        ...block,
        columns: new Map([
          ...block.columns,
          [-1, sql`rank() OVER (ORDER BY ${order})`],
          [-2, sql`row_number() OVER (ORDER BY ${order})`],
        ]),
      },
      [...outputs, { column: -1, name: rank }, { column: -2, name: number }],
    )
    // With OFFSET, ranks still count from the first row: rows that tie with skipped rows keep their rank.
    const skip = BigInt(offset ?? '0')
    const last = skip + BigInt(count ?? '0')
    const where = [sql`${number} > ${integer(skip)}`, sql`${rank} <= ${integer(last)}`]
    return {
      ...queryBlock(
        text,
        outputs.map((output) => output.column),
      ),
      where,
      orderBy: (column) => sortText(state, ties, column),
    }
  }
  const block = isEmpty(inner.limit) ? inner : wrapped(state, inner)
  const limit = clauses([
    count === undefined ? EMPTY : sql`LIMIT ${digits(count)}`,
    offset === undefined ? EMPTY : sql`OFFSET ${digits(offset)}`,
  ])
  return { ...block, limit }
}
