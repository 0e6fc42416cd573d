import type { QueryError, StatementStats } from '../../../src/protocol/info/schemas/statement.ts'
import { send } from '../request.ts'
import { parseExact, type Value } from './exact-json.ts'
import type { ResultColumn, Row } from './formats.ts'
import { changedSession, sessionHeaders, type StatementSession } from './session.ts'

/** One answer of the statement protocol. */
export interface StatementAnswer {
  readonly queryId: string
  readonly columns: readonly ResultColumn[] | undefined
  readonly rows: readonly Row[]
  readonly stats: StatementStats
  readonly error: QueryError | undefined
  readonly warnings: readonly string[]
  readonly updateType: string | undefined
  readonly updateCount: number | undefined
  /** Path of the next answer; undefined after the last. The same path gives the same rows until a later one is read. */
  readonly next: string | undefined
  /** The session for the next statement: USE and SET SESSION change it. */
  readonly session: StatementSession
}

/** Posts a statement. The server checks that the request comes from its own page, as for every act of the console. */
export async function postStatement(
  sql: string,
  session: StatementSession,
  signal?: AbortSignal,
): Promise<StatementAnswer> {
  const answer = await send('/v1/statement', {
    method: 'POST',
    body: sql,
    headers: sessionHeaders(session),
    ...(signal && { signal }),
  })
  return answerOf(answer, session)
}

/** Reads the next answer; the server waits up to a second for one. */
export async function readAnswer(
  path: string,
  session: StatementSession,
  signal?: AbortSignal,
): Promise<StatementAnswer> {
  return answerOf(await send(path, signal ? { signal } : {}), session)
}

/** Reports to the server that the user still reads the rows, so that the server keeps the rest of the result. */
export async function keepAlive(path: string): Promise<void> {
  await send(path, { method: 'HEAD' })
}

/** Ends a statement whose rows are no longer needed. */
export async function cancelStatement(path: string): Promise<void> {
  await send(path, { method: 'DELETE' })
}

interface SentAnswer {
  readonly id: string
  readonly nextUri?: string
  readonly columns?: readonly ResultColumn[]
  readonly data?: readonly (readonly Value[])[]
  readonly stats: StatementStats
  readonly error?: QueryError
  readonly warnings?: readonly { readonly message: string }[]
  readonly updateType?: string
  readonly updateCount?: number
}

async function answerOf(answer: Response, session: StatementSession): Promise<StatementAnswer> {
  const text = await answer.text()
  const sent = JSON.parse(text) as SentAnswer
  // Only the rows need exact numbers.
  const rows = sent.data === undefined ? [] : ((parseExact(text) as SentAnswer).data ?? [])
  return {
    queryId: sent.id,
    columns: sent.columns,
    rows,
    stats: sent.stats,
    error: sent.error,
    warnings: (sent.warnings ?? []).map(({ message }) => message),
    updateType: sent.updateType,
    updateCount: sent.updateCount,
    next: sent.nextUri === undefined ? undefined : new URL(sent.nextUri).pathname,
    session: changedSession(session, answer.headers),
  }
}
