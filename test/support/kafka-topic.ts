import { randomBytes } from 'node:crypto'
import { Kafka, logLevel } from 'kafkajs'
import { until } from './event-log/log-fixture.ts'

/** A message as a consumer reads it. */
export interface TopicMessage {
  readonly partition: number
  readonly key: string
  readonly text: string
  readonly contentType: string
}

/** The messages of a topic from its beginning until `isEnough` returns true. */
export async function readTopic(
  brokers: readonly string[],
  topic: string,
  isEnough: (found: readonly TopicMessage[]) => boolean,
): Promise<readonly TopicMessage[]> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING })
  const consumer = kafka.consumer({ groupId: `test-${randomBytes(5).toString('hex')}` })
  const found: TopicMessage[] = []
  await consumer.connect()
  try {
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      eachMessage: ({ partition, message }) => {
        const { key, value, headers } = message
        const contentType = String(headers?.['content-type'])
        found.push({ partition, key: String(key), text: String(value), contentType })
        return Promise.resolve()
      },
    })
    await until(() => isEnough(found))
    return found
  } finally {
    await consumer.disconnect()
  }
}
