import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { readTopic } from '../support/kafka-topic.ts'
import { spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

describe.runIf(await kafkaIsAvailable())('quipu forget with the event log in Kafka', () => {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  let env: Record<string, string>
  let quipu: QuipuProcess
  let url: string
  beforeAll(async () => {
    env = {
      QUIPU_LOG_LEVEL: 'error',
      KAFKA_BROKERS: (await sharedKafka()).brokers.join(),
      QUIPU_KAFKA_TOPIC: `test-forget-${randomBytes(6).toString('hex')}`,
      QUIPU_PUBLIC_KAFKA_BROKERS: (await sharedKafka()).brokers.join(),
      QUIPU_PUBLIC_KAFKA_TOPIC: `test-public-${randomBytes(6).toString('hex')}`,
    }
    await start()
  }, 240_000)
  afterAll(() => folder.remove())

  async function start(): Promise<void> {
    quipu = spawnQuipu(['start', '--port', '0', '--data-dir', data, '--anchor-ms', '500ms'], { env })
    url = await quipu.url
  }
  const command = (...args: string[]) => spawnQuipu([...args, '--data-dir', data], { env }).exit
  const statusOf = async (id: string, path = '') => (await fetch(`${url}/v1/query/${id}${path}`)).status

  /** The types of the published events of a query, in order and without repeats. */
  async function publishedToOthers(id: string): Promise<readonly string[]> {
    const { QUIPU_PUBLIC_KAFKA_BROKERS: brokers, QUIPU_PUBLIC_KAFKA_TOPIC: topic } = env
    const found = await readTopic(brokers!.split(','), topic!, (messages) =>
      messages.some(({ key, text }) => key === id && text.includes('query.forgotten')),
    )
    expect(found.filter(({ text }) => /Rosalinde|Eisenstein|Orlofsky/.test(text))).toEqual([])
    const reported = found.map(({ text }) => JSON.parse(text) as { subject: string; type: string })
    return [...new Set(reported.filter(({ subject }) => subject === id).map(({ type }) => type))]
  }

  it(
    'removes the data of a query for good; the log verifies, and the keys file restores a lost database',
    { timeout: 240_000 },
    async () => {
      const { id } = await run(url, `select 'Rosalinde'`)
      const { id: kept } = await run(url, `select 'Eisenstein'`)
      const { id: later } = await run(url, `select 'Orlofsky'`)
      expect(await command('forget', '--query', id, '--by', 'officer')).toMatchObject({
        code: 0,
        stderr: '',
        stdout: expect.stringMatching(/^Query \S+ is forgotten: data of \d+ events was removed\n$/),
      })
      expect((await command('forget', '--query', id)).stdout).toBe(`Query ${id} was already forgotten\n`)
      for (const path of ['', '/events', '/trace', '?asOf=1']) expect(await statusOf(id, path)).toBe(410)
      expect(await (await fetch(`${url}/v1/query/${kept}`)).text()).toContain('Eisenstein')
      const keys = join(data, 'data-keys.jsonl')
      expect(statSync(keys).mode & 0o777).toBe(0o600)
      expect(readFileSync(keys, 'utf8')).toContain('null')

      quipu.signal('SIGKILL')
      await quipu.exit
      await start()
      expect(await statusOf(id)).toBe(410)
      expect(await (await fetch(`${url}/v1/query/${kept}`)).text()).toContain('Eisenstein')
      expect(await publishedToOthers(id)).toEqual(
        ['created', 'planned', 'finished', 'forgotten'].map((what) => `quipu.public.query.${what}.v1`),
      )
      expect((await command('rebuild')).code).toBe(0)
      expect(await statusOf(id)).toBe(410)
      const verified = await command('audit', 'verify', '--read-models', '--json')
      expect(verified).toMatchObject({ code: 0, stderr: '' })
      expect(JSON.parse(verified.stdout)).toMatchObject({ summary: { findings: 0, tables: 10 } })
      quipu.signal('SIGTERM')
      expect((await quipu.exit).code).toBe(0)

      // Without a running server the command writes the log itself.
      expect((await command('forget', '--query', later)).stdout).toContain('is forgotten')
      // The whole database is lost, with the keys in it; the data folder has a copy of the keys.
      rmSync(join(data, 'postgres'), { recursive: true })
      await start()
      expect(await (await fetch(`${url}/v1/query/${kept}`)).text()).toContain('Eisenstein')
      for (const gone of [id, later]) expect(await statusOf(gone)).toBe(410)
      expect((await command('audit', 'verify', '--read-models')).stdout).toMatch(/^Nothing found in /)
      quipu.signal('SIGTERM')
      expect((await quipu.exit).code).toBe(0)

      // Without any copy of the keys the server does not start: otherwise all data would look forgotten.
      rmSync(join(data, 'postgres'), { recursive: true })
      rmSync(keys)
      const { code, stderr } = await spawnQuipu(['start', '--port', '0', '--data-dir', data], { env }).exit
      expect(stderr).toContain('bring back the table quipu_log.data_keys')
      expect(code).toBe(1)
    },
  )
})
