import type { QueryAnalysis } from '../analyzer/analyze.ts'
import { columnOf, constantOf, storeAs } from '../analyzer/build.ts'
import { notNull } from '../analyzer/not-null.ts'
import type { SqlType } from '../types/sql-type.ts'

/** A column of the table to which rows are written. */
export interface TargetColumn {
  readonly name: string
  readonly type: SqlType
  /** The position of its value among the query's columns; undefined for NULL. */
  readonly source: number | undefined
  /** Whether the column takes NULL. @default true */
  readonly nullable?: boolean
}

/** Converts a query to the rows of a table: the columns are in the table's order and converted like in INSERT. */
export function storedRows(analysis: QueryAnalysis, targets: readonly TargetColumn[]): QueryAnalysis {
  const visible = analysis.columns.filter((column) => column.hidden !== true)
  const columns = targets.map(({ name, type, source, nullable = true }) => {
    const from = source === undefined ? undefined : visible[source]!
    const value = from === undefined ? constantOf(type, null) : storeAs(columnOf(from.column, from.type), type)
    const expression = nullable ? value : notNull(analysis.ids.next++, name, value, 'CONSTRAINT_VIOLATION')
    return { id: analysis.ids.next++, expression }
  })
  return {
    ...analysis,
    node: { kind: 'project', input: analysis.node, columns },
    columns: targets.map(({ name, type }, i) => ({ name, type, column: columns[i]!.id })),
    ordered: false,
  }
}
