import type { QueryAnalysis } from './analyzer/analyze.ts'
import { lineageOf } from './analyzer/lineage.ts'
import type { BoundQuery, Lineage, ResultColumn } from './front-end.ts'
import type { SessionContext } from './session.ts'
import type { SqlType } from './types/sql-type.ts'
import { typeSignature, wireTypeText, type WireOptions } from './types/type-signature.ts'

/** A query that makes rows: what its reader sees of them, and its tree. */
export interface BoundRows {
  readonly columns: readonly ResultColumn[]
  readonly query: BoundQuery
  readonly lineage: Lineage
}

/**
 * The visible columns of an analyzed query, with its tree.
 * @param session the session of the query
 * @param lineage replaces the query's own lineage if that reveals too much
 */
export function boundRows(
  analysis: QueryAnalysis,
  session: SessionContext,
  lineage: Lineage = lineageOf(analysis),
): BoundRows {
  const { node, columns, ordered, sources, ofRules, views } = analysis
  const options = wireOptions(session)
  const visible = columns.filter((column) => column.hidden !== true)
  // Columns of the same type share one signature: a thread sends shared objects once, and the event loop reads them once.
  const signatures = new Map<string, unknown>()
  return {
    columns: visible.map(({ name, type }, i) => {
      const text = wireTypeText(type, options)
      if (!signatures.has(text)) signatures.set(text, typeSignature(type, options))
      return {
        name: name ?? `_col${i}`,
        type: text,
        typeSignature: signatures.get(text),
        lineage: lineage.columns[i]!.map(({ source }) => source),
      }
    }),
    query: { node, columns: visible, ordered, sources, ofRules, views, session },
    lineage,
  }
}

/** A result column that no query computes. */
export function resultColumn(name: string, type: SqlType, session: SessionContext): ResultColumn {
  const options = wireOptions(session)
  return { name, type: wireTypeText(type, options), typeSignature: typeSignature(type, options), lineage: [] }
}

/** The wire format that the client of a session understands. */
export function wireOptions(session: SessionContext): WireOptions {
  return {
    parametricDatetime: session.clientCapabilities.includes('PARAMETRIC_DATETIME'),
    prestoFamily: session.headerFamily === 'Presto',
  }
}
