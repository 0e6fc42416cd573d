import { answersOf } from '../../../api/statement/read-rows.ts'
import type { RowsFormat } from '../../../api/statement/formats.ts'
import type { StatementSession } from '../../../api/statement/session.ts'
import { saveFile } from '../../../parts/save-file.ts'

/**
 * Runs a statement again and saves all its rows with exact values. Each answer is written as it comes, so the page
 * never holds the whole result.
 */
export async function saveResult(
  sql: string,
  session: StatementSession,
  format: RowsFormat,
  signal: AbortSignal,
): Promise<void> {
  const parts: Blob[] = []
  let rows = 0
  let name = 'result'
  let isBegun = false
  for await (const answer of answersOf(sql, session, signal)) {
    name = answer.queryId
    if (!answer.columns) continue
    const head = isBegun ? '' : format.begin(answer.columns)
    isBegun = true
    parts.push(new Blob([head, ...answer.rows.map((row) => format.row(row, rows++))]))
  }
  parts.push(new Blob([isBegun ? format.end() : '']))
  saveFile(`${name}.${format.extension}`, new Blob(parts, { type: format.mediaType }))
}
