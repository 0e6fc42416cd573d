import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callServer } from '../../src/cli/called-server.ts'
import { createReplayServer } from '../../src/cli/replay-servers.ts'
import type { ReplayAnswer } from '../../src/replay/replay-server.ts'
import { sampleData } from '../support/query-events.ts'

const stats = { state: 'RUNNING' }
let target: Server
let url: string
let cancelled = 0
let answer: (request: IncomingMessage, response: ServerResponse) => void

beforeAll(async () => {
  target = createServer((request, response) => {
    if (request.method === 'DELETE') {
      cancelled++
      response.writeHead(204).end()
    } else answer(request, response)
  })
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(target.address() as AddressInfo).port}`
})
afterAll(() => target.close())

async function run(statementTimeoutMs = 60_000, catalogs = new Map<string, string>(), sql = 'SELECT 1') {
  const called = callServer({ server: url, user: 'ada' }, {})
  const stopping = new AbortController()
  const server = createReplayServer(
    called,
    { session: {}, asRecorded: false, statementTimeoutMs },
    { catalogs, users: new Map() },
    stopping.signal,
  )
  const statement = {
    queryId: 'recorded',
    createdAt: '2026-01-01T00:00:00.000Z',
    sql,
    session: sampleData.QueryCreated.session,
    ordered: false,
    columns: [],
    outline: undefined,
    snapshots: new Map(),
    fingerprint: undefined,
  }
  try {
    let last: ReplayAnswer | undefined
    for await (const one of server.run(sql, statement, stopping.signal)) last = one
    return last?.error
  } finally {
    called.http.close()
  }
}

describe('A replay server', () => {
  it('reports EXCEEDED_TIME_LIMIT and cancels when the target does not finish in time', async () => {
    answer = (_, response) => response.end(JSON.stringify({ id: 'q', nextUri: `${url}/v1/statement/q/1`, stats }))
    // The time suffices for a first answer on a busy machine: a query without a known id cannot be canceled.
    expect(await run(3_000)).toEqual({
      name: 'EXCEEDED_TIME_LIMIT',
      message: 'The statement did not end within 3 seconds',
    })
    expect(cancelled).toBe(1)
  })

  it('reports EXCEEDED_TIME_LIMIT when the target does not answer in time', async () => {
    answer = () => {}
    expect(await run(300)).toMatchObject({ name: 'EXCEEDED_TIME_LIMIT' })
  })

  it.each([
    ['<html>', 200, 'is not an answer to a statement'],
    ['{"data":"rows"}', 200, 'is not an answer to a statement'],
    [JSON.stringify({ id: 'q', data: [1], stats }), 200, 'is not an answer to a statement'],
    ['no such header', 400, 'The server answered 400: no such header'],
    ['may not act as bob', 403, 'The server answered 403: may not act as bob'],
  ])('reports a refused statement when the target answers %s', async (text, status, message) => {
    answer = (_, response) => response.writeHead(status).end(text)
    expect(await run()).toEqual({ name: 'REFUSED', message: expect.stringContaining(message) as string })
  })

  it.each([401, 404, 503])('throws when the target answers %s, because it can run no statement', async (status) => {
    answer = (_, response) => response.writeHead(status).end('no')
    await expect(run()).rejects.toThrow(`The server answered ${status}: no`)
  })

  it('sends no text whose catalogs cannot be found because it does not parse', async () => {
    answer = () => expect.unreachable()
    const error = await run(60_000, new Map([['one', 'two']]), 'SELECT FROM WHERE')
    expect(error).toMatchObject({ name: 'SYNTAX_ERROR' })
  })
})
