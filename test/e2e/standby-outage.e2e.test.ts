import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { accessModes } from '../support/access-modes.ts'
import { kafkaIsAvailable, startKafka } from '../support/kafka.ts'
import { startPostgres } from '../support/postgres.ts'
import { temporaryFolder } from '../support/quipu-process.ts'
import { rolesOf, startStandbyCluster, type StandbyCluster } from '../support/standby-cluster.ts'
import { post, raw, run } from '../support/statement-client.ts'
import { FULL_TESTS } from '../support/full-tests.ts'

/*
 * The system that holds the event log is away for longer than a follower waits for a silent writer. Coordinators keep
 * running, clients that poll either of them get states, and everything continues when it is back.
 */

const SESSION = "SET SESSION query_max_run_time = '1h'"
const GROUPED = 'SELECT regionkey, count(*) FROM nation GROUP BY regionkey ORDER BY 1'
const GROUPED_ROWS = [0, 1, 2, 3, 4].map((region) => [region, 5])
const AWAY_MS = FULL_TESTS ? 60_000 : 12_000

const kafkaIsThere = await kafkaIsAvailable()
const folder = temporaryFolder()
afterAll(() => folder.remove())

interface Away {
  readonly back: () => Promise<unknown>
}

async function goesOn(cluster: StandbyCluster, goAway: () => Promise<Away>): Promise<void> {
  const { writer, other } = await rolesOf(cluster)
  expect((await run(other.url, GROUPED)).rows).toEqual(GROUPED_ROWS)
  const processes = (): readonly number[] => [writer.coordinator(), other.coordinator()]
  const before = processes()
  const open = await Promise.all([writer, other].map(({ url }) => post(url, SESSION)))
  const canceled = (await post(other.url, SESSION)).json.nextUri!
  const { back } = await goAway()
  let away = true
  const reported: number[] = []
  // Each client polls as usual: it sends the next request when it has its answer.
  const pollers = open.map(async ({ json }) => {
    let next: string | undefined = json.nextUri
    let answer
    while (next !== undefined) {
      answer = await raw(next)
      reported.push(answer.status)
      if (away) expect(answer.json.nextUri).toBe(next)
      next = answer.json.nextUri
    }
    return answer
  })
  const cancel = await raw(canceled, { method: 'DELETE' })
  expect(cancel.status).toBe(204)
  await sleep(AWAY_MS)
  away = false
  await back()
  const endings = await Promise.all(pollers)
  for (const end of endings) {
    expect(end?.json.error).toBeUndefined()
    expect(end?.headers['x-trino-set-session']).toBe('query_max_run_time=1h')
  }
  expect(new Set(reported)).toEqual(new Set([200]))
  for (const { url } of [writer, other]) expect((await run(url, GROUPED)).rows).toEqual(GROUPED_ROWS)
  let last = await raw(canceled)
  while (last.json.nextUri !== undefined) last = await raw(last.json.nextUri)
  expect(last.json.error).toMatchObject({ errorName: 'USER_CANCELED' })
  expect(processes()).toEqual(before)
}

describe.each(accessModes)('$name', ({ use }) => {
  it.runIf(kafkaIsThere)(
    'two coordinators keep running and finish their statements after an outage of Kafka',
    { timeout: 300_000 },
    async () => {
      const kafka = await startKafka()
      const cluster = await startStandbyCluster({
        ...use(folder.path),
        KAFKA_BROKERS: kafka.brokers.join(),
        QUIPU_KAFKA_TOPIC: `test-standby-outage-${randomBytes(6).toString('hex')}`,
      })
      try {
        await goesOn(cluster, async () => {
          await kafka.kill()
          return { back: () => kafka.start() }
        })
      } finally {
        await cluster.stop()
        await kafka.stop()
      }
    },
  )

  it(
    'two coordinators with the log in Postgres keep running and finish their statements after an outage of Postgres',
    { timeout: 300_000 },
    async () => {
      const postgres = await startPostgres()
      const cluster = await startStandbyCluster(use(folder.path), await postgres.createDatabase())
      try {
        await goesOn(cluster, async () => {
          await postgres.kill('SIGKILL')
          return { back: () => postgres.start() }
        })
      } finally {
        await cluster.stop()
        await postgres.stop()
      }
    },
  )
})
