import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

describe.runIf(await kafkaIsAvailable())('A server whose event log moves from Kafka to Postgres', () => {
  it('keeps its history, by the commands of the operations page', { timeout: 240_000 }, async () => {
    const database = await createMigratedDatabase()
    const inPostgres = { QUIPU_LOG_LEVEL: 'error', DATABASE_URL: database.url }
    const inKafka = {
      ...inPostgres,
      KAFKA_BROKERS: (await sharedKafka()).brokers.join(),
      QUIPU_KAFKA_TOPIC: `test-move-${randomBytes(6).toString('hex')}`,
    }
    const dataDir = ['--data-dir', join(folder.path, 'data')]
    const start = async (env: Record<string, string>): Promise<{ quipu: QuipuProcess; url: string }> => {
      const quipu = spawnQuipu(['start', '--port', '0', '--anchor-ms', '500ms', ...dataDir], { env })
      return { quipu, url: await quipu.url }
    }
    const stop = async (quipu: QuipuProcess): Promise<void> => {
      quipu.signal('SIGTERM')
      expect((await quipu.exit).code).toBe(0)
    }

    const before = await start(inKafka)
    const { id } = await run(before.url, `select 'Rosalinde'`)
    await stop(before.quipu)
    const moved = await spawnQuipu(['restore', '--from', 'topic', '--into', database.url, ...dataDir], { env: inKafka })
      .exit
    expect(moved).toMatchObject({ code: 0, stderr: '' })
    expect(moved.stdout).toMatch(/^Copied \d+ records of topic test-move-\w+ into the log in Postgres\n$/)

    const after = await start(inPostgres)
    expect(await (await fetch(`${after.url}/v1/query/${id}`)).text()).toContain('Rosalinde')
    expect(await (await fetch(`${after.url}/v1/query/${id}/events`)).text()).toContain('Rosalinde')
    expect((await run(after.url, 'SELECT count(*) FROM tpch.tiny.nation')).rows).toEqual([[25]])
    const verified = await spawnQuipu(['audit', 'verify', '--read-models', ...dataDir], { env: inPostgres }).exit
    expect(verified.stdout).toMatch(/^Nothing found in /)
    const rebuilt = await spawnQuipu(['rebuild', ...dataDir], { env: inPostgres }).exit
    expect(rebuilt.code).toBe(0)
    expect(await (await fetch(`${after.url}/v1/query/${id}`)).text()).toContain('Rosalinde')
    await stop(after.quipu)
    await database.drop()
  })
})
