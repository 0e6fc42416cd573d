import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isQueryEventType, type QueryEventType } from '../../src/coordinator/query/stream/events.ts'
import { createPostgresEventLog } from '../../src/events/postgres/postgres-event-log.ts'
import type { Recorded } from '../../src/events/event-log.ts'
import { createDatabase, type TestDatabase } from '../support/postgres.ts'
import { processesOf, spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'
import { foldedOf, LOGS_FOLDER, recordedLine } from '../support/recorded-logs.ts'
import { follow, post, raw, run, type RawAnswer } from '../support/statement-client.ts'

/*
 * Runs of every kind in a real server, whose log must then pass its audit. `npm run record:logs` keeps the streams
 * that test/fixtures/logs does not have yet. It overwrites no stream: today's version must read streams that earlier
 * versions recorded. So after a change of an event, record under a new name.
 */
const keep = process.env['QUIPU_RECORD_LOGS'] === '1'

let folder: ReturnType<typeof temporaryFolder>
let database: TestDatabase
let quipu: QuipuProcess
let url: string
let settings: string[]

beforeAll(async () => {
  folder = temporaryFolder()
  database = await createDatabase()
  settings = ['--data-dir', join(folder.path, 'data'), '--database-url', database.url]
  const env = { QUIPU_LOG_LEVEL: 'error', QUIPU_RESTART_BACKOFF_MAX_MS: '200ms' }
  quipu = spawnQuipu(['start', '--port', '0', ...settings], { env })
  url = await quipu.url
})
afterAll(async () => {
  quipu.signal('SIGTERM')
  await quipu.exit
  await database.drop()
  await folder.remove()
})

async function streamOf(queryId: string): Promise<Recorded[]> {
  const log = createPostgresEventLog({ connectionString: database.url })
  try {
    await log.open()
    const events: Recorded[] = []
    for await (const event of log.readStream(queryId)) events.push(event)
    return events
  } finally {
    await log.close()
  }
}

/** Returns the types of the stream; stores the stream as `name` if recording is on. */
async function record(name: string, queryId: string): Promise<ReadonlySet<QueryEventType>> {
  const events = await streamOf(queryId)
  if (keep && !existsSync(new URL(`${name}.jsonl`, LOGS_FOLDER))) {
    writeFileSync(new URL(`${name}.jsonl`, LOGS_FOLDER), events.map((event) => `${recordedLine(event)}\n`).join(''))
    writeFileSync(new URL(`${name}.state.json`, LOGS_FOLDER), `${JSON.stringify(foldedOf(events), null, 2)}\n`)
  }
  return new Set(events.map((event) => event.type).filter(isQueryEventType))
}

const WIDE = 'SELECT * FROM tpch.tiny.orders'
/** More pages than the server prepares ahead of the client: the query still runs when the client has the first page. */
const WIDER = `${WIDE} CROSS JOIN UNNEST(sequence(1, 10))`

/** Repeats the request over a restart, as clients do. */
async function patient(uri: string): Promise<RawAnswer> {
  for (let tries = 0; ; tries++) {
    const answer = await raw(uri).catch(() => undefined)
    if (answer?.status === 200) return answer
    if (tries > 300) throw new Error(`No answer: ${answer?.text ?? 'connection lost'}`)
    await sleep(50)
  }
}

it(
  'streams of every kind of run pass the audit, and the audit finds a changed letter',
  { timeout: 240_000 },
  async () => {
    const one = await run(url, 'SELECT 1')
    expect(one.rows).toEqual([[1]])
    expect(await record('select-1', one.id)).toContain('QueryFinished')

    const pages = await run(url, WIDE)
    expect(pages.rows).toHaveLength(15_000)
    expect(await record('worker-pages', pages.id)).toContain('TaskCreated')

    const failed = await run(url, 'SELECT 1 / (nationkey - nationkey) FROM tpch.tiny.nation')
    expect(failed.error?.errorName).toBe('DIVISION_BY_ZERO')
    expect(await record('failed', failed.id)).toContain('QueryFailed')

    const session = await run(url, "SET SESSION query_max_run_time = '1h'")
    expect(session.error).toBeUndefined()
    expect(await record('set-session', session.id)).toContain('QueryFinished')

    const secret = await run(
      url,
      "SELECT count(*) FROM tpch.tiny.nation n(a, password, c, d) WHERE password = 'CANADA'",
    )
    expect(secret.rows).toEqual([[1]])
    expect(await record('withheld', secret.id)).toContain('QueryFinished')

    const written = [
      ['create-table-as', 'CREATE TABLE memory.default.t AS SELECT nationkey, name FROM tpch.tiny.nation'],
      ['insert', "INSERT INTO memory.default.t VALUES (25, 'ATLANTIS')"],
      ['create-view', 'CREATE VIEW memory.default.v AS SELECT count(*) AS n FROM memory.default.t'],
    ] as const
    for (const [name, sql] of written) {
      const { id, error } = await run(url, sql)
      expect(error).toBeUndefined()
      expect(await record(name, id)).toContain('WriteCommitted')
    }

    const canceled = await post(url, WIDE)
    const second = await raw(canceled.json.nextUri!)
    await raw(second.json.nextUri!, { method: 'DELETE' })
    expect(await record('canceled', canceled.json.id)).toContain('QueryFailed')

    const recovered = await post(url, WIDER)
    let answer = recovered
    while (!answer.json.data) answer = await raw(answer.json.nextUri!)
    process.kill(processesOf(join(folder.path, 'data')).children[0]!, 'SIGKILL')
    const next = await patient(answer.json.nextUri!)
    const rest = await follow(next)
    expect(rest.error).toBeUndefined()
    expect([...answer.json.data, ...(next.json.data ?? []), ...rest.rows]).toHaveLength(150_000)
    expect(await record('recovered', recovered.json.id)).toContain('QueryRecovered')

    const audit = await spawnQuipu(['audit', 'verify', '--read-models', ...settings]).exit
    expect(audit).toMatchObject({ code: 0, stderr: '' })
    expect(audit.stdout).toMatch(
      /^Nothing found in \d+ records, \d+ events, 10 queries \(0 open\), \d+ anchors?, 10 tables compared\n$/,
    )

    // Changes one letter of the statement, as somebody with the database password could.
    const client = new pg.Client(database.url)
    await client.connect()
    await client.query(
      `update quipu_log.events set data = replace(data, 'tpch.tiny.orders', 'tpch.tiny.Orders') where stream = $1 and sequence = 1`,
      [pages.id],
    )
    await client.end()
    const altered = await spawnQuipu(['audit', 'verify', '--json', ...settings]).exit
    expect(altered.code).toBe(1)
    const lines = altered.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(lines).toMatchObject([
      { kind: 'data', stream: pages.id, sequence: 1 },
      { summary: { findings: 1, queries: 10 } },
    ])
    expect((await spawnQuipu(['audit', 'verify', 'rubbish', ...settings]).exit).code).toBe(2)
  },
)
