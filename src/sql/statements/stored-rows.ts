import type { QueryAnalysis } from '../analyzer/analyze.ts'
import { columnOf, constantOf, storeAs } from '../analyzer/build.ts'
import type { SqlType } from '../types/sql-type.ts'

/** A column of the table to which rows are written. */
export interface TargetColumn {
  readonly name: string
  readonly type: SqlType
  /** The position of its value among the query's columns; undefined for NULL. */
  readonly source: number | undefined
}

/** Converts a query to the rows of a table: the columns are in the table's order and converted like in INSERT. */
export function storedRows(analysis: QueryAnalysis, targets: readonly TargetColumn[]): QueryAnalysis {
  const visible = analysis.columns.filter((column) => column.hidden !== true)
  const columns = targets.map(({ type, source }) => {
    const from = source === undefined ? undefined : visible[source]!
    const expression = from === undefined ? constantOf(type, null) : storeAs(columnOf(from.column, from.type), type)
    return { id: analysis.ids.next++, expression }
  })
  return {
    ...analysis,
    node: { kind: 'project', input: analysis.node, columns },
    columns: targets.map(({ name, type }, i) => ({ name, type, column: columns[i]!.id })),
    ordered: false,
  }
}
