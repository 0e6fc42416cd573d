import type { ScanQuestion } from '../../connectors/spi/scan-question.ts'
import type { Lineage, RenderedQuery, ResultColumn, TableRead } from '../front-end.ts'
import type { SessionContext } from '../session.ts'
import { requireZone } from '../analyzer/datetime.ts'
import type { QueryAnalysis } from '../analyzer/analyze.ts'
import { lineageOf } from '../analyzer/lineage.ts'
import type { ColumnId, ScanNode } from '../analyzer/tree.ts'
import { plainName, toText } from '../../duckdb/text/sql.ts'
import type { SqlType } from '../types/sql-type.ts'
import { typeSignature, wireTypeText, type WireOptions } from '../types/type-signature.ts'
import { wireEncoding } from '../types/wire-encoding.ts'
import { literalRow } from './literal-row.ts'
import { askedColumns, neededColumns } from '../analyzer/needed-columns.ts'
import { outline } from './outline.ts'
import { renderQuery, renderTop } from './render-relation.ts'
import { newRenderState, type RenderState } from './render-state.ts'
import { scanConditions, type ScanHints } from './scan-conditions.ts'
import { withQuestions } from './scan-questions.ts'
import { queryShape } from './shape.ts'

export interface Rendered {
  readonly query: RenderedQuery
  readonly columns: readonly ResultColumn[]
  readonly reads: readonly TableRead[]
  readonly lineage: Lineage
}

/**
 * Renders an analyzed query as one DuckDB SELECT, with its properties.
 * @param lineage replaces the query's own lineage if that reveals too much
 */
export function renderAnalysis(
  analysis: QueryAnalysis,
  session: SessionContext,
  lineage: Lineage = lineageOf(analysis),
): Rendered {
  const options = wireOptions(session)
  const columns = analysis.columns.filter((column) => column.hidden !== true)
  const zone = requireZone(session.timeZone)
  const node = withQuestions(analysis.node, { zone, startTimeMillis: session.startTimeMillis })
  const results = columns.map(({ column }) => column)
  const needed = neededColumns(node, results)
  const asked = askedColumns(node, results)
  const state = newRenderState({
    session: {
      timeZone: zone,
      startTimeMillis: session.startTimeMillis,
      user: session.user,
      groups: session.groups,
      catalog: session.catalog,
      schema: session.schema,
    },
    needed,
    renderQuery,
  })
  const outputs = columns.map(({ column }, i) => ({ column, name: plainName(`c${i}`) }))
  const sql = toText(renderTop(state, node, outputs))
  const shape = queryShape(node, sql)
  const hints = scanConditions(
    node,
    state.scans.map(({ scan }) => scan),
    { zone, startTimeMillis: session.startTimeMillis },
  )
  return {
    query: {
      sql,
      scans: state.scans.map(({ scan, columns: read }) => ({
        ...scanOf(scan, read, hints.get(scan)),
        ...(scan.columns.some(({ id }) => analysis.ofRules.has(id)) && { ofRule: true }),
      })),
      wire: columns.map(({ type }, i) => toText(wireEncoding(outputs[i]!.name, type, options))),
      ...shape,
      ordered: analysis.ordered,
      outline: outline(node, columns, {
        sourceOf: (column) => analysis.sources.get(column),
        asked,
        constraintOf: (scan) => hints.get(scan)?.partitions,
      }),
      literalRow: literalRow(node, columns),
    },
    columns: columns.map(({ name, type }, i) => ({
      name: name ?? `_col${i}`,
      type: wireTypeText(type, options),
      typeSignature: typeSignature(type, options),
      lineage: lineage.columns[i]!.map(({ source }) => source),
    })),
    reads: reads(state, asked),
    lineage,
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

function wireOptions(session: SessionContext): WireOptions {
  return {
    parametricDatetime: session.clientCapabilities.includes('PARAMETRIC_DATETIME'),
    prestoFamily: session.headerFamily === 'Presto',
  }
}

/** A result column that no query computes. */
export function resultColumn(name: string, type: SqlType, session: SessionContext): ResultColumn {
  const options = wireOptions(session)
  return { name, type: wireTypeText(type, options), typeSignature: typeSignature(type, options), lineage: [] }
}

function questionedColumns({ terms, groups }: ScanQuestion): string[] {
  return [...terms, ...(groups?.keys ?? []), ...(groups?.measures ?? [])].flatMap(({ column }) => column ?? [])
}

/** Each table once, with all columns that the statement itself reads. */
function reads(state: RenderState, asked: ReadonlySet<ColumnId>): readonly TableRead[] {
  const tables = new Map<string, { readonly read: TableRead; readonly columns: Set<string> }>()
  for (const { scan, columns } of state.scans) {
    const ofRules = scan.columns.filter(({ id }) => state.needed.has(id) && !asked.has(id)).map(({ name }) => name)
    const shown = columns.filter((column) => !ofRules.includes(column))
    const { catalog, schema, table, snapshot } = scan
    const key = JSON.stringify([catalog, schema, table])
    const known = tables.get(key) ?? {
      read: { catalog, schema, table, columns: [], ...(snapshot !== undefined && { snapshot }) },
      columns: new Set<string>(),
    }
    for (const column of scan.question?.groups ? questionedColumns(scan.question) : shown) known.columns.add(column)
    tables.set(key, known)
  }
  return [...tables.values()].map(({ read, columns }) => ({ ...read, columns: [...columns] }))
}
