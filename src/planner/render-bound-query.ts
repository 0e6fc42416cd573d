import { requireZone } from '../sql/analyzer/datetime.ts'
import { askedColumns, neededColumns } from '../sql/analyzer/needed-columns.ts'
import type { ScanNode } from '../sql/analyzer/tree.ts'
import type { BoundQuery } from '../sql/front-end.ts'
import { literalRow } from './literal-row.ts'
import { outline } from './outline.ts'
import { renderText } from '../sql/renderer/render.ts'
import { scanConditions, type ScanHints } from './pushdown/scan-conditions.ts'
import { withQuestions } from './pushdown/scan-questions.ts'
import { queryShape } from './shape.ts'
import type { RenderedQuery } from './planned-statement.ts'
import { readTables, readViews } from './objects-read.ts'

/**
 * Decides what the query asks its connectors and which columns it reads, and renders the result as one SELECT of
 * DuckDB.
 */
export function renderBoundQuery(bound: BoundQuery): RenderedQuery {
  const { columns, session, sources } = bound
  const times = { zone: requireZone(session.timeZone), startTimeMillis: session.startTimeMillis }
  const node = withQuestions(bound.node, times)
  const results = columns.map(({ column }) => column)
  const needed = neededColumns(node, results)
  const asked = askedColumns(node, results)
  const { sql, scans, wire } = renderText({ ...bound, node }, needed)
  const shape = queryShape(node, sql)
  const hints = scanConditions(
    node,
    scans.map(({ scan }) => scan),
    times,
  )
  return {
    sql,
    scans: scans.map(({ scan, columns: read }) => ({
      ...scanOf(scan, read, hints.get(scan)),
      ...(scan.columns.some(({ id }) => bound.ofRules.has(id)) && { ofRule: true }),
    })),
    reads: readTables(scans, needed, asked),
    views: readViews(bound, needed, asked),
    wire,
    ...shape,
    streams: shape.streams && !bound.wholeTable,
    ordered: bound.ordered,
    outline: outline(node, columns, {
      sourceOf: (column) => sources.get(column),
      asked,
      constraintOf: (scan) => hints.get(scan)?.partitions,
    }),
    literalRow: literalRow(node, columns),
  }
}

function scanOf(
  { catalog, schema, table, handle, question, rowIds }: ScanNode,
  columns: readonly string[],
  hints: ScanHints | undefined,
): RenderedQuery['scans'][number] {
  // A question already contains the conditions.
  const ids = rowIds && { rowIds: true as const }
  return { catalog, schema, table, handle, columns, ...(question ? { question } : hints), ...ids }
}
