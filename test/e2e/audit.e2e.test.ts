import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AuditInfo } from '../../src/protocol/audit/audit-info.ts'
import { embeddedConnection } from '../support/embedded-connection.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

const env = { QUIPU_LOG_LEVEL: 'error' }
let folder: ReturnType<typeof temporaryFolder>
let data: string
let quipu: QuipuProcess
let url: string
/** Bodies that the webhook accepted; it refuses the first request. */
const posted: { number: number }[] = []
let refusals = 0
const webhook = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    if (refusals++ === 0) return void response.writeHead(503).end()
    posted.push(JSON.parse(Buffer.concat(parts).toString()))
    response.end()
  })
})

beforeAll(async () => {
  folder = temporaryFolder()
  data = join(folder.path, 'data')
  await new Promise<void>((resolve) => webhook.listen(0, '127.0.0.1', resolve))
  const hook = `http://127.0.0.1:${(webhook.address() as AddressInfo).port}/anchors`
  const args = ['--port', '0', '--data-dir', data, '--anchor-ms', '300ms', '--anchor-webhook', hook]
  quipu = spawnQuipu(['start', ...args], { env })
  url = await quipu.url
}, 240_000)
afterAll(async () => {
  webhook.close()
  await folder.remove()
})

const command = (...args: string[]) => spawnQuipu([...args, '--data-dir', data], { env }).exit

/** The details of all events of one type in the stream `system`. */
async function reported(type: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(embeddedConnection(data))
  await client.connect()
  try {
    const { rows } = await client.query<{ details: Record<string, unknown> }>(
      'select details from m.audit_log where kind = $1 order by sequence',
      [type],
    )
    return rows.map((row) => row.details)
  } finally {
    await client.end()
  }
}

/** Waits until the read models have an event of this type, and returns the first. */
async function firstReported(type: string): Promise<Record<string, unknown>> {
  await waitUntil(`${type} is reported`, async () => (await reported(type)).length > 0)
  return (await reported(type))[0]!
}

it(
  'the log records the configuration, the user that ended a query, and refused requests',
  { timeout: 240_000 },
  async () => {
    const posting = await fetch(`${url}/v1/statement`, {
      method: 'POST',
      headers: { 'x-trino-user': 'alice' },
      body: 'select count(*) from tpch.tiny.lineitem a, tpch.tiny.lineitem b, tpch.tiny.nation c where a.comment < b.comment || c.name',
    })
    const { id, nextUri } = (await posting.json()) as { id: string; nextUri: string }
    await fetch(nextUri)
    const killed = await fetch(`${url}/v1/query/${id}`, { method: 'DELETE', headers: { 'x-trino-user': 'bob' } })
    expect(killed.status).toBe(204)
    const ended = await fetch(`${url}/v1/query/${id}`)
    expect(await ended.text()).toContain('USER_CANCELED')
    for (let time = 0; time < 3; time++) {
      expect((await fetch(`${url}/v1/announcement`, { method: 'PUT', body: '{}' })).status).toBe(401)
      expect((await fetch(`${url}/v1/query`, { headers: { origin: 'http://evil.example' } })).status).toBe(403)
    }
    expect(await firstReported('QueryKilled')).toEqual({
      queryId: id,
      by: 'bob',
      how: 'canceled',
      remoteAddress: '127.0.0.1',
    })
    expect(await firstReported('AuthenticationFailed')).toMatchObject({
      user: 'internal',
      method: 'shared_secret',
      count: 1,
    })
    expect(await firstReported('AccessDenied')).toMatchObject({
      action: 'call from a browser',
      object: expect.stringContaining('origin http://evil.example'),
      count: 1,
    })
    const loaded = await firstReported('ConfigurationLoaded')
    expect(loaded).toMatchObject({
      settings: { dataDir: data, 'timeouts.anchorMs': 300, anchorWebhook: '(set)' },
      catalogs: expect.arrayContaining([
        { name: 'tpch', connector: 'tpch', digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ]),
    })
    expect(JSON.stringify(loaded)).not.toContain('/anchors"')
  },
)

it(
  'the server anchors the log, and forget removes the data of a query so that the audit still finds nothing',
  { timeout: 240_000 },
  async () => {
    const { id } = await run(url, `select 'Rosalinde'`)
    const { id: kept } = await run(url, `select 'Eisenstein'`)
    const anchors = () => readFileSync(join(data, 'anchors.jsonl'), 'utf8').split('\n').slice(0, -1)
    expect(statSync(join(data, 'anchor-key.pem')).mode & 0o777).toBe(0o600)
    const forget = await command('forget', '--query', id, '--by', 'officer')
    expect(forget).toMatchObject({ code: 0, stderr: '' })
    expect(forget.stdout).toMatch(/^Query \S+ is forgotten: data of \d+ events was removed\n$/)
    expect((await command('forget', '--query', id)).stdout).toBe(`Query ${id} was already forgotten\n`)
    for (const path of ['', '/events', '/trace', '?asOf=1'])
      expect((await fetch(`${url}/v1/query/${id}${path}`)).status).toBe(410)
    expect(await (await fetch(`${url}/v1/query/${kept}`)).text()).toContain('Eisenstein')
    expect(
      (await run(url, `select count(*) from system.runtime.queries where query like '%Rosa' || 'linde%'`)).rows,
    ).toEqual([[0]])
    expect((await fetch(`${url}/v1/query/${id}/forget`, { method: 'POST', body: '{"by":"me"}' })).status).toBe(401)
    expect((await command('rebuild')).code).toBe(0)
    expect(await firstReported('ProjectionRebuilt')).toMatchObject({ events: expect.any(Number) })
    const verified = await command('audit', 'verify', '--read-models', '--json')
    expect(verified.stderr).toBe('')
    expect(JSON.parse(verified.stdout)).toMatchObject({ summary: { findings: 0, open: 0, tables: 10 } })
    expect(verified.code).toBe(0)
    expect(await firstReported('LogVerified')).toMatchObject({ findings: {}, by: expect.any(String), tables: 10 })
    const record = (await (await fetch(`${url}/v1/audit`)).json()) as AuditInfo
    expect(record.audits).toEqual([expect.objectContaining({ findings: {}, tables: 10, open: 0 })])
    expect(record.anchors[0]).toMatchObject({ key: record.keys[0]!.key, number: record.anchors.length })
    expect((await fetch(`${url}/v1/system/verified`, { method: 'POST', body: '{}' })).status).toBe(401)

    quipu.signal('SIGTERM')
    expect((await quipu.exit).code).toBe(0)
    const numbers = anchors().map((line) => (JSON.parse(line) as { number: number }).number)
    expect(numbers).toEqual(numbers.map((_, index) => index + 1))
    expect(refusals).toBeGreaterThan(posted.length)
    // The server sends an anchor again if the answer came too late.
    const reported = posted.map((anchor) => anchor.number).filter((number, index, all) => number !== all[index - 1])
    expect(reported).toEqual(reported.map((_, index) => index + 1))
    expect(posted.length).toBeGreaterThan(0)

    // Without a running server the command writes the log itself.
    expect((await command('forget', '--query', kept)).stdout).toContain('is forgotten')
    const after = await command('audit', 'verify')
    expect(after).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Nothing found in /) })
    const elsewhere = await command('audit', 'verify', '--anchors', join(folder.path, 'none.jsonl'))
    expect(elsewhere).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no file') })
  },
)
