import kafkajs from 'kafkajs'
import { ArchiveDamaged } from '../archive/archived-records.ts'
import type { RestoreTarget } from '../archive/restore-log.ts'
import { LogUnavailable, MisconfiguredLog } from '../event-log.ts'
import { formatHeader } from '../fold.ts'
import type { RecordStore, StoredRecord } from '../record-store.ts'
import { DEFAULT_TOPIC, type KafkaOptions } from './kafka-options.ts'

const MAX_SENT_BYTES = 8 << 20

/**
 * Runs work with a topic that contains only this log. Records from an earlier call are compared, and the work continues
 * behind them.
 * @param store of that topic, opened
 * @throws MisconfiguredLog when the topic contains something else
 */
export async function withTopicTarget<T>(
  { brokers, topic = DEFAULT_TOPIC, ssl, sasl }: Pick<KafkaOptions, 'brokers' | 'topic' | 'ssl' | 'sasl'>,
  store: Pick<RecordStore, 'fetch' | 'end'>,
  work: (target: RestoreTarget) => Promise<T>,
): Promise<T> {
  const kafka = new kafkajs.Kafka({
    clientId: 'quipu-restore',
    brokers: [...brokers],
    logLevel: kafkajs.logLevel.NOTHING,
    // No retries: a record that is sent again may land twice.
    retry: { retries: 0 },
    ...(ssl === undefined ? {} : { ssl }),
    ...(sasl === undefined ? {} : { sasl }),
  })
  const producer = kafka.producer({
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
  })
  const other = (offset: bigint): MisconfiguredLog =>
    new MisconfiguredLog(
      `Topic ${topic} has another record at offset ${offset} than the archive: restore into an empty topic`,
    )

  /** Compares records that the topic already has. @returns how many of the given records are there */
  async function compareThere(partition: number, records: readonly StoredRecord[]): Promise<number> {
    const end = await store.end(partition)
    const due = records.filter(({ offset }) => offset < end)
    for (let count = 0; count < due.length;) {
      const there = await store.fetch(partition, due[count]!.offset, due.length - count)
      if (there.length === 0) throw new LogUnavailable(`Offset ${due[count]!.offset} of topic ${topic} cannot be read`)
      for (const record of there) if (!isSame(record, due[count++]!)) throw other(record.offset)
    }
    return due.length
  }

  async function send(partition: number, records: readonly StoredRecord[]): Promise<void> {
    const messages = records.map(({ stream, text, header }) => ({
      partition,
      key: stream,
      value: text,
      ...(header && { headers: { quipu: formatHeader(header) } }),
    }))
    const [sent] = await producer.send({ topic, messages }).catch((cause: Error) => {
      throw new LogUnavailable(`Kafka refuses the records: ${cause.message}; run the command again`, { cause })
    })
    if (sent?.baseOffset !== String(records[0]!.offset)) throw other(records[0]!.offset)
  }

  try {
    await producer.connect()
    return await work({
      async begin(_, from) {
        if (from.some(({ offset }) => offset > 0n))
          throw new MisconfiguredLog('--period needs --into postgres://…: a topic must begin with the first period')
      },
      async put(partition, records) {
        if (records.some(({ sequence }) => sequence !== undefined))
          throw new ArchiveDamaged('The archive belongs to a log in Postgres: restore it with --into postgres://…')
        const missing = records.slice(await compareThere(partition, records))
        for (const some of inParts(missing)) await send(partition, some)
      },
      async finish() {},
    })
  } finally {
    await producer.disconnect().catch(() => {})
  }
}

function* inParts(records: readonly StoredRecord[]): Iterable<readonly StoredRecord[]> {
  let part: StoredRecord[] = []
  let bytes = 0
  for (const record of records) {
    if (part.length > 0 && bytes + record.text.length > MAX_SENT_BYTES) {
      yield part
      part = []
      bytes = 0
    }
    part.push(record)
    bytes += record.text.length
  }
  if (part.length > 0) yield part
}

function isSame(one: StoredRecord, other: StoredRecord): boolean {
  const textOf = ({ offset, header, stream, text }: StoredRecord): string =>
    JSON.stringify([String(offset), header ? formatHeader(header) : '', stream, text])
  return textOf(one) === textOf(other)
}
