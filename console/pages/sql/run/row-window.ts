import { readAgain, RETRIES_OF_RUN } from '../../../api/statement/read-rows.ts'
import type { Row } from '../../../api/statement/formats.ts'
import type { StatementSession } from '../../../api/statement/session.ts'
import type { StatementAnswer } from '../../../api/statement/statement-client.ts'

/** The most rows of a result that the page holds. */
export const MOST_ROWS = 1000

/** A position in a result: an answer, and the rows of it that were shown before. */
export interface RowCursor {
  /** Path of the answer. */
  readonly path: string
  readonly skip: number
}

/**
 * Reads the rows from a position on, at most a thousand. An answer with more rows is read again for the next thousand:
 * the server keeps it until a later answer is read.
 * @param onAnswer called with each answer and the rows so far, also while the statement has none yet
 * @returns the position behind the rows; undefined at the end of the result
 */
export async function readWindow(
  cursor: RowCursor,
  session: StatementSession,
  signal: AbortSignal,
  onAnswer: (answer: StatementAnswer, rows: readonly Row[]) => void,
): Promise<RowCursor | undefined> {
  const rows: Row[] = []
  let { path, skip } = cursor
  for (;;) {
    const answer = await readAgain(path, session, signal, RETRIES_OF_RUN)
    const taken = answer.rows.slice(skip, skip + MOST_ROWS - rows.length)
    rows.push(...taken)
    onAnswer(answer, [...rows])
    skip += taken.length
    if (skip < answer.rows.length) return { path, skip }
    if (answer.next === undefined) return undefined
    path = answer.next
    skip = 0
    if (rows.length >= MOST_ROWS) return { path, skip }
  }
}
