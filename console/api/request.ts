/** The server refused a request: its problem document's detail is the message. */
export class RequestRefused extends Error {
  readonly status: number

  constructor(status: number, detail: string) {
    super(detail)
    this.name = 'RequestRefused'
    this.status = status
  }
}

/**
 * Sends a request to this server and returns its answer. Goes to the log-in page when the session is over.
 * @throws RequestRefused for any status that is not a success; TypeError if the server cannot be reached
 */
export async function send(path: string, options?: RequestInit): Promise<Response> {
  const headers = new Headers(options?.headers)
  if (!headers.has('accept')) headers.set('accept', 'application/json')
  const answer = await fetch(path, { ...options, headers }).catch((error: unknown) => {
    // Browsers have texts of their own for it, such as "Failed to fetch".
    throw error instanceof TypeError ? new TypeError('The server cannot be reached') : error
  })
  if (answer.status === 401) await logInAgain()
  if (!answer.ok) throw new RequestRefused(answer.status, await detailOf(answer))
  return answer
}

/** Reads a JSON body. `T` is a type of `src/protocol/info/schemas/query.ts`; tests of the server check its answers. */
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await send(path, signal ? { signal } : undefined)
  return (await answer.json()) as T
}

/** The address of a query's resource. */
export function queryPath(queryId: string): string {
  return `/v1/query/${encodeURIComponent(queryId)}`
}

async function detailOf(answer: Response): Promise<string> {
  const problem: unknown = await answer.json().catch(() => undefined)
  if (typeof problem === 'object' && problem !== null && 'detail' in problem && typeof problem.detail === 'string')
    return problem.detail
  return `The server answered with status ${answer.status}`
}

/**
 * Goes to the log-in page, which leads back to the present page, if the session is over. Servers also answer 401 to acts
 * that need another credential than a session, such as the key of the cluster: those are problems of the page.
 */
async function logInAgain(): Promise<void> {
  const session = await fetch('/ui/session').catch(() => undefined)
  if (session?.status === 401)
    location.assign(`/ui/log-in?to=${encodeURIComponent(location.pathname + location.search)}`)
}
