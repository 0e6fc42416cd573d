import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A server that keeps Trino's protocol: a statement starts at its first GET, and page n is gone once n+1 is asked for. */
export interface FakeTrino {
  readonly url: string
  /** `dead`: cuts connections; `mute`: gives no answer; `wrong`: 503. Applies to every request. */
  is: 'ready' | 'starting' | 'dead' | 'mute' | 'wrong'
  /** The statements so far, in the order of their POSTs. */
  readonly statements: readonly FakeStatement[]
  /** Requests of its health so far. */
  readonly checks: number
  /** The result of a statement. @default one page with the row 1 */
  resultOf: (sql: string) => FakeResult
  /** Called before each request of the statement resource is answered. `cut`: the connection is closed instead. */
  before: (request: IncomingMessage, sql: string) => void | 'cut' | Promise<void | 'cut'>
  /** Forgets all statements, as a restart does. */
  restart(): void
  close(): Promise<void>
}

export interface FakeStatement {
  readonly id: string
  readonly sql: string
  readonly headers: IncomingHttpHeaders
  /** How often it was started. */
  starts: number
  state: 'POSTED' | 'RUNNING' | 'FINISHED' | 'CANCELED'
}

export interface FakeResult {
  readonly columns?: readonly { readonly name: string; readonly type: string }[]
  /** The number of answers with rows. @default 1 */
  readonly pages?: number
  /** The JSON array of the rows of an answer, in parts. */
  readonly rows?: (page: number) => Iterable<string>
  /** Members of the last answer. */
  readonly last?: Readonly<Record<string, unknown>>
  /** Whether the answers have a Content-Length. Otherwise they are chunked. */
  readonly hasLength?: boolean
}

interface Running extends FakeStatement {
  newest: number
}

const ADDRESS = /^\/v1\/statement\/(queued|executing)\/([^/]+)\/s\/(\d+)$/

export async function startFakeTrino(): Promise<FakeTrino> {
  const statements: Running[] = []
  let known = new Map<string, Running>()
  let checks = 0

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    const body = await text(request)
    if (url === '/v1/info') checks++
    if (fake.is === 'dead') return void response.destroy()
    if (fake.is === 'mute') return
    if (fake.is === 'wrong') return void response.writeHead(503).end()
    if (url === '/v1/info')
      return send(response, { nodeVersion: { version: '476' }, coordinator: true, starting: fake.is === 'starting' })
    // The gateway's own questions about tables. Without an answer it sends statements as they are.
    if (request.headers['x-trino-source'] === 'quipu') return void response.writeHead(403).end()
    const [, phase, id = '', token] = ADDRESS.exec(url) ?? []
    const statement = method === 'POST' ? post(request, body) : known.get(id)
    if (!statement) return void response.writeHead(404).end()
    if ((await fake.before(request, statement.sql)) === 'cut') return void response.destroy()
    if (method === 'DELETE') {
      statement.state = 'CANCELED'
      return void response.writeHead(204).end()
    }
    if (method === 'HEAD') return void response.writeHead(200).end()
    if (method === 'POST') {
      const starts = { error: { errorName: 'SERVER_STARTING_UP', errorCode: 1, errorType: 'INTERNAL_ERROR' } }
      const first = fake.is === 'starting' ? starts : { nextUri: uriOf(statement, 'queued', 1) }
      return send(response, { id: statement.id, ...first, stats: { state: 'QUEUED' } })
    }
    const number = phase === 'queued' ? 0 : Number(token) + 1
    if (number < statement.newest) return void response.writeHead(410).end()
    statement.newest = number
    answer(statement, number, response)
  }

  function post({ headers }: IncomingMessage, sql: string): Running {
    const id = `20261127_120000_${String(statements.length).padStart(5, '0')}_fake0`
    const statement: Running = { id, sql, headers, starts: 0, state: 'POSTED', newest: 0 }
    statements.push(statement)
    known.set(id, statement)
    return statement
  }

  /** @param number 0 for the first GET, which starts the statement; then the pages */
  function answer(statement: Running, number: number, response: ServerResponse): void {
    const { columns = [{ name: 'a', type: 'bigint' }], pages = 1, rows, last, hasLength } = fake.resultOf(statement.sql)
    const { id } = statement
    const isCanceled = statement.state === 'CANCELED'
    if (number === 0 && statement.state === 'POSTED') {
      statement.starts++
      statement.state = 'RUNNING'
    }
    if (isCanceled) {
      const error = { message: 'canceled', errorName: 'USER_CANCELED', errorCode: 3, errorType: 'USER_ERROR' }
      return send(response, { id, stats: { state: 'FAILED' }, error })
    }
    if (number > pages) {
      statement.state = 'FINISHED'
      return send(response, { id, columns, stats: { state: 'FINISHED' }, ...last })
    }
    const nextUri = uriOf(statement, 'executing', number)
    if (number === 0) return send(response, { id, nextUri, stats: { state: 'RUNNING' } })
    const parts = [
      `${JSON.stringify({ id, nextUri, columns }).slice(0, -1)},"data":`,
      ...(rows?.(number) ?? [`[[${number}]]`]),
      ',"stats":{"state":"RUNNING"}}',
    ]
    response.writeHead(200, {
      'content-type': 'application/json',
      ...(hasLength ? { 'content-length': parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0) } : {}),
    })
    for (const part of parts) response.write(part)
    response.end()
  }

  function uriOf({ id }: FakeStatement, phase: 'queued' | 'executing', token: number): string {
    return `${fake.url}/v1/statement/${phase}/${id}/s/${token}`
  }

  const server = createServer({ maxHeaderSize: 1024 * 1024 }, (request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))
  const fake: FakeTrino = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    is: 'ready',
    statements,
    get checks() {
      return checks
    },
    resultOf: () => ({}),
    before: () => {},
    restart: () => void (known = new Map()),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return fake
}

function send(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
