import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { accessModes } from '../support/access-modes.ts'
import { runOnEither } from '../support/failover-client.ts'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { panelShows } from '../support/panels.ts'
import { startPostgres } from '../support/postgres.ts'
import { findPrometheus, startPrometheus } from '../support/prometheus.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { startStandbyCluster } from '../support/standby-cluster.ts'
import { raw, run } from '../support/statement-client.ts'

const STREAM = 'SELECT orderkey, linenumber, comment FROM lineitem'
const RULES = fileURLToPath(new URL('../../dashboards/rules/quipu.yaml', import.meta.url))
const programs = await findPrometheus()
const available = await kafkaIsAvailable()

const folder = temporaryFolder()
afterAll(() => folder.remove())

describe.each(accessModes)('$name', ({ use }) => {
  it.runIf(available)(
    'a stand-by takes over a log in Kafka, with its database and without',
    { timeout: 300_000 },
    async () => {
      const { brokers } = await sharedKafka()
      const postgres = await startPostgres()
      const cluster = await startStandbyCluster(
        {
          ...use(folder.path),
          KAFKA_BROKERS: brokers.join(),
          QUIPU_KAFKA_TOPIC: `test-standby-${randomBytes(6).toString('hex')}`,
        },
        await postgres.createDatabase(),
      )
      try {
        const { a, b } = cluster
        const writes = async (url: string): Promise<boolean> =>
          (JSON.parse((await raw(`${url}/v1/info`)).text) as { writer: boolean }).writer
        expect(await Promise.all([writes(a.url), writes(b.url)])).toEqual([true, false])
        const digest = (rows: readonly (readonly unknown[])[]): string =>
          JSON.stringify(rows.map((row) => JSON.stringify(row)).sort())
        const rows = digest((await run(b.url, STREAM)).rows)
        const running = [STREAM, STREAM].map((sql) => runOnEither([a.url, b.url], sql))
        await sleep(100)
        await a.kill()
        await waitUntil('the other one writes', () => writes(b.url), 60_000)
        for (const ran of await Promise.all(running)) {
          expect(ran.error).toBeUndefined()
          expect(digest(ran.rows)).toBe(rows)
        }
        await a.start()
        expect(await Promise.all([writes(a.url), writes(b.url)])).toEqual([false, true])
        expect((await run(a.url, 'SELECT 1')).rows).toEqual([[1]])

        const goOn = await postgres.freeze()
        try {
          const open = runOnEither([b.url, a.url], STREAM)
          await b.kill()
          await waitUntil('the first one writes again', () => writes(a.url), 60_000)
          expect((await run(a.url, 'SELECT 1')).rows).toEqual([[1]])
          const ran = await open
          expect(ran.error).toBeUndefined()
          expect(digest(ran.rows)).toBe(rows)
        } finally {
          await goOn()
        }
        await b.start()
        expect(await Promise.all([writes(a.url), writes(b.url)])).toEqual([true, false])
        if (!programs) return
        const targets = [{ job: 'quipu-coordinator', address: new URL(b.url).host }]
        const prometheus = await startPrometheus(programs, targets, RULES)
        try {
          for (const title of ['Kafka, 99th percentile', 'Requests by route'])
            await panelShows(prometheus, 'runtime', title, () => run(b.url, 'SELECT 1'))
        } finally {
          await prometheus.stop()
        }
      } finally {
        await cluster.stop()
        await postgres.stop()
      }
    },
  )
})
