import type { BoundQuery } from '../front-end.ts'
import { requireZone } from '../analyzer/datetime.ts'
import type { ColumnId } from '../analyzer/tree.ts'
import { wireOptions } from '../bound-rows.ts'
import { plainName, toText } from '../../duckdb/text/sql.ts'
import { wireEncoding } from '../types/wire-encoding.ts'
import { renderQuery, renderTop } from './render-relation.ts'
import { newRenderState, type ReadScan } from './render-state.ts'

/** The text of a query for DuckDB. */
export interface QueryText {
  /** One SELECT. It reads `"$s0"`, `"$s1"` … and names its columns `c0` … */
  readonly sql: string
  /** The scans `"$s0"`, `"$s1"` …; a scan of the tree that is read in several places stands here as often. */
  readonly scans: readonly ReadScan[]
  /** The expression of each column for use inside `json_array(…)`, over `c0` …. */
  readonly wire: readonly string[]
}

/** @param needed the columns that are read to compute the result; all others are left out */
export function renderText({ node, columns, session }: BoundQuery, needed: ReadonlySet<ColumnId>): QueryText {
  const { startTimeMillis, user, groups, catalog, schema } = session
  const state = newRenderState({
    session: { timeZone: requireZone(session.timeZone), startTimeMillis, user, groups, catalog, schema },
    needed,
    renderQuery,
  })
  const outputs = columns.map(({ column }, i) => ({ column, name: plainName(`c${i}`) }))
  const sql = toText(renderTop(state, node, outputs))
  const options = wireOptions(session)
  const wire = columns.map(({ type }, i) => toText(wireEncoding(outputs[i]!.name, type, options)))
  return { sql, scans: state.scans, wire }
}
