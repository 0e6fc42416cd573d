import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly json: StatementJson
}

/** An answer of the statement resource as a client reads it. */
export interface StatementJson {
  readonly id: string
  readonly infoUri: string
  readonly partialCancelUri?: string
  readonly nextUri?: string
  readonly columns?: readonly { readonly name: string; readonly type: string; readonly typeSignature?: unknown }[]
  readonly data?: readonly (readonly unknown[])[]
  readonly stats: Readonly<Record<string, unknown>> & { readonly state: string; readonly rootStage?: StageJson }
  readonly error?: {
    readonly message: string
    readonly errorName: string
    readonly errorCode: number
    readonly errorType: string
    readonly errorLocation?: { readonly lineNumber: number; readonly columnNumber: number }
  }
  readonly updateType?: string
  readonly updateCount?: number
}

export interface StageJson {
  readonly stageId: string
  readonly state: string
  readonly done: boolean
  readonly subStages: readonly StageJson[]
}

export interface RawRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer
  /** The target, sent unchanged: in absolute form or malformed, for example. */
  readonly target?: string
  readonly chunked?: boolean
  readonly timeoutMs?: number
}

let always: Readonly<Record<string, string>> = {}

/** Adds these headers to all later requests of this file that do not set them. */
export function alwaysSend(headers: Readonly<Record<string, string>>): void {
  always = headers
}

let trusted: string | undefined

/** Makes later HTTPS requests of this file trust servers whose certificate this authority (PEM) signed; undefined: the public ones. */
export function alwaysTrust(ca: string | undefined): void {
  trusted = ca
}

/** Sends one HTTP request on a new connection. */
export function raw(url: string, options: RawRequest = {}): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const { protocol, hostname, port, pathname, search } = new URL(url)
    const { body } = options
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)(
      {
        ...(trusted === undefined ? {} : { ca: trusted }),
        hostname,
        port,
        agent: false,
        method: options.method ?? (body === undefined ? 'GET' : 'POST'),
        path: options.target ?? pathname + search,
        headers: {
          ...(body !== undefined && !options.chunked ? { 'content-length': String(Buffer.byteLength(body)) } : {}),
          ...always,
          ...options.headers,
        },
      },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(parts).toString('utf8')
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            get json() {
              return JSON.parse(text) as StatementJson
            },
          })
        })
      },
    )
    request.setTimeout(options.timeoutMs ?? 60_000, () => request.destroy(new Error('no answer')))
    request.on('error', reject)
    request.end(body)
  })
}

export const trinoHeaders = {
  'x-trino-user': 'tester',
  'x-trino-catalog': 'tpch',
  'x-trino-schema': 'tiny',
  'x-trino-transaction-id': 'NONE',
  'x-trino-client-capabilities': 'PATH,PARAMETRIC_DATETIME,SESSION_AUTHORIZATION',
} as const

export function post(base: string, sql: string, headers: RawRequest['headers'] = trinoHeaders): Promise<RawAnswer> {
  return raw(`${base}/v1/statement`, { method: 'POST', body: sql, headers })
}

export interface Ran {
  readonly id: string
  readonly rows: (readonly unknown[])[]
  readonly columns: StatementJson['columns']
  readonly error: StatementJson['error']
  readonly answers: StatementJson[]
  readonly last: RawAnswer
}

/** Follows a statement to its end, as a client does. */
export async function run(base: string, sql: string, headers: RawRequest['headers'] = trinoHeaders): Promise<Ran> {
  const credential = Object.entries(headers ?? {}).filter(([name]) => name === 'authorization')
  return follow(await post(base, sql, headers), Object.fromEntries(credential))
}

/** @param headers the headers of each GET */
export async function follow(first: RawAnswer, headers: RawRequest['headers'] = {}): Promise<Ran> {
  if (first.status !== 200) throw new Error(`POST: ${first.status} ${first.text}`)
  const answers = [first.json]
  const rows: (readonly unknown[])[] = []
  let last = first
  for (let next = first.json.nextUri; next !== undefined; next = last.json.nextUri) {
    last = await raw(next, { headers })
    if (last.status !== 200) throw new Error(`GET: ${last.status} ${last.text}`)
    answers.push(last.json)
    rows.push(...(last.json.data ?? []))
  }
  const columns = answers.findLast((answer) => answer.columns)?.columns
  return { id: first.json.id, rows, columns, error: last.json.error, answers, last }
}

/** The rows of a query, or the update type of any other statement, with its count if it has one. */
export function rowsOrUpdate({ rows, last }: Ran): unknown {
  const { updateType, updateCount } = last.json
  if (updateType === undefined) return rows
  return updateCount === undefined ? updateType : [updateType, updateCount]
}
