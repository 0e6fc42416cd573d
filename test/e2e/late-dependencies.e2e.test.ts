import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { createDatabase, freePort } from '../support/postgres.ts'
import { isAlive, spawnQuipu, temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { raw, run } from '../support/statement-client.ts'

const kafkaIsThere = await kafkaIsAvailable()
const folder = temporaryFolder()
afterAll(() => folder.remove())

interface LogLine {
  readonly level: string
  readonly event: string
  readonly dependency?: string
}

it.runIf(kafkaIsThere)(
  'a coordinator that starts before Postgres and Kafka waits for each, and logs one line for each',
  { timeout: 240_000 },
  async () => {
    const kafka = await sharedKafka()
    const database = await createDatabase()
    const target = new URL(database.url)
    const postgresProxy = await startFaultProxy({ host: target.hostname, port: Number(target.port) })
    const kafkaProxy = await startFaultProxy(kafka)
    postgresProxy.refuse()
    kafkaProxy.refuse()
    target.port = String(postgresProxy.port)
    const port = await freePort()
    const data = join(folder.path, 'data')
    const quipu = spawnQuipu(['coordinator', '--standby', '--port', String(port), '--data-dir', data], {
      env: {
        DATABASE_URL: target.href,
        KAFKA_BROKERS: `127.0.0.1:${kafkaProxy.port}`,
        QUIPU_KAFKA_TOPIC: `test-late-${randomBytes(6).toString('hex')}`,
        QUIPU_SHARED_SECRET: 'a secret that all of them know',
      },
    })
    const lines = (): LogLine[] =>
      `${quipu.stdout()}${quipu.stderr()}`
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as LogLine)
    const missed = (): LogLine[] => lines().filter(({ event }) => event === 'dependency.down')
    try {
      await waitUntil('it misses Postgres', () => missed().length > 0 || !isAlive(quipu.pid))
      const status = (await raw(`http://127.0.0.1:${port}/v1/status`)).json
      expect(status).toMatchObject({ live: true, ready: false, writer: false, database: 'down' })
      postgresProxy.accept()
      await waitUntil('it misses Kafka', () => missed().some(({ dependency }) => dependency === 'log'))
      kafkaProxy.accept()
      const url = await quipu.url
      expect((await run(url, 'SHOW CATALOGS')).error).toBeUndefined()
      expect(missed().map(({ level, dependency }) => [level, dependency])).toEqual([
        ['warn', 'database'],
        ['warn', 'log'],
      ])
      expect(lines().filter(({ event }) => event === 'dependency.up')).toHaveLength(2)
      expect(`${quipu.stdout()}${quipu.stderr()}`).not.toMatch(/^\s*at |"stack"|quipu: /m)
      expect(isAlive(quipu.pid)).toBe(true)
    } finally {
      if (isAlive(quipu.pid)) quipu.signal('SIGTERM')
      const { code, stderr } = await quipu.exit
      expect({ code, stderr: stderr.replaceAll(/^\{.*\n/gm, '') }).toEqual({ code: 0, stderr: '' })
      await Promise.all([postgresProxy.close(), kafkaProxy.close()])
      await database.drop()
    }
  },
)
