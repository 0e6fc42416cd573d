import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import kafkajs from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kafkaIsAvailable, sharedKafka } from '../support/kafka.ts'
import { spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

const available = await kafkaIsAvailable()

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

function start(name: string, brokers: string, topic: string): QuipuProcess {
  return spawnQuipu(['start', '--port', '0', '--data-dir', join(folder.path, name), '--kafka-topic', topic], {
    env: { KAFKA_BROKERS: brokers, QUIPU_LOG_LEVEL: 'silent' },
  })
}

async function refusalOf(quipu: QuipuProcess): Promise<string> {
  const { code, stderr, stdout } = await quipu.exit
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr.trim().split('\n')).toHaveLength(1)
  return stderr.trim()
}

const newTopic = () => `test-start-${randomBytes(6).toString('hex')}`

describe('A start with the event log in Kafka', () => {
  it('prints one line about Kafka if no broker can be reached', { timeout: 240_000 }, async () => {
    expect(await refusalOf(start('unreachable', '127.0.0.1:1', newTopic()))).toMatch(/^quipu: .*Kafka/)
  })

  describe.runIf(available)('A start with a running broker', () => {
    let brokers: readonly string[]
    beforeAll(async () => {
      brokers = (await sharedKafka()).brokers
    }, 240_000)

    it('names the setting of a topic that would delete events', { timeout: 240_000 }, async () => {
      const topic = newTopic()
      const admin = new kafkajs.Kafka({ brokers: [...brokers], logLevel: kafkajs.logLevel.NOTHING }).admin()
      await admin.connect()
      const configEntries = [{ name: 'retention.ms', value: '604800000' }]
      await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 1, configEntries }] })
      await admin.disconnect()
      const line = await refusalOf(start('deleting', brokers.join(), topic))
      expect(line).toContain(`Topic ${topic} has retention.ms=604800000`)
    })

    it('creates the topic, and restores the history after the database was deleted', { timeout: 240_000 }, async () => {
      const topic = newTopic()
      const first = start('kept', brokers.join(), topic)
      const { id } = await run(await first.url, "SELECT 'kept' AS word")
      first.signal('SIGTERM')
      const { code, stdout } = await first.exit
      expect(code).toBe(0)
      expect(stdout).toContain(`Kafka at ${brokers.join(', ')}`)

      rmSync(join(folder.path, 'kept', 'postgres'), { recursive: true })
      // The log ends with a record that does not count, like a duplicate that a retry of the producer leaves.
      const producer = new kafkajs.Kafka({ brokers: [...brokers], logLevel: kafkajs.logLevel.NOTHING }).producer()
      await producer.connect()
      await producer.send({ topic, messages: [{ key: 'foreign', value: 'not ours' }] })
      await producer.disconnect()
      const second = start('kept', brokers.join(), topic)
      const query = (await (await fetch(`${await second.url}/v1/query/${id}`)).json()) as object
      expect(query).toMatchObject({ queryId: id, state: 'FINISHED', query: "SELECT 'kept' AS word" })
      second.signal('SIGTERM')
      expect((await second.exit).code).toBe(0)
    })
  })
})
