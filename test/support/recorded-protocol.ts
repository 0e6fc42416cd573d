import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Exchange {
  readonly side: 'coordinator to worker' | 'worker to coordinator'
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The parsed JSON, or null without a body. */
  readonly body: Readonly<Record<string, unknown>> | null
  readonly status: number
  readonly answerHeaders: Readonly<Record<string, string>>
  readonly answer: unknown
}

/** The recorded requests between coordinator and worker of the previous version. */
export interface RecordedProtocol {
  readonly secret: string
  readonly statements: readonly {
    readonly sql: string
    readonly rows: readonly unknown[][]
    readonly error?: string
  }[]
  readonly exchanges: readonly Exchange[]
}

export const recordedProtocol = JSON.parse(
  readFileSync(new URL('../fixtures/worker-protocol/0.1.0-f0ab5d1.json', import.meta.url), 'utf8'),
) as RecordedProtocol

export interface Peer {
  readonly url: string
  close(): Promise<void>
}

/** A test server that gets each request with its whole body. */
export async function servePeer(
  answer: (request: IncomingMessage, body: string, response: ServerResponse) => void,
): Promise<Peer> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => answer(request, Buffer.concat(parts).toString(), response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Status {
  readonly taskId: string
  readonly version: number
  readonly state: string
}

/** The recorded statuses of a task, in order, up to its end. Later statuses only report acknowledgements. */
export function statusesOf(taskId: string): readonly Status[] {
  const reported = recordedProtocol.exchanges
    .filter(({ path, answer }) => path.startsWith('/v1/task?since=') && Array.isArray(answer))
    .flatMap(({ answer }) => answer as Status[])
    .filter((status) => status.taskId === taskId)
  return reported.slice(0, reported.findIndex(({ state }) => state === 'FINISHED' || state === 'FAILED') + 1)
}

/**
 * A worker of the previous version, made from its recorded answers. A task with a recorded fragment runs as recorded,
 * under its new id. Other tasks are refused.
 * @param coordinator the address to which the worker announces itself
 */
export async function startRecordedWorker(coordinator: string, bearer: string): Promise<Peer & { refused: string[] }> {
  const { exchanges } = recordedProtocol
  const started = exchanges.filter(({ method, path }) => method === 'POST' && path.startsWith('/v1/task/'))
  const refused: string[] = []
  /** The recorded task ids, with their present ids. */
  const running = new Map<string, string>()
  // Above every recorded version: a status counts as a change if its version is above that of the POST's answer.
  let version =
    1 + Math.max(...exchanges.map(({ answerHeaders }) => Number(answerHeaders['x-engine-task-version'] ?? 0)))
  let news: (Status & { readonly version: number })[] = []
  let wake = (): void => {}

  const reply = (response: ServerResponse, { status, answerHeaders, answer }: Exchange, body = answer): void => {
    response.writeHead(status, { ...answerHeaders }).end(body === null ? undefined : JSON.stringify(body))
  }
  const renamed = (status: unknown, was: string, now: string): unknown =>
    JSON.parse(JSON.stringify(status).replaceAll(was, now))

  const peer = await servePeer((request, text, response) => {
    const url = new URL(request.url!, 'http://worker')
    if (request.headers.authorization !== `Bearer ${bearer}`) return void response.writeHead(401).end()
    if (url.pathname === '/v1/task' && request.method === 'GET') {
      const since = Number(url.searchParams.get('since') || 0)
      const report = (): void => {
        const known = exchanges.find(({ path }) => path === '/v1/task?since=')!
        const headers = { ...known.answerHeaders, 'x-engine-task-version': String(version) }
        reply(
          response,
          { ...known, answerHeaders: headers },
          news.filter((status) => status.version > since),
        )
      }
      if (version > since) return report()
      const timer = setTimeout(report, 500)
      const before = wake
      wake = () => {
        before()
        clearTimeout(timer)
        if (!response.writableEnded) report()
      }
      return
    }
    const [, , , id = '', ...rest] = url.pathname.split('/')
    if (request.method === 'POST') {
      const { sql } = (JSON.parse(text) as { fragment: { sql: string } }).fragment
      const same = started.find(({ body }) => (body!['fragment'] as { sql: string }).sql === sql)
      if (!same) {
        refused.push(text)
        return void response.writeHead(500).end()
      }
      const was = same.path.split('/').at(-1)!
      running.set(id, was)
      for (const status of statusesOf(was)) news.push({ ...(renamed(status, was, id) as Status), version: ++version })
      news = news.slice(-20)
      reply(response, same, renamed(same.answer, was, id))
      return wake()
    }
    const path = ['', 'v1', 'task', running.get(id) ?? id, ...rest].join('/')
    const same = exchanges.find((one) => one.method === request.method && one.path === path)
    if (same) reply(response, same)
    else response.writeHead(request.method === 'DELETE' ? 204 : 404).end()
  })

  const announcement = exchanges.find(({ path }) => path === '/v1/announcement')!
  const announce = (): void =>
    void fetch(`${coordinator}/v1/announcement`, {
      method: 'PUT',
      headers: { ...announcement.headers, authorization: `Bearer ${bearer}` },
      body: JSON.stringify({ ...announcement.body, url: peer.url }),
    }).catch(() => {})
  announce()
  const timer = setInterval(announce, 1000)
  return {
    ...peer,
    refused,
    async close() {
      clearInterval(timer)
      await peer.close()
    },
  }
}
