import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessModes } from '../support/access-modes.ts'
import { runOnEither } from '../support/failover-client.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { parseOpenMetrics } from '../support/openmetrics.ts'
import {
  rolesOf,
  startStandbyCluster,
  writes,
  type ClusterNode,
  type StandbyCluster,
} from '../support/standby-cluster.ts'
import { follow, post, raw, run } from '../support/statement-client.ts'

/** Streams for a while: 60,175 rows with their keys. */
const STREAM = 'SELECT orderkey, linenumber, comment FROM lineitem'
const GROUP = 'SELECT orderpriority, count(*) FROM orders GROUP BY orderpriority ORDER BY 1'
/** Seconds of work in one batch, so that a take-over happens during it. */
const LONG =
  'SELECT count(*) FROM lineitem a CROSS JOIN nation b CROSS JOIN (VALUES 1, 2) c(x) WHERE a.comment < b.comment'
/** Minutes of work: the test cancels it long before its end. */
const LONGER = 'SELECT count(*) FROM lineitem a CROSS JOIN lineitem b WHERE a.comment < b.comment'

/** On a busy machine a follower waits longer before it takes over. */
const TAKE_OVER_MS = 180_000

let cluster: StandbyCluster
let rowsOfStream: string
let rowsOfGroup: string
let rowsOfLong: string

const folder = temporaryFolder()
afterAll(() => folder.remove())

describe.each(accessModes)('$name', ({ use }) => {
  beforeAll(async () => {
    const access = use(folder.path)
    // A stopped coordinator stays stopped: its supervisor must not replace it before it wakes up.
    cluster = await startStandbyCluster({ QUIPU_COORDINATOR_DEAD_MS: '10m', ...access })
    rowsOfStream = digest((await run(cluster.a.url, STREAM)).rows)
    rowsOfGroup = digest((await run(cluster.a.url, GROUP)).rows)
    rowsOfLong = digest((await run(cluster.a.url, LONG)).rows)
  }, 240_000)
  afterAll(() => cluster.stop())

  describe('A follower', () => {
    it('answers reads itself and relays statements to the writer', { timeout: 240_000 }, async () => {
      const { writer, other } = await roles()
      const { id, rows } = await run(other.url, GROUP)
      expect(digest(rows)).toBe(rowsOfGroup)
      for (const node of [writer, other]) {
        await waitUntil('the history has it', async () =>
          (await raw(`${node.url}/v1/query/${id}`)).text.includes('"state":"FINISHED"'),
        )
        const info = await raw(`${node.url}/v1/query/${id}`)
        expect(info.json).toMatchObject({ queryId: id, state: 'FINISHED', self: `${node.url}/v1/query/${id}` })
        const list = JSON.parse((await raw(`${node.url}/v1/query`)).text) as { queryId: string }[]
        expect(list.map((one) => one.queryId)).toContain(id)
        expect(JSON.parse((await raw(`${node.url}/v1/query/${id}/events`)).text)).not.toHaveLength(0)
        expect(JSON.parse((await raw(`${node.url}/v1/node`)).text)).toHaveLength(1)
        expect((await raw(`${node.url}/metrics`)).status).toBe(200)
      }
    })

    it(
      'returns addresses of the host that the client used, and accepts those of the other coordinator',
      { timeout: 240_000 },
      async () => {
        const { writer, other } = await roles()
        const posted = await post(other.url, STREAM)
        expect(posted.json.nextUri).toMatch(new RegExp(`^${other.url}/v1/statement/`))
        // The next requests go to the other address.
        const elsewhere = posted.text.replaceAll(other.url, writer.url)
        const followed = await follow({ ...posted, text: elsewhere, json: JSON.parse(elsewhere) as typeof posted.json })
        expect(digest(followed.rows)).toBe(rowsOfStream)
        const canceled = await post(other.url, LONGER)
        expect((await raw(canceled.json.nextUri!, { method: 'DELETE' })).status).toBe(204)
        expect((await raw(`${writer.url}/v1/query/${canceled.json.id}`)).json).toMatchObject({ state: 'FAILED' })
        expect((await raw(`${other.url}/v1/statement/${posted.json.id}/0.wrong`)).status).toBe(404)
      },
    )
  })

  describe('A take-over', () => {
    it('continues the queries of the writer at the other address after kill -9', { timeout: 240_000 }, async () => {
      const { writer, other } = await roles()
      const before = await epochs()
      const bases = [writer.url, other.url]
      const running = [LONG, STREAM, LONG, GROUP].map((sql) => runOnEither(bases, sql))
      await sleep(200)
      const counted = await figure(writer, 'quipu_queries_total')
      expect(counted).toBeGreaterThan(0)
      await writer.kill()
      await waitUntil('the other one writes', () => writes(other), TAKE_OVER_MS)
      const [long, stream, again, group] = await Promise.all(running)
      expect([long, stream, again, group].map((one) => one!.error)).toEqual([
        undefined,
        undefined,
        undefined,
        undefined,
      ])
      expect(digest(long!.rows)).toBe(rowsOfLong)
      expect(digest(again!.rows)).toBe(rowsOfLong)
      expect(digest(stream!.rows)).toBe(rowsOfStream)
      expect(digest(group!.rows)).toBe(rowsOfGroup)
      expect(await epochs()).toBe(before + 1)

      await writer.start()
      expect((await roles()).writer).toBe(other)
      expect(digest((await run(writer.url, GROUP)).rows)).toBe(rowsOfGroup)
      // The counts of the old writer are restored although it follows now; the new writer counts only its own claims.
      await waitUntil(
        'its counters go on',
        async () => (await figure(writer, 'quipu_queries_total')) >= counted,
        60_000,
      )
      const claims = async (): Promise<boolean> =>
        (await figure(other, 'quipu_epoch_claims_total', { result: 'won' })) === (await claimsOf(other.url))
      await waitUntil('the claims of the other coordinator are shown', claims, 60_000)
    })

    it('begins when the writer gets SIGTERM, and running queries continue', { timeout: 240_000 }, async () => {
      const { writer, other } = await roles()
      const before = await epochs()
      const running = runOnEither([writer.url, other.url], LONG)
      await sleep(200)
      writer.process.signal('SIGTERM')
      await waitUntil('the other one writes', () => writes(other), TAKE_OVER_MS)
      expect((await writer.process.exit).code).toBe(0)
      const { rows, error } = await running
      expect(error).toBeUndefined()
      expect(digest(rows)).toBe(rowsOfLong)
      expect(await epochs()).toBe(before + 1)
      await writer.start()
      expect((await roles()).writer).toBe(other)
    })

    it(
      'keeps late answers of a stopped writer correct, and the writer follows after it wakes up',
      { timeout: 240_000 },
      async () => {
        const { writer, other } = await roles()
        const before = await epochs()
        // One statement for each request: a request for a later token would free the page of an earlier one.
        const again = await post(writer.url, STREAM)
        await raw(again.json.nextUri!)
        const stream = await post(writer.url, STREAM)
        const page = await raw(stream.json.nextUri!)
        const asked = await post(writer.url, LONG)
        const held = [again.json.nextUri!, page.json.nextUri!, asked.json.nextUri!]
        const stopped = writer.coordinator()
        process.kill(stopped, 'SIGSTOP')
        // These requests wait in its sockets until it wakes up; a request for a query of the next writer joins them
        // below.
        const waiting = held.map((uri) => raw(uri, { timeoutMs: 60_000 }).catch(() => 'cut' as const))
        await waitUntil('the other one writes', () => writes(other), TAKE_OVER_MS)
        const onOther = held.map((uri) => uri.replace(writer.url, other.url))
        const served = await Promise.all(onOther.map((uri) => raw(uri, { timeoutMs: 60_000 })))
        expect(served.map((one) => one.status)).toEqual([200, 200, 200])
        const made = await post(other.url, LONG)
        const unknownToIt = made.json.nextUri!.replace(other.url, writer.url)
        const asksMore = raw(unknownToIt, { timeoutMs: 60_000 }).catch(() => 'cut' as const)
        process.kill(writer.coordinator(), 'SIGCONT')

        const reported = [...(await Promise.all(waiting)), await asksMore]
        for (const answer of reported) {
          if (answer === 'cut') continue
          expect(answer.status).toBe(200)
          expect(answer.json.error).toBeUndefined()
        }
        // If it returns a page, the page equals the one of the other coordinator.
        const [first] = reported
        if (first !== 'cut' && first?.json.data && served[0]!.json.data)
          expect(first.json.data).toEqual(served[0]!.json.data)
        const streamOf = await runToEnd(page.json.nextUri!.replace(writer.url, other.url))
        expect(digest([...(page.json.data ?? []), ...streamOf])).toBe(rowsOfStream)
        expect(digest(await runToEnd(asked.json.nextUri!.replace(writer.url, other.url)))).toBe(rowsOfLong)
        expect((await roles()).writer).toBe(other)
        expect(digest(await runToEnd(unknownToIt))).toBe(rowsOfLong)
        expect(await epochs()).toBe(before + 1)
        // It follows in the same process, and writes again when the other one is killed.
        expect(writer.coordinator()).toBe(stopped)
        const running = runOnEither([other.url, writer.url], STREAM)
        await other.kill()
        await waitUntil('it writes again', () => writes(writer), TAKE_OVER_MS)
        expect(digest((await running).rows)).toBe(rowsOfStream)
        expect(writer.coordinator()).toBe(stopped)
        expect(await figure(writer, 'quipu_writer')).toBe(1)
        await other.start()
        expect((await roles()).writer).toBe(writer)
        expect(digest((await run(other.url, GROUP)).rows)).toBe(rowsOfGroup)
        // No take-over led to two writers of one stream, and no worker left or joined because of it.
        for (const node of [writer, other])
          expect(await figure(node, 'quipu_event_append_failures_total', { reason: 'conflict' })).toBe(0)
        const comings = (await nodeEvents()).filter((type) => type === 'NodeJoined' || type === 'NodeLeft')
        expect(comings).toEqual(['NodeJoined'])
      },
    )

    it('does not happen without a fault', { timeout: 240_000 }, async () => {
      await roles()
      const before = await epochs()
      await sleep(4_000)
      expect(await epochs()).toBe(before)
    })
  })
})

/** A digest of the rows in any order. */
function digest(rows: readonly (readonly unknown[])[]): string {
  return JSON.stringify(rows.map((row) => JSON.stringify(row)).sort())
}

const roles = () => rolesOf(cluster)

async function epochs(): Promise<number> {
  const database = new pg.Client({ connectionString: cluster.databaseUrl })
  await database.connect()
  try {
    const { rows } = await database.query<{ epoch: string }>('select max(epoch) as epoch from quipu_log.events')
    return Number(rows[0]!.epoch)
  } finally {
    await database.end()
  }
}

/** The types of all events of workers. */
async function nodeEvents(): Promise<readonly string[]> {
  const database = new pg.Client({ connectionString: cluster.databaseUrl })
  await database.connect()
  try {
    const text = `select data::json->>'type' as type from quipu_log.events where stream like 'node/%' order by position`
    return (await database.query<{ type: string }>(text)).rows.map(({ type }) => type)
  } finally {
    await database.end()
  }
}

/** The number of claims of the log by the coordinator at this address. */
async function claimsOf(address: string): Promise<number> {
  const database = new pg.Client({ connectionString: cluster.databaseUrl })
  await database.connect()
  try {
    const text = `select count(*)::int as claims from m.audit_log where kind = 'EpochStarted' and details->>'address' = $1`
    return (await database.query<{ claims: number }>(text, [address])).rows[0]!.claims
  } finally {
    await database.end()
  }
}

/** The sum of the series of a metric. */
async function figure(node: ClusterNode, name: string, of: Readonly<Record<string, string>> = {}): Promise<number> {
  const { text } = await raw(`${node.url}/metrics`, { timeoutMs: 60_000 })
  return (text === '' ? [] : parseOpenMetrics(text))
    .filter(
      (sample) => sample.name === name && Object.entries(of).every(([label, value]) => sample.labels[label] === value),
    )
    .reduce((sum, { value }) => sum + value, 0)
}

async function runToEnd(uri: string): Promise<readonly (readonly unknown[])[]> {
  const rows: (readonly unknown[])[] = []
  for (let next: string | undefined = uri; next !== undefined;) {
    const answer = await raw(next, { timeoutMs: 60_000 })
    expect(answer.status).toBe(200)
    expect(answer.json.error).toBeUndefined()
    rows.push(...(answer.json.data ?? []))
    next = answer.json.nextUri
  }
  return rows
}
