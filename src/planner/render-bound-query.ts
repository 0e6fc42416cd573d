import type { ScanQuestion } from '../connectors/spi/scan-question.ts'
import { requireZone } from '../sql/analyzer/datetime.ts'
import { askedColumns, neededColumns } from '../sql/analyzer/needed-columns.ts'
import type { ColumnId, ScanNode } from '../sql/analyzer/tree.ts'
import type { BoundQuery } from '../sql/front-end.ts'
import { literalRow } from './literal-row.ts'
import { outline } from './outline.ts'
import { renderText } from '../sql/renderer/render.ts'
import type { ReadScan } from '../sql/renderer/render-state.ts'
import { scanConditions, type ScanHints } from './pushdown/scan-conditions.ts'
import { withQuestions } from './pushdown/scan-questions.ts'
import { queryShape } from './shape.ts'
import type { RenderedQuery, TableRead } from './planned-statement.ts'

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
    reads: tablesRead(scans, needed, asked),
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

function questionedColumns({ terms, groups }: ScanQuestion): string[] {
  return [...terms, ...(groups?.keys ?? []), ...(groups?.measures ?? [])].flatMap(({ column }) => column ?? [])
}

/** Each table once, with all columns that the statement itself reads, and the snapshots of all versions. */
function tablesRead(
  scans: readonly ReadScan[],
  needed: ReadonlySet<ColumnId>,
  asked: ReadonlySet<ColumnId>,
): readonly TableRead[] {
  const tables = new Map<string, Omit<TableRead, 'columns' | 'snapshot'> & ReadParts>()
  for (const { scan, columns } of scans) {
    const ofRules = scan.columns.filter(({ id }) => needed.has(id) && !asked.has(id)).map(({ name }) => name)
    const shown = columns.filter((column) => !ofRules.includes(column))
    const { catalog, schema, table, snapshot } = scan
    const key = JSON.stringify([catalog, schema, table])
    const known = tables.get(key) ?? { catalog, schema, table, columns: new Set(), snapshots: new Set() }
    known.snapshots.add(snapshot)
    for (const column of scan.question?.groups ? questionedColumns(scan.question) : shown) known.columns.add(column)
    tables.set(key, known)
  }
  return [...tables.values()].map(({ columns, snapshots, ...name }) => ({
    ...name,
    columns: [...columns],
    ...(!snapshots.has(undefined) && { snapshot: [...snapshots].join(', ') }),
  }))
}

interface ReadParts {
  readonly columns: Set<string>
  readonly snapshots: Set<string | undefined>
}
