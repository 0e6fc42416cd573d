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
  // Looked at where rows are: an answer may have many.
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
  /** Default: `X-Engine-`; `X-Trino-` is understood by Trino too. */
  readonly prefix?: 'X-Engine-' | 'X-Trino-'
  readonly signal: AbortSignal
}

/** An answer, and its text as it was sent. */
export interface SentAnswer extends ReadAnswer {
  readonly text: string
}

/** No answer of a server is longer: Quipu's and Trino's have some 16 MB. */
const MOST_BYTES = 256 * 1024 * 1024

/** How long a server that does not answer is asked again: as long as its supervisor may take to replace it. */
const PATIENCE_MS = 30_000

/**
 * Runs one statement and gives every answer of the server in turn. Leaving the loop early cancels the statement.
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
    // Left in the middle, by an error or by the caller: nobody will ask again.
    if (answer.nextUri !== undefined) {
      const last = { method: 'DELETE', headers: prefixed, signal: AbortSignal.timeout(2_000) }
      await ask(server, answer.nextUri, last).catch(() => {})
    }
  }
}

/** A GET may be repeated: the same address gives the same page. So connections that end midway are tried again. */
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

/** The server answered, but not with a statement. */
export class RefusedError extends QuipuError {
  readonly retry = 'never'
  /** Of its answer; 200 for one that nobody understands; undefined where it was not asked. */
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
    if (error instanceof AnswerTooLarge) throw new RefusedError(200, `${origin} answered too much: ${error.message}`)
    throw new Error(`Cannot reach ${origin}: ${error.message}`)
  })
  if (status < 200 || status >= 300) throw new RefusedError(status, `The server answered ${status}: ${reasonOf(text)}`)
  const answer = readAnswerSchema.safeParse(parseJson(text))
  if (!answer.success) throw new RefusedError(200, `What ${origin} answered is no answer to a statement`)
  return { ...answer.data, text }
}

function credentials(server: CalledServer, url: string): Readonly<Record<string, string>> {
  try {
    return server.credentialsFor(url)
  } catch (error) {
    throw new RefusedError(undefined, (error as Error).message)
  }
}

/** What a server says of a refusal. */
export function reasonOf(body: string): string {
  try {
    const problem = JSON.parse(body) as { detail?: string; title?: string }
    return problem.detail ?? problem.title ?? body
  } catch {
    return body.trim().split('\n')[0] ?? ''
  }
}
