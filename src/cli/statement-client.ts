import { z } from 'zod'
import { AnswerTooLarge, askServer, type ServerQuestion } from '../shared/http-client.ts'
import { parseJson } from '../shared/parse-json.ts'
import { QuipuError } from '../shared/quipu-error.ts'
import type { CalledServer } from './called-server.ts'

const count = z.number().optional()
/** The part of a statement's answer that this client reads. */
const readAnswerSchema = z.object({
  id: z.string(),
  nextUri: z.url().optional(),
  columns: z.array(z.object({ name: z.string(), type: z.string() })).optional(),
  // Checked only as far as needed: an answer may have many rows.
  data: z
    .custom<readonly (readonly unknown[])[]>((data) => Array.isArray(data) && data.every(Array.isArray))
    .optional(),
  updateType: z.string().optional(),
  updateCount: count,
  error: z
    .object({
      message: z.string().default('without a message'),
      errorName: z.string().default('GENERIC_INTERNAL_ERROR'),
      errorLocation: z.object({ lineNumber: z.number(), columnNumber: z.number() }).optional(),
    })
    .optional(),
  stats: z.object({
    state: z.string(),
    totalSplits: count,
    completedSplits: count,
    processedRows: count,
    elapsedTimeMillis: count,
  }),
})
export type ReadAnswer = Readonly<z.infer<typeof readAnswerSchema>>

export interface StatementRequest {
  readonly server: CalledServer
  readonly sql: string
  /** Session headers without their prefix: `{ User: 'ada', Catalog: 'tpch' }`. */
  readonly headers: Readonly<Record<string, string>>
  /** `X-Trino-` is also understood by Trino. @default `X-Engine-` */
  readonly prefix?: 'X-Engine-' | 'X-Trino-'
  readonly signal: AbortSignal
}

/** An answer with its text as the server sent it. */
export interface SentAnswer extends ReadAnswer {
  readonly text: string
}

/** Longest answer that is accepted. Answers of Quipu and Trino have some 16 MB. */
const MOST_BYTES = 256 * 1024 * 1024

/** How long an unresponsive server is retried: as long as its supervisor may take to replace it. */
const PATIENCE_MS = 30_000

/**
 * Runs one statement and yields every answer of the server. Leaving the loop early cancels the statement.
 * @throws Error with one line when the server cannot be reached or refuses the request
 */
export async function* runStatement(request: StatementRequest): AsyncGenerator<SentAnswer> {
  const { server, sql, headers, prefix = 'X-Engine-', signal } = request
  const prefixed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, value]))
  let answer = await ask(server, new URL('/v1/statement', server.url).href, {
    method: 'POST',
    body: sql,
    headers: prefixed,
    signal,
  })
  try {
    for (;;) {
      yield answer
      if (answer.nextUri === undefined) return
      answer = await repeat(server, answer.nextUri, { headers: prefixed, signal })
    }
  } finally {
    // The loop ended early, by an error or by the caller, so no further page will be asked for.
    if (answer.nextUri !== undefined) {
      const last = { method: 'DELETE', headers: prefixed, signal: AbortSignal.timeout(2_000) }
      await ask(server, answer.nextUri, last).catch(() => {})
    }
  }
}

/** Repeats a GET when the connection breaks. That is safe: the same address gives the same page. */
async function repeat(server: CalledServer, url: string, question: ServerQuestion): Promise<SentAnswer> {
  const until = performance.now() + PATIENCE_MS
  for (let pauseMs = 50; ; pauseMs = Math.min(pauseMs * 2, 1_000)) {
    try {
      return await ask(server, url, question)
    } catch (error) {
      if (error instanceof RefusedError || question.signal?.aborted || performance.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}

/** The server answered, but with an error instead of a statement's answer. */
export class RefusedError extends QuipuError {
  readonly retry = 'never'
  /** The status of the answer; 200 if the answer cannot be understood; undefined if no request was sent. */
  readonly status: number | undefined

  constructor(status: number | undefined, message: string) {
    super(message)
    this.status = status
  }
}

async function ask(server: CalledServer, url: string, question: ServerQuestion): Promise<SentAnswer> {
  const { origin, pathname, search } = new URL(url)
  const headers = { ...question.headers, ...credentials(server, url) }
  const asked = { ...question, headers, mostBytes: MOST_BYTES }
  const { status, text } = await askServer(server.http, origin, `${pathname}${search}`, asked).catch((error: Error) => {
    if (question.signal?.aborted) throw error
    if (error instanceof AnswerTooLarge)
      throw new RefusedError(200, `The answer of ${origin} is too large: ${error.message}`)
    throw new Error(`Cannot reach ${origin}: ${error.message}`)
  })
  if (status < 200 || status >= 300) throw new RefusedError(status, `The server answered ${status}: ${reasonOf(text)}`)
  const answer = readAnswerSchema.safeParse(parseJson(text))
  if (!answer.success)
    throw new RefusedError(
      200,
      `The answer of ${origin} is not an answer to a statement: is it a Quipu or Trino server?`,
    )
  return { ...answer.data, text }
}

function credentials(server: CalledServer, url: string): Readonly<Record<string, string>> {
  try {
    return server.credentialsFor(url)
  } catch (error) {
    throw new RefusedError(undefined, (error as Error).message)
  }
}

/** The server's reason for a refusal. */
export function reasonOf(body: string): string {
  try {
    const problem = JSON.parse(body) as { detail?: string; title?: string }
    return problem.detail ?? problem.title ?? body
  } catch {
    return body.trim().split('\n')[0] ?? ''
  }
}
