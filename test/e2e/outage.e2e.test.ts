import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { accessModes } from '../support/access-modes.ts'
import { kafkaIsAvailable, sharedKafka, startKafka, type TestKafka } from '../support/kafka.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import {
  isAlive,
  postgresOf,
  processesOf,
  spawnQuipu,
  temporaryFolder,
  waitUntil,
  type QuipuProcess,
} from '../support/quipu-process.ts'
import { follow, post, raw, run, trinoHeaders, type RawAnswer } from '../support/statement-client.ts'

/*
 * The event log and the database go away, by kill -9 and by SIGSTOP, while the server runs: nothing is lost, the
 * answers are those of the interface, and the server recovers by itself.
 */

const GROUPED = 'SELECT regionkey, count(*) FROM nation GROUP BY regionkey ORDER BY 1'
const GROUPED_ROWS = [0, 1, 2, 3, 4].map((region) => [region, 5])
/** Pages above 64 kB, which stay on the worker. */
const STREAMED = 'SELECT orderkey, linenumber, comment FROM lineitem'
const STREAMED_ROWS = 60_175
/** One page below 64 kB. */
const SMALL_PAGES = 'SELECT name FROM nation'
const SESSION = "SET SESSION query_max_run_time = '1h'"

let folder: ReturnType<typeof temporaryFolder>
let quipu: QuipuProcess
let url: string
let access: Readonly<Record<string, string>>
/** Continues what a test has stopped, if the test fails meanwhile. */
let goOn: (() => Promise<void>) | undefined
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())
afterEach(async () => {
  await goOn?.()
  goOn = undefined
  quipu.signal('SIGTERM')
  await quipu.exit
})

async function start(name: string, env: Record<string, string>): Promise<void> {
  quipu = spawnQuipu(['start', '--port', '0', '--data-dir', join(folder.path, name)], {
    env: { QUIPU_LOG_LEVEL: 'error', QUIPU_POST_LOG_WAIT_MS: '2s', ...access, ...env },
    productWaits: true,
  })
  url = await quipu.url
}

interface Status {
  readonly ready: boolean
  readonly log: string
  readonly database: string
  readonly lag?: { readonly events: number }
}

async function status(): Promise<Status> {
  return (await raw(`${url}/v1/status`)).json as unknown as Status
}

/** Kills the coordinator with kill -9; its supervisor starts another at once. */
async function killCoordinator(name: string): Promise<void> {
  const [coordinator] = processesOf(join(folder.path, name)).children
  process.kill(coordinator!, 'SIGKILL')
  await waitUntil('it is gone', () => !isAlive(coordinator!))
}

/** The successor waits for the dependency as long as necessary, and still answers clients. */
async function expectOutageAtStart(open: Awaited<ReturnType<typeof openStatements>>): Promise<void> {
  await waitUntil('its successor misses the log', async () => (await status()).log === 'down')
  expect(await status()).toMatchObject({ live: true, ready: false, writer: false })
  await expectOutage(open)
}

/** A GET while a dependency is away: status 200, nothing new, the same `nextUri` again. */
async function waitsAt(nextUri: string): Promise<void> {
  const began = performance.now()
  const answer = await raw(nextUri)
  expect(answer.status).toBe(200)
  expect(answer.json.error).toBeUndefined()
  expect(answer.json.nextUri).toBe(nextUri)
  // The answer waits for news, but not for ever; the exact time does not matter here.
  expect(performance.now() - began).toBeGreaterThan(500)
}

function expectRefused(answer: RawAnswer): void {
  expect(answer.status).toBe(503)
  expect(answer.headers['retry-after']).toBe('1')
  expect(answer.headers['content-type']).toContain('application/problem+json')
}

/** Reads the first pages of a larger result. */
async function firstPages(): Promise<{ nextUri: string; rows: number }> {
  let { json } = await post(url, STREAMED)
  let rows = 0
  while (rows === 0) {
    json = (await raw(json.nextUri!)).json
    rows += json.data?.length ?? 0
  }
  return { nextUri: json.nextUri!, rows }
}

/** Reads the rows from a `nextUri` to the end. */
async function rest(nextUri: string): Promise<(readonly unknown[])[]> {
  const first = await raw(nextUri)
  const ran = await follow(first)
  expect(ran.error).toBeUndefined()
  return [...(first.json.data ?? []), ...ran.rows]
}

const json = { accept: 'application/json' }
const newTopic = () => `test-outage-${randomBytes(6).toString('hex')}`

const kafkaIsThere = await kafkaIsAvailable()

describe.each(accessModes)('$name', ({ use }) => {
  beforeAll(() => void (access = use(folder.path)))

  describe.runIf(kafkaIsThere)('A server with the log in Kafka', () => {
    describe('An outage of the database', () => {
      let postgres: TestPostgres
      let brokers: string
      beforeAll(async () => {
        postgres = await startPostgres()
        brokers = (await sharedKafka()).brokers.join()
      }, 240_000)
      afterAll(() => postgres.stop())
      const freshUrl = async () => (await postgres.createDatabase()).url

      it('statements run on, and their history follows later', { timeout: 240_000 }, async () => {
        await start('stopped', {
          KAFKA_BROKERS: brokers,
          QUIPU_KAFKA_TOPIC: newTopic(),
          DATABASE_URL: await freshUrl(),
        })
        expect((await run(url, GROUPED)).rows).toEqual(GROUPED_ROWS)
        expect(await status()).toMatchObject({ ready: true, log: 'up', database: 'up' })

        goOn = await postgres.freeze()
        await waitUntil('the database is missed', async () => (await status()).database === 'down')
        expect(await status()).toMatchObject({ ready: true, log: 'up' })
        const meanwhile = await run(url, GROUPED)
        expect(meanwhile.rows).toEqual(GROUPED_ROWS)
        expect((await run(url, 'SELECT 1')).rows).toEqual([[1]])
        const { nextUri, rows } = await firstPages()
        expect(rows + (await rest(nextUri)).length).toBe(STREAMED_ROWS)
        expectRefused(await raw(`${url}/v1/query`, { headers: json }))
        // For some seconds the process still answers for queries in its memory.
        await waitUntil('a query is read from memory', async () => {
          const { id } = await run(url, 'SELECT 1')
          return (await raw(`${url}/v1/query/${id}`)).status === 200
        })
        await goOn()
        await hasInHistory(meanwhile.id)

        await postgres.kill('SIGKILL')
        const dead = await run(url, GROUPED)
        expect(dead.rows).toEqual(GROUPED_ROWS)
        await postgres.start()
        await hasInHistory(dead.id)
        await waitUntil('the database is back', async () => (await status()).database === 'up')
      })

      it('a successor of the coordinator does not need the database either', { timeout: 240_000 }, async () => {
        await start('successor', {
          KAFKA_BROKERS: brokers,
          QUIPU_KAFKA_TOPIC: newTopic(),
          DATABASE_URL: await freshUrl(),
        })
        const small = (await post(url, SMALL_PAGES)).json.nextUri!
        let first = await raw(small)
        while (first.json.data === undefined) first = await raw(small)
        const open = await openStatements()
        const streamed = await firstPages()
        goOn = await postgres.freeze()
        const [coordinator] = processesOf(join(folder.path, 'successor')).children
        process.kill(coordinator!, 'SIGKILL')

        await waitUntil('its successor takes statements', async () => (await post(url, 'SELECT 1')).status === 200)
        // New statements, open statements, and a result whose query had ended; each page is in its topic.
        expect((await run(url, GROUPED)).rows).toEqual(GROUPED_ROWS)
        expect((await raw(open.canceled, { method: 'DELETE' })).status).toBe(204)
        await expectEndings(open)
        expect(streamed.rows + (await rest(streamed.nextUri)).length).toBe(STREAMED_ROWS)
        expect((await raw(small)).json.data).toEqual(first.json.data)
        expect(await status()).toMatchObject({ ready: true, log: 'up', database: 'down' })
        await goOn()
        await hasInHistory(first.json.id)
        await hasInHistory((await run(url, GROUPED)).id)
      })
    })

    describe('An outage of the broker', () => {
      let kafka: TestKafka
      beforeAll(async () => void (kafka = await startKafka()), 120_000)
      afterAll(() => kafka.stop())

      it(
        'the server refuses statements, running statements wait, and everything continues afterwards',
        { timeout: 240_000 },
        async () => {
          await start('broker', { KAFKA_BROKERS: kafka.brokers.join(), QUIPU_KAFKA_TOPIC: newTopic() })
          const { supervisor, children } = processesOf(join(folder.path, 'broker'))
          for (const fault of ['stopped', 'killed'] as const) {
            const open = await openStatements()
            const streamed = await firstPages()
            goOn = fault === 'stopped' ? await kafka.freeze() : undefined
            if (!goOn) await kafka.kill()
            await expectOutage(open)
            await waitUntil('the log is missed', async () => (await status()).log === 'down')
            expect(await status()).toMatchObject({ live: true, ready: false, database: 'up' })
            await sleep(500)
            await (goOn ? goOn() : kafka.start())
            await expectEndings(open)
            expect(streamed.rows + (await rest(streamed.nextUri)).length).toBe(STREAMED_ROWS)
            expect((await run(url, GROUPED)).rows).toEqual(GROUPED_ROWS)
            await waitUntil('the log is back', async () => (await status()).log === 'up')
          }
          // The same processes run throughout.
          expect(processesOf(join(folder.path, 'broker'))).toEqual({ supervisor, children })

          // A successor that cannot read the log yet answers from the read models.
          const open = await openStatements()
          await waitUntil('all is projected', async () => (await status()).lag?.events === 0)
          goOn = await kafka.freeze()
          await killCoordinator('broker')
          await expectOutageAtStart(open)
          expect(await status()).toMatchObject({ database: 'up' })
          await waitUntil(
            'the successor answers with its state',
            async () => (await raw(open.followed)).json.stats.state === 'STARTING',
          )
          await goOn()
          await expectEndingsWithSuccessor(open)
        },
      )
    })
  })

  describe('A server with the log in Postgres', () => {
    it('the server waits for its own Postgres after a kill, and starts it again', { timeout: 240_000 }, async () => {
      await start('embedded', {})
      const data = join(folder.path, 'embedded')
      const { children } = processesOf(data)
      for (const fault of ['killed', 'stopped'] as const) {
        const streamed = await firstPages()
        const begun = (await post(url, GROUPED)).json
        const server = postgresOf(data)!
        if (fault === 'stopped') {
          process.kill(server, 'SIGSTOP')
        } else process.kill(server, 'SIGKILL')
        const late = run(url, GROUPED).catch((error: Error) => error.message)
        if (fault === 'stopped') {
          await sleep(1000)
          process.kill(server, 'SIGCONT')
        }
        expect(await rest(begun.nextUri!)).toEqual(GROUPED_ROWS)
        expect(streamed.rows + (await rest(streamed.nextUri)).length).toBe(STREAMED_ROWS)
        const answer = await late
        if (typeof answer === 'string') expect(answer).toMatch(/^POST: 503/)
        else expect(answer.rows).toEqual(GROUPED_ROWS)
        await hasInHistory(begun.id)
      }
      expect(children.every(isAlive)).toBe(true)
      expect(quipu.stderr()).toMatch(/postgres ended; starting it again/)
    })

    describe('An outage of an external database', () => {
      let postgres: TestPostgres
      beforeAll(async () => void (postgres = await startPostgres()), 120_000)
      afterAll(() => postgres.stop())

      it(
        'the server refuses statements, running statements wait, and everything continues afterwards',
        { timeout: 240_000 },
        async () => {
          await start('external', { DATABASE_URL: postgres.url() })
          const { children } = processesOf(join(folder.path, 'external'))
          for (const fault of ['stopped', 'killed'] as const) {
            const open = await openStatements()
            const streamed = await firstPages()
            goOn = fault === 'stopped' ? await postgres.freeze() : undefined
            if (!goOn) await postgres.kill('SIGKILL')
            await expectOutage(open)
            await waitUntil('both are missed', async () => {
              const { log, database } = await status()
              return log === 'down' && database === 'down'
            })
            expect(await status()).toMatchObject({ live: true, ready: false })
            await (goOn ? goOn() : postgres.start())
            await expectEndings(open)
            expect(streamed.rows + (await rest(streamed.nextUri)).length).toBe(STREAMED_ROWS)
            await waitUntil('both are back', async () => (await status()).ready)
            await hasInHistory((await run(url, GROUPED)).id)
          }
          expect(children.every(isAlive)).toBe(true)

          const open = await openStatements()
          await postgres.kill('SIGKILL')
          await killCoordinator('external')
          await expectOutageAtStart(open)
          expect(await status()).toMatchObject({ database: 'down' })
          await postgres.start()
          await expectEndingsWithSuccessor(open)
        },
      )
    })
  })
})

/** Statements that end at their first GET, and thus need an append: one to follow, one to cancel. */
async function openStatements(): Promise<{ followed: string; canceled: string }> {
  const [followed, canceled] = await Promise.all([post(url, SESSION), post(url, SESSION)])
  return { followed: followed.json.nextUri!, canceled: canceled.json.nextUri! }
}

/** Expects the answers that clients get while the log accepts no appends. */
async function expectOutage({ followed, canceled }: Awaited<ReturnType<typeof openStatements>>): Promise<void> {
  const [refused, taken] = await Promise.all([
    post(url, 'SELECT 2', { ...trinoHeaders, ...json }),
    raw(canceled, { method: 'DELETE', headers: json }),
    waitsAt(followed),
  ])
  expectRefused(refused)
  expect(taken.status).toBe(204)
}

/** Expects how these statements end by themselves when the log is back. */
async function expectEndings({ followed, canceled }: Awaited<ReturnType<typeof openStatements>>): Promise<void> {
  const last = await lastAnswer(followed)
  expect(last.json.error).toBeUndefined()
  expect(last.headers['x-trino-set-session']).toBe('query_max_run_time=1h')
  // A GET would start the statement, and it could end before the coordinator carries out the cancel.
  await waitUntil('the cancel is carried out', async () => {
    const query = await raw(`${url}/v1/query/${queryOf(canceled)}`)
    return query.status === 200 && (query.json as unknown as { state: string }).state === 'FAILED'
  })
  expect((await lastAnswer(canceled)).json.error).toMatchObject({ errorName: 'USER_CANCELED' })
}

/** Expects the same ends after a restart; the server took the cancel while it started. */
async function expectEndingsWithSuccessor(open: Awaited<ReturnType<typeof openStatements>>): Promise<void> {
  await expectEndings(open)
  expect((await run(url, GROUPED)).rows).toEqual(GROUPED_ROWS)
}

/** The id of the query that a `nextUri` belongs to. */
function queryOf(nextUri: string): string {
  return /\d{8}_\d{6}_\d{5}_[a-z0-9]{5}/.exec(nextUri)![0]
}

async function lastAnswer(nextUri: string): Promise<RawAnswer> {
  let answer = await raw(nextUri)
  while (answer.json.nextUri !== undefined) answer = await raw(answer.json.nextUri)
  return answer
}

async function hasInHistory(id: string): Promise<void> {
  await waitUntil(
    `${id} is in the history`,
    async () => {
      const answer = await raw(`${url}/v1/query?state=FINISHED`)
      return (
        answer.status === 200 && (answer.json as unknown as { queryId: string }[]).some(({ queryId }) => queryId === id)
      )
    },
    120_000,
  )
}
