import { askServer, type ServerQuestion } from '../shared/http-client.ts'
import { QuipuError } from '../shared/quipu-error.ts'
import type { CalledServer } from './called-server.ts'

/** The part of a statement's answer that this client reads. */
export interface ReadAnswer {
  readonly id: string
  readonly nextUri?: string
  readonly columns?: readonly { readonly name: string; readonly type: string }[]
  readonly data?: readonly (readonly unknown[])[]
  readonly updateType?: string
  readonly updateCount?: number
  readonly error?: {
    readonly message: string
    readonly errorName: string
    readonly errorLocation?: { readonly lineNumber: number; readonly columnNumber: number }
  }
  readonly stats: {
    readonly state: string
    readonly totalSplits?: number
    readonly completedSplits?: number
    readonly processedRows?: number
    readonly elapsedTimeMillis?: number
  }
}

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
class RefusedError extends QuipuError {
  readonly retry = 'never'
}

async function ask(server: CalledServer, url: string, question: ServerQuestion): Promise<SentAnswer> {
  const { origin, pathname, search } = new URL(url)
  const headers = { ...question.headers, ...credentials(server, url) }
  const { status, text } = await askServer(server.http, origin, `${pathname}${search}`, { ...question, headers }).catch(
    (error: Error) => {
      if (question.signal?.aborted) throw error
      throw new Error(`Cannot reach ${origin}: ${error.message}`)
    },
  )
  if (status >= 200 && status < 300) return { ...(JSON.parse(text) as ReadAnswer), text }
  throw new RefusedError(`The server answered ${status}: ${reasonOf(text)}`)
}

function credentials(server: CalledServer, url: string): Readonly<Record<string, string>> {
  try {
    return server.credentialsFor(url)
  } catch (error) {
    throw new RefusedError((error as Error).message)
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
