import kafkajs from 'kafkajs'
import { pagesTopicOf } from '../../src/events/kafka/kafka-options.ts'
import { Fault, type AttackFamily, type CaseContext } from './attack-case.ts'
import type { AttackBed } from './bed.ts'
import { runStatement, sessionHeaders } from './statement.ts'

const producers = new WeakMap<AttackBed, Promise<kafkajs.Producer>>()

async function producerOf(bed: AttackBed): Promise<kafkajs.Producer> {
  const known =
    producers.get(bed) ??
    (async () => {
      const kafka = new kafkajs.Kafka({ brokers: [...bed.kafka!.brokers], logLevel: kafkajs.logLevel.NOTHING })
      const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
      await producer.connect()
      return producer
    })()
  producers.set(bed, known)
  return known
}

/** Disconnects the Kafka producer of a bed. */
export async function closeLogAttacks(bed: AttackBed): Promise<void> {
  await (await producers.get(bed))?.disconnect()
}

/** Records of foreign programs in the topics: every reader must ignore them. */
export const foreignRecords: AttackFamily = {
  name: 'foreign records',
  weight: 25,
  needs: 'kafka',
  async run(context) {
    const { random, texts, bed, wire } = context
    const producer = await producerOf(bed)
    const topic = random.chance(0.7) ? bed.kafka!.topic : pagesTopicOf(bed.kafka!.topic)
    const messages = Array.from({ length: random.whole(1, 5) }, () => {
      const value = random.pick([
        null,
        '',
        texts.json(),
        texts.bytes(3000),
        'x'.repeat(random.pick([10, 500_000])),
        '{"type":"QueryCreated"}',
      ])
      const key = random.pick([null, texts.json(), 'query/20000101_000000_00000_00000', 'system', texts.bytes(50)])
      return { key, value, headers: { [random.pick(['quipu', 'x', ''])]: headerOf(context) }, partition: 0 }
    })
    for (const { key, value, headers } of messages)
      wire.note(`${topic} ${String(key)} ${JSON.stringify(headers)} ${String(value)}\n`)
    await producer.send({ topic, messages })
  },
}

/** A header of a record that the current writer would never write. */
function headerOf({ random, texts }: CaseContext): string | Buffer {
  const kind = random.whole(0, 5)
  if (kind === 0) return texts.json()
  if (kind === 1) return texts.bytes(200)
  if (kind === 2) return JSON.stringify({ kind: 'event', epoch: 0, writer: 'nobody', number: 1 })
  if (kind === 3) return `event|0|nobody|${random.whole(0, 9)}|0|0||0|0|`
  if (kind === 4) return `{"kind":"epoch","epoch":-1,"writer":"${random.whole(0, 9)}"}`
  return ''
}

/** A stored page with changed bytes: it counts as lost and must never reach a client. */
export const alteredPages: AttackFamily = {
  name: 'altered pages',
  weight: 10,
  async run(context) {
    const { random, texts, bed, wire } = context
    if (bed.log !== 'postgres') return
    const base = bed.coordinators[0].url
    const posted = await wire.ask(`${base}/v1/statement`, {
      body: 'SELECT name FROM tpch.tiny.nation',
      headers: sessionHeaders,
    })
    const { id, nextUri } = JSON.parse(posted.text) as { id: string; nextUri?: string }
    const garbage = random.pick([Buffer.alloc(0), texts.bytes(500), Buffer.from('[["stolen"]]'), Buffer.from('{')])
    wire.note(Buffer.concat([Buffer.from(`result_pages of ${id}: `), garbage]))
    await bed.database.query('update quipu_log.result_pages set bytes = $1 where stream like $2', [garbage, `%${id}%`])
    for (let next = nextUri; next !== undefined;) {
      const answer = await wire.ask(next, { mayFail: true })
      if (answer.text.includes('stolen')) throw new Fault('an altered page is given out')
      if (answer.status === 500) throw new Fault(`an altered page: ${answer.status} ${answer.text}`)
      if (answer.status !== 200) return
      next = (JSON.parse(answer.text) as { nextUri?: string }).nextUri
    }
    await runStatement(context, 'SELECT 1')
  },
}
