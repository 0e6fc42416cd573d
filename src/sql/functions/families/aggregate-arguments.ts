import type { Sql } from '../../../duckdb/text/sql.ts'
import { comparisonKey } from '../comparison.ts'
import type { RenderContext } from '../rendering.ts'

/** The comparison key of an argument: the same instant in two zones is one value. */
export function argumentKey(context: RenderContext, index: number): Sql {
  return comparisonKey(context.types[index]!, context.value(index), context.names)
}

/** A parameter of an aggregate: one value per group, even if it is written as an expression over rows. */
export function groupParameter(context: RenderContext, index: number): Sql {
  return context.constant(index) === undefined
    ? context.fill`any_value(${context.value(index)})$F`
    : context.value(index)
}
