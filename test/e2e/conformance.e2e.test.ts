import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compareAnswers, type CorpusEntry } from '../support/corpus.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import type { StatementJson } from '../support/statement-client.ts'
import { representatives } from '../support/full-tests.ts'

const corpus = new URL('../conformance/', import.meta.url)
const server = serverOfFile()
const agent = new Agent({ keepAlive: true })
let base: URL

beforeAll(() => {
  base = new URL(server.url)
})
afterAll(() => agent.destroy())

const headers = {
  'x-trino-user': 'conformance',
  'x-trino-catalog': 'tpch',
  'x-trino-schema': 'tiny',
  'x-trino-time-zone': 'UTC',
  'x-trino-transaction-id': 'NONE',
  'x-trino-client-capabilities': 'PATH,PARAMETRIC_DATETIME,SESSION_AUTHORIZATION',
}

function send(method: string, path: string, body?: string): Promise<StatementJson> {
  return new Promise((resolve, reject) => {
    const sent = request({ hostname: base.hostname, port: base.port, agent, method, path, headers }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(parts).toString('utf8')
        if (response.statusCode !== 200) reject(new Error(`HTTP ${response.statusCode}: ${text}`))
        else resolve(JSON.parse(text) as StatementJson)
      })
    })
    // The server may have closed an idle connection, however short the pause: it never read that request, so it is
    // sent again.
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(send(method, path, body))
      else reject(error)
    })
    sent.end(body)
  })
}

async function difference(entry: CorpusEntry): Promise<string | undefined> {
  let answer = await send('POST', '/v1/statement', entry.sql)
  const rows: unknown[][] = []
  let { columns } = answer
  while (answer.nextUri) {
    answer = await send('GET', new URL(answer.nextUri).pathname)
    columns = answer.columns ?? columns
    rows.push(...((answer.data ?? []) as unknown[][]))
  }
  if (answer.error) {
    if (entry.error === undefined) return `${answer.error.errorName}: ${answer.error.message}`
    return answer.error.errorName === entry.error.errorName
      ? undefined
      : `${answer.error.errorName}, expected ${entry.error.errorName}`
  }
  if (entry.error !== undefined) return `succeeded, expected ${entry.error.errorName}`
  const plain = (columns ?? []).map(({ name, type }) => ({ name, type }))
  return compareAnswers(entry, { columns: plain, rows })
}

describe("The server's conformance with Trino", () => {
  it('returns the rows, types and errors of the corpus over HTTP, for more than 98.5 % of the statements', async () => {
    // The front end and the engine alone get the whole corpus: test/sql/conformance.test.ts.
    const all = readdirSync(corpus)
      .filter((file) => file.endsWith('.jsonl') && !file.startsWith('extra-'))
      .flatMap((file) => readFileSync(new URL(file, corpus), 'utf8').split('\n'))
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as CorpusEntry)
    const entries = representatives(all, 4)
    const failed: string[] = []
    const left = [...entries]
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let entry = left.shift(); entry; entry = left.shift()) {
          const different = await difference(entry)
          if (different !== undefined) failed.push(`${entry.id}: ${different}`)
        }
      }),
    )
    console.log(
      `${entries.length - failed.length} of ${entries.length} as in Trino; not: \n${failed.sort().join('\n')}`,
    )
    expect(failed.length / entries.length).toBeLessThan(0.015)
    // No difference may be an internal error.
    expect(failed.filter((one) => /GENERIC_INTERNAL_ERROR|HTTP/.test(one))).toEqual([])
  }, 300_000)
})
