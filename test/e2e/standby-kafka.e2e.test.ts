import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { runOnEither } from '../support/failover-client.ts'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { startStandbyCluster } from '../support/standby-cluster.ts'
import { raw, run } from '../support/statement-client.ts'

const STREAM = 'SELECT orderkey, linenumber, comment FROM lineitem'
const available = await kafkaIsAvailable()

it.runIf(available)('a stand-by takes over a log in Kafka', { timeout: 180_000 }, async () => {
  const { brokers } = await sharedKafka()
  const cluster = await startStandbyCluster({
    KAFKA_BROKERS: brokers.join(),
    QUIPU_KAFKA_TOPIC: `test-standby-${randomBytes(6).toString('hex')}`,
  })
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
  } finally {
    await cluster.stop()
  }
})
