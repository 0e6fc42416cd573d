import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { serverOfFile } from '../support/server-of-file.ts'
import { follow, post, raw, run, trinoHeaders, type Ran, type StatementJson } from '../support/statement-client.ts'

// However slow this machine is, the answer to POST contains the plan.
const server = serverOfFile('warn', () => ({ QUIPU_POST_PLAN_WAIT_MS: '30s' }))
let base: string
/** A query that ended before the first test, so that it has left the memory when it is read again. */
let forgotten: { readonly ran: Ran; readonly at: number }

beforeAll(async () => {
  base = server.url
  forgotten = { ran: await run(base, 'SELECT name, regionkey FROM nation ORDER BY name'), at: performance.now() }
}, 240_000)

describe('POST /v1/statement', () => {
  it('answers with the plan: columns, stage tree, partialCancelUri, but no rows', async () => {
    const { status, headers, json } = await post(base, 'SELECT nationkey, name FROM nation')
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('application/json')
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['transfer-encoding']).toBe('chunked')
    expect(headers['cache-control']).toBe('no-store')
    expect(json.id).toMatch(/^\d{8}_\d{6}_\d{5}_[0-9a-v]{5}$/)
    expect(json.infoUri).toBe(`${base}/v1/query/${json.id}`)
    expect(json.nextUri).toMatch(new RegExp(`^${base}/v1/statement/${json.id}/0\\.[\\w-]{22}$`))
    expect(json.partialCancelUri).toMatch(new RegExp(`^${base}/v1/stage/${json.id}\\.1/[\\w-]{22}$`))
    expect(json.columns).toEqual([
      { name: 'nationkey', type: 'bigint', typeSignature: { rawType: 'bigint', arguments: [] } },
      {
        name: 'name',
        type: 'varchar(25)',
        typeSignature: { rawType: 'varchar', arguments: [{ kind: 'LONG', value: 25 }] },
      },
    ])
    expect(json.data).toBeUndefined()
    expect(['QUEUED', 'PLANNING', 'STARTING', 'RUNNING']).toContain(json.stats.state)
    expect(json.stats.rootStage).toMatchObject({
      stageId: '0',
      state: 'SCHEDULED',
      done: false,
      subStages: [{ stageId: '1', done: false, subStages: [] }],
    })
  })

  it('never carries an error: the error comes with the first GET, in an answer with status 200', async () => {
    const first = await post(base, 'SELECT nope FROM nation')
    expect(first.json.error).toBeUndefined()
    expect(first.json.nextUri).toBeDefined()
    const { error, answers } = await follow(first)
    expect(error).toMatchObject({
      errorName: 'COLUMN_NOT_FOUND',
      errorCode: 47,
      errorType: 'USER_ERROR',
      message: "line 1:8: Column 'nope' cannot be resolved",
      errorLocation: { lineNumber: 1, columnNumber: 8 },
    })
    expect(answers.at(-1)!.stats.state).toBe('FAILED')
    expect(answers.at(-1)!.nextUri).toBeUndefined()
  })

  it.each([
    ['SELEC 1', 'SYNTAX_ERROR', 1, 1],
    ['SELECT * FROM nowhere', 'TABLE_NOT_FOUND', 1, 15],
    ['SELECT * FROM tpch.nope.t', 'SCHEMA_NOT_FOUND', 1, 15],
    ['SELECT * FROM nope.s.t', 'CATALOG_NOT_FOUND', 1, 15],
    ['SELECT 1\n  + true', 'TYPE_MISMATCH', 2, 3],
    ['SELECT \u0000', 'SYNTAX_ERROR', 1, 8],
  ])('%j fails as %s at %i:%i', async (sql, errorName, lineNumber, columnNumber) => {
    const { error } = await run(base, sql)
    expect(error).toMatchObject({ errorName, errorLocation: { lineNumber, columnNumber } })
  })

  it('does not run a session statement before the client follows it', async () => {
    const first = await post(base, "SET SESSION query_max_run_time = '5m'")
    await new Promise((resolve) => setTimeout(resolve, 300))
    const info = await raw(first.json.infoUri)
    expect(JSON.parse(info.text)).toMatchObject({ state: expect.not.stringMatching(/FINISHED|FAILED/) })
    const { last } = await follow(first)
    expect(last.headers['x-trino-set-session']).toBe('query_max_run_time=5m')
    expect(last.json).toMatchObject({ updateType: 'SET SESSION', columns: [], stats: { state: 'FINISHED' } })
  })
})

describe('GET /v1/statement/{queryId}/{token}', () => {
  it('returns every row once, in pages, and ends with rows, FINISHED and no nextUri in one answer', async () => {
    const { rows, answers } = await run(base, 'SELECT orderkey, partkey, linenumber, comment FROM lineitem')
    expect(rows).toHaveLength(60_175)
    expect(new Set(rows.map(([order, , line]) => `${String(order)}/${String(line)}`)).size).toBe(60_175)
    expect(answers.filter((answer) => answer.data).length).toBeGreaterThan(2)
    expect(answers.at(-1)).toMatchObject({ stats: { state: 'FINISHED' }, data: expect.any(Array) })
    for (const answer of answers.filter((one) => one.data)) expect(answer.columns).toHaveLength(4)
  })

  it('returns the same bytes for a repeated token, and 410 after a request for the next token', async () => {
    const first = await post(base, 'SELECT comment FROM lineitem')
    const uri0 = first.json.nextUri!
    let page0 = await raw(uri0)
    while (!page0.json.data) page0 = await raw(page0.json.nextUri!)
    const again = await raw(uri0)
    expect(again.text).toBe(page0.text)
    const uri1 = page0.json.nextUri!
    expect(uri1).not.toBe(uri0)
    let page1 = await raw(uri1)
    while (!page1.json.data) page1 = await raw(uri1)
    expect((await raw(uri1)).text).toBe(page1.text)
    expect((await raw(uri0)).status).toBe(410)
  })

  it('repeats the last answer with the same bytes', async () => {
    const { last, answers } = await run(base, 'SELECT 1')
    const uri = answers.at(-2)!.nextUri!
    expect((await raw(uri)).text).toBe(last.text)
    expect((await raw(uri)).text).toBe(last.text)
  })

  it('repeats its own nextUri while there is no result', async () => {
    const first = await post(base, 'SELECT count(*) FROM lineitem a, lineitem b, nation c WHERE a.comment > b.comment')
    const second = await raw(first.json.nextUri!)
    expect(second.json.data).toBeUndefined()
    expect(second.json.nextUri).toBe(first.json.nextUri)
    expect((await raw(second.json.nextUri!, { method: 'DELETE' })).status).toBe(204)
  })

  it('answers 404 for a wrong mac, a wrong token, an unknown or malformed query', async () => {
    const { json } = await post(base, 'SELECT 1')
    const uri = json.nextUri!
    for (const wrong of [
      `${uri.slice(0, -1)}${uri.endsWith('A') ? 'B' : 'A'}`,
      uri.replace('/0.', '/1.'),
      `${base}/v1/statement/${json.id}/0`,
      `${base}/v1/statement/${json.id}/x`,
      uri.replace(json.id, '20200101_000000_00000_00001'),
      uri.replace(json.id, 'nonsense'),
    ]) {
      const answer = await raw(wrong)
      expect([answer.status, wrong]).toEqual([404, wrong])
    }
  })

  it('answers HEAD as a heartbeat, without a body', async () => {
    const { json } = await post(base, 'SELECT 1')
    const head = await raw(json.nextUri!, { method: 'HEAD' })
    expect([head.status, head.text]).toEqual([200, ''])
    expect((await raw(`${base}/v1/statement/${json.id}/0.AAAAAAAAAAAAAAAAAAAAAA`, { method: 'HEAD' })).status).toBe(404)
  })

  it('returns the page to both of two concurrent requests', async () => {
    const first = await post(base, 'SELECT name FROM nation')
    const page = async (): Promise<StatementJson> => {
      let answer = await raw(first.json.nextUri!)
      // There is no result yet.
      while (!answer.json.data) answer = await raw(first.json.nextUri!)
      return answer.json
    }
    const [a, b] = await Promise.all([page(), page()])
    expect(a.data).toHaveLength(25)
    expect(b.data).toHaveLength(25)
  })
})

describe('DELETE of the addresses of a statement', () => {
  it('cancels the query: GET returns USER_CANCELED, and a second DELETE 204', async () => {
    const first = await post(base, 'SELECT count(*) FROM lineitem a, lineitem b, nation c WHERE a.comment > b.comment')
    const uri = first.json.nextUri!
    const [beside, canceled] = await Promise.all([raw(uri), raw(uri, { method: 'DELETE' })])
    expect(canceled.status).toBe(204)
    expect(beside.status).toBe(200)
    const after = await raw(uri)
    expect(after.json).toMatchObject({
      stats: { state: 'FAILED' },
      error: { errorName: 'USER_CANCELED', message: 'Query was canceled' },
    })
    expect(after.json.nextUri).toBeUndefined()
    expect((await raw(uri, { method: 'DELETE' })).status).toBe(204)
    expect((await raw(uri.replace(/.$/, 'x'), { method: 'DELETE' })).status).toBe(404)
  })

  it('leaves a finished query finished', async () => {
    const { answers } = await run(base, 'SELECT 1')
    const uri = answers.at(-2)!.nextUri!
    expect((await raw(uri, { method: 'DELETE' })).status).toBe(204)
    expect((await raw(uri)).json.stats.state).toBe('FINISHED')
  })

  it('lets the query finish with the rows that it has, if the address is partialCancelUri', async () => {
    const first = await post(base, 'SELECT name FROM nation')
    expect((await raw(first.json.partialCancelUri!, { method: 'DELETE' })).status).toBe(204)
    expect((await raw(`${first.json.partialCancelUri}x`, { method: 'DELETE' })).status).toBe(404)
    const { answers, error } = await follow(first)
    expect(error).toBeUndefined()
    expect(answers.at(-1)!.stats.state).toBe('FINISHED')
  })
})

describe('The headers of a statement', () => {
  it.each(['Engine', 'Trino', 'Presto'])(
    'X-%s-* headers set the session and name the headers of the answer',
    async (family) => {
      const prefix = `x-${family.toLowerCase()}-`
      const headers = { [`${prefix}user`]: 'someone', [`${prefix}catalog`]: 'TPCH', [`${prefix}schema`]: 'tiny' }
      const { rows, id, columns } = await run(base, 'SELECT count(*) AS c FROM nation', headers)
      expect(rows).toEqual([[25]])
      expect(columns![0]).toMatchObject({ name: 'c', type: 'bigint' })
      const info = JSON.parse((await raw(`${base}/v1/query/${id}`)).text) as {
        session: { user: string; catalog: string }
      }
      expect(info.session).toMatchObject({ user: 'someone', catalog: 'tpch', schema: 'tiny' })
      const use = await run(base, 'USE tpch.sf1', headers)
      expect(use.last.headers[`${prefix}set-schema`] ?? use.error).toBeDefined()
    },
  )

  it('set the user to anonymous if they name none', async () => {
    const { id } = await run(base, 'SELECT 1', {})
    const info = JSON.parse((await raw(`${base}/v1/query/${id}`)).text) as { session: { user: string } }
    expect(info.session.user).toBe('anonymous')
  })

  it.each([
    ['two families', { 'x-trino-user': 'a', 'x-presto-user': 'a' }, 400],
    ['schema without catalog', { 'x-trino-user': 'a', 'x-trino-schema': 's' }, 400],
    ['malformed session', { 'x-trino-user': 'a', 'x-trino-session': 'nonsense' }, 400],
    ['bad transaction id', { 'x-trino-user': 'a', 'x-trino-transaction-id': 'zzz' }, 400],
    ['bad resource estimate', { 'x-trino-user': 'a', 'x-trino-resource-estimate': 'LUCK=1' }, 400],
    ['no JSON accepted', { 'x-trino-user': 'a', accept: 'text/html' }, 406],
    ['a foreign origin', { 'x-trino-user': 'a', origin: 'http://evil.example' }, 403],
    ['a cross-site fetch', { 'x-trino-user': 'a', 'sec-fetch-site': 'cross-site' }, 403],
    ['a foreign host', { 'x-trino-user': 'a', host: 'evil.example' }, 403],
  ])('are refused: %s, %o -> %i', async (_what, headers, status) => {
    const answer = await post(base, 'SELECT 1', headers)
    expect(answer.status).toBe(status)
  })
})

describe('The HTTP server', () => {
  it('accepts chunked bodies, any content type and targets in absolute form', async () => {
    const chunked = await raw(`${base}/v1/statement`, {
      method: 'POST',
      body: 'SELECT 1',
      chunked: true,
      headers: { 'transfer-encoding': 'chunked', 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(chunked.status).toBe(200)
    const target = `${base}/v1/query/${chunked.json.id}`
    const deleted = await raw(base, { method: 'DELETE', target })
    expect(deleted.status).toBe(204)
  })

  it.each([
    ['an empty body', Buffer.from(''), 400],
    ['blank text', Buffer.from(' \n '), 400],
    ['not UTF-8', Buffer.from([0x53, 0xff, 0xfe]), 400],
    ['more than 1 MB', Buffer.alloc(1_100_000, 0x20), 413],
  ])('answers a wrong body (%s) with status %s', async (_what, body, status) => {
    const answer = await raw(`${base}/v1/statement`, { method: 'POST', body, headers: { 'x-trino-user': 'a' } })
    expect(answer.status).toBe(status)
    expect(answer.headers['content-type']).toContain('text/plain')
    const json = await raw(`${base}/v1/statement`, { method: 'POST', body, headers: { accept: 'application/json' } })
    expect(json.headers['content-type']).toBe('application/problem+json')
    expect(JSON.parse(json.text)).toMatchObject({ status })
  })

  it('accepts a statement of 999,000 bytes, and refuses a text of more than 1,000,000', async () => {
    const { rows, error } = await run(base, `SELECT length('${'x'.repeat(999_000)}')`)
    expect(error).toBeUndefined()
    expect(rows).toEqual([[999_000]])
    const longer = await run(base, `SELECT '${'x'.repeat(1_000_000)}'`)
    expect(longer.error).toMatchObject({ errorName: 'QUERY_TEXT_TOO_LARGE' })
  })

  it.each(['PUT', 'PATCH', 'GET'])('answers 405 to %s of /v1/statement', async (method) => {
    const answer = await raw(`${base}/v1/statement`, { method })
    expect(answer.status).toBe(405)
    expect(answer.headers['allow']).toContain('POST')
  })

  it('answers 404 for an unknown path, and OPTIONS with the allowed methods', async () => {
    expect((await raw(`${base}/v1/nothing`)).status).toBe(404)
    expect((await raw(`${base}/v1/statement`, { method: 'OPTIONS' })).headers['allow']).toContain('POST')
  })

  it('answers 431 to headers over 64 kB and 400 to bytes that are not HTTP', async () => {
    const { port } = new URL(base)
    const talk = (text: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(Number(port), '127.0.0.1', () => socket.write(text))
        let answer = ''
        socket.setTimeout(60_000, () => reject(new Error('no answer')))
        socket.on('data', (part) => (answer += part.toString()))
        socket.on('close', () => resolve(answer))
        socket.on('error', () => resolve(answer))
      })
    expect(await talk(`GET /v1/info HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'a'.repeat(70_000)}\r\n\r\n`)).toContain(
      ' 431 ',
    )
    expect(await talk('not http at all\r\n\r\n')).toContain(' 400 ')
  })

  it('does not gzip answers for a client on the same host', async () => {
    const { rows } = await run(base, 'SELECT comment FROM orders', { ...trinoHeaders, 'accept-encoding': 'gzip' })
    expect(rows).toHaveLength(15_000)
    const info = await raw(`${base}/v1/info`)
    expect(info.headers['content-encoding']).toBeUndefined()
    expect(() => gunzipSync(Buffer.from(info.text))).toThrow()
  })
})

it('the last answer of a query that has left the memory comes from the log with the same bytes', async () => {
  const { answers, last } = forgotten.ran
  const uri = answers.at(-2)!.nextUri!
  await new Promise((resolve) => setTimeout(resolve, forgotten.at + 13_000 - performance.now()))
  const again = await raw(uri)
  expect(again.text).toBe(last.text)
  const info = JSON.parse((await raw(last.json.infoUri)).text) as { state: string }
  expect(info.state).toBe('FINISHED')
})
