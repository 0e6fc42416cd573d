import { QuipuError } from '../shared/quipu-error.ts'

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
  readonly server: string
  readonly sql: string
  /** `X-Engine-*` headers without their prefix: `{ User: 'ada', Catalog: 'tpch' }`. */
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** How long a server that does not answer is asked again: as long as its supervisor may take to replace it. */
const PATIENCE_MS = 30_000

/**
 * Runs one statement and gives every answer of the server in turn. Leaving the loop early cancels the statement.
 * @throws Error with one line when the server cannot be reached or refuses the request
 */
export async function* runStatement(request: StatementRequest): AsyncGenerator<ReadAnswer> {
  const { server, sql, headers, signal } = request
  const prefixed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [`X-Engine-${name}`, value]))
  let answer = await ask(new URL('/v1/statement', server).href, {
    method: 'POST',
    body: sql,
    headers: prefixed,
    signal,
  })
  try {
    for (;;) {
      yield answer
      if (answer.nextUri === undefined) return
      answer = await repeat(answer.nextUri, { headers: prefixed, signal })
    }
  } finally {
    // Left in the middle, by an error or by the caller: nobody will ask again.
    if (answer.nextUri !== undefined) {
      await fetch(answer.nextUri, { method: 'DELETE', headers: prefixed, signal: AbortSignal.timeout(2_000) }).catch(
        () => {},
      )
    }
  }
}

/** A GET may be repeated: the same address gives the same page. So connections that end midway are tried again. */
async function repeat(url: string, init: RequestInit): Promise<ReadAnswer> {
  const until = performance.now() + PATIENCE_MS
  for (let pauseMs = 50; ; pauseMs = Math.min(pauseMs * 2, 1_000)) {
    try {
      return await ask(url, init)
    } catch (error) {
      if (error instanceof RefusedError || init.signal?.aborted || performance.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}

/** The server answered, but not with a statement. */
class RefusedError extends QuipuError {
  readonly retry = 'never'
}

async function ask(url: string, init: RequestInit): Promise<ReadAnswer> {
  let response: Response
  let body: string
  try {
    response = await fetch(url, init)
    body = await response.text()
  } catch (error) {
    if (init.signal?.aborted) throw error
    const cause = (error as Error).cause
    throw new Error(`Cannot reach ${new URL(url).origin}: ${cause instanceof Error ? cause.message : String(error)}`)
  }
  if (response.ok) return JSON.parse(body) as ReadAnswer
  throw new RefusedError(`The server answered ${response.status}: ${reasonOf(body)}`)
}

function reasonOf(body: string): string {
  try {
    const problem = JSON.parse(body) as { detail?: string; title?: string }
    return problem.detail ?? problem.title ?? body
  } catch {
    return body.trim().split('\n')[0] ?? ''
  }
}
