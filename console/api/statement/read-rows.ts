import { RequestRefused } from '../request.ts'
import type { Row } from './formats.ts'
import { sourceName, type StatementSession } from './session.ts'
import { cancelStatement, postStatement, readAnswer, type StatementAnswer } from './statement-client.ts'

/** A statement failed. */
export class StatementFailed extends Error {
  readonly error: NonNullable<StatementAnswer['error']>

  constructor(error: NonNullable<StatementAnswer['error']>) {
    super(`${error.errorName}: ${error.message}`)
    this.name = 'StatementFailed'
    this.error = error
  }
}

/** The most rows of a statement of the console itself. */
const MOST_ROWS = 10_000

/**
 * Reads the rows of a small statement.
 * @throws StatementFailed
 */
export async function readRows(
  sql: string,
  session: StatementSession,
  { source, signal }: { readonly source?: string; readonly signal?: AbortSignal } = {},
): Promise<readonly Row[]> {
  const rows: Row[] = []
  for await (const answer of answersOf(sql, { ...session, ...sourceName(source) }, signal)) {
    rows.push(...answer.rows)
    if (rows.length >= MOST_ROWS) break
  }
  return rows
}

/**
 * Runs a statement and gives each answer as it comes. Ends the statement if the caller stops before the last answer.
 * @throws StatementFailed
 */
export async function* answersOf(
  sql: string,
  session: StatementSession,
  signal?: AbortSignal,
): AsyncGenerator<StatementAnswer> {
  let answer = await postStatement(sql, session, signal)
  try {
    for (;;) {
      if (answer.error) throw new StatementFailed(answer.error)
      yield answer
      if (answer.next === undefined) return
      answer = await readAgain(answer.next, session, signal)
    }
  } finally {
    if (answer.next !== undefined) void cancelStatement(answer.next).catch(() => undefined)
  }
}

const RETRY_MS = 500
/** The console tries for ten seconds, because the page shows nothing else meanwhile. */
const RETRIES = 20
/** It tries for two minutes, like the clients of Trino: a server that starts again goes on with the statement. */
export const RETRIES_OF_RUN = 240

/** Reads an answer. If the server is away for a moment, reads again: the same path gives the same rows. */
export async function readAgain(
  path: string,
  session: StatementSession,
  signal?: AbortSignal,
  retries = RETRIES,
): Promise<StatementAnswer> {
  for (let failures = 0; ; failures++) {
    try {
      return await readAnswer(path, session, signal)
    } catch (error) {
      const isPassing = error instanceof RequestRefused ? error.status >= 502 : error instanceof TypeError
      if (!isPassing || failures >= retries || signal?.aborted) throw error
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

/** A name of several parts, each in quotes: `"a"."b"`. */
export function quotedName(...parts: readonly string[]): string {
  return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join('.')
}

/** A text as a literal of SQL. */
export function quotedText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
