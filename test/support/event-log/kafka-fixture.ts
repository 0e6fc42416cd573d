import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Kafka, logLevel, Partitioners, type ISocketFactory } from 'kafkajs'
import pg from 'pg'
import { afterAll } from 'vitest'
import {
  checkpointToJson,
  beginning,
  type EventLog,
  type Recorded,
  type Checkpoint,
} from '../../../src/events/event-log.ts'
import { storedEncoding } from '../../../src/events/envelope.ts'
import { FoldedEventLog } from '../../../src/events/folded-event-log.ts'
import { formatHeader } from '../../../src/events/fold.ts'
import {
  createKafkaEventLog,
  KafkaStoreBesidePostgres,
  type KafkaEventLogOptions,
} from '../../../src/events/kafka-beside-postgres.ts'
import { ensureTopics } from '../../../src/events/kafka/topic.ts'
import type { RecordStore, StoredRecord } from '../../../src/events/record-store.ts'
import { startFaultProxy, type FaultProxy } from '../fault-proxy.ts'
import { pagesTopicOf } from '../../../src/events/kafka/kafka-options.ts'
import { sharedKafka, startKafka, type TestKafka } from '../kafka.ts'
import {
  openedQuietly,
  type Broken,
  type FixtureOptions,
  type LogAdapter,
  type LogFixture,
  type OpenOptions,
} from './log-fixture.ts'
import { spawnLogProcess, type LogProcess } from './log-process.ts'
import { createMigratedDatabase } from './migrated-database.ts'

export const kafkaAdapter: LogAdapter = { technology: 'kafka', fixture: createKafkaFixture }

let own: Promise<TestKafka> | undefined
/** A broker that tests may kill: one for all tests of a file, because a broker needs seconds to start. */
function ownBroker(): Promise<TestKafka> {
  own ??= startKafka()
  return own
}
afterAll(async () => {
  await (await own)?.stop()
})

async function createKafkaFixture(options: FixtureOptions = {}, broken: Broken = {}): Promise<LogFixture> {
  const broker = options.ownServer ? await ownBroker() : await sharedKafka()
  const database = await createMigratedDatabase()
  const topic = `test-${randomBytes(6).toString('hex')}`
  const key = randomBytes(32)
  const partitions = options.partitions ?? 1
  const logs: EventLog[] = []
  const stores: RecordStore[] = []
  const proxies: FaultProxy[] = []
  const processes: LogProcess[] = []
  const kafka = new Kafka({ brokers: [...broker.brokers], logLevel: logLevel.NOTHING })
  const folder = mkdtempSync(join(tmpdir(), 'quipu-keys-'))
  let clients = 0
  const configOf = (via?: FaultProxy): KafkaEventLogOptions => ({
    brokers: broker.brokers,
    topic,
    partitions,
    pages: { key },
    database: { connectionString: database.url },
    // On a busy machine the projection of the test can be far behind. A broken adapter must fail soon.
    ...(Object.keys(broken).length === 0 && { streams: { waitMs: 60_000 } }),
    // Each client has a separate data folder, as on a separate machine.
    dataKeys: { file: join(folder, `${++clients}.jsonl`) },
    ...(via ? { socketFactory: through(via) } : {}),
  })
  const produce = async (
    messages: { key: string; value: string; headers?: Record<string, string> }[],
  ): Promise<void> => {
    const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    await producer.send({ topic, messages: messages.map((message) => ({ ...message, partition: 0 })) })
    await producer.disconnect()
  }
  let projector = await startProjector(configOf())
  const resetDatabase = async (): Promise<void> => {
    await projector.stop()
    const client = new pg.Client(database.url)
    await client.connect()
    await client.query('truncate m.query_events, m.checkpoints, quipu_log.result_pages')
    await client.end()
  }
  return {
    technology: 'kafka',
    partitions,
    details: { topic, url: database.url, broker: broker.brokers[0]! },
    async open(open: OpenOptions = {}) {
      const config = configOf(open.via)
      const store = broken.kafkaStore?.(config, open) ?? new KafkaStoreBesidePostgres(config, open)
      const log = openedQuietly(new FoldedEventLog(store, open, broken.seams), broken)
      logs.push(log)
      await log.open()
      return log
    },
    async store(open: OpenOptions = {}) {
      const store = new KafkaStoreBesidePostgres(configOf(open.via), open)
      stores.push(store)
      await store.open()
      return store
    },
    async proxy() {
      const proxy = await startFaultProxy({ host: broker.host, port: broker.port })
      proxies.push(proxy)
      return proxy
    },
    async spawn() {
      const process = await spawnLogProcess({ technology: 'kafka', kafka: configOf(), split: broken.splitInProcess })
      processes.push(process)
      return process
    },
    putForeign: (text) => produce([{ key: 'foreign', value: text }]),
    server: options.ownServer
      ? { kill: () => broker.kill(), start: () => broker.start(), freeze: () => broker.freeze() }
      : undefined,
    async restore(records: readonly StoredRecord[]) {
      await resetDatabase()
      const admin = kafka.admin()
      await admin.connect()
      await admin.deleteTopics({ topics: [topic] })
      while ((await admin.listTopics()).includes(topic)) await new Promise((resolve) => setTimeout(resolve, 20))
      await admin.disconnect()
      await ensureTopics(kafka, [{ topic, holds: 'events', partitions }])
      if (records.length > 0)
        await produce(
          records.map(({ stream, text, header }) => ({
            key: stream,
            value: text,
            headers: { quipu: formatHeader(header!) },
          })),
        )
      projector = await startProjector(configOf())
    },
    async deleteDatabase() {
      await resetDatabase()
      projector = await startProjector(configOf())
    },
    async close() {
      await Promise.all(processes.map((each) => each.kill()))
      for (const proxy of proxies) proxy.release()
      await Promise.all([...logs, ...stores, projector].map((each) => ('close' in each ? each.close() : each.stop())))
      await Promise.all(proxies.map((each) => each.close()))
      const admin = kafka.admin()
      await admin.connect()
      await admin.deleteTopics({ topics: [topic, pagesTopicOf(topic)] }).catch(() => {})
      await admin.disconnect()
      await database.drop()
      rmSync(folder, { recursive: true })
    },
  }
}

function through(proxy: FaultProxy): ISocketFactory {
  return ({ onConnect }) => {
    const socket = connect({ host: '127.0.0.1', port: proxy.port }, onConnect)
    socket.setNoDelay(true)
    return socket
  }
}

const COLUMNS = ['position', 'partition', 'stream', 'sequence', 'epoch', 'type', 'v', 'time', 'traceparent'] as const
const MORE_COLUMNS = ['prevhash', 'hash', 'digest', 'enc', 'data', 'forgotten'] as const

/** A minimal projection: `query_events` and its checkpoint, in one transaction. */
async function startProjector(options: KafkaEventLogOptions): Promise<{ stop(): Promise<void> }> {
  const client = new pg.Client(options.database)
  client.on('error', () => {})
  await client.connect()
  await client.query(`create table if not exists m.query_events_default partition of m.query_events default`)
  const log = createKafkaEventLog(options)
  await log.open()
  const store = async (batch: readonly Recorded[], next: Checkpoint): Promise<void> => {
    await client.query('begin')
    for (const event of batch) {
      const values = [
        String(event.position.offset),
        event.position.partition,
        event.stream,
        event.sequence,
        event.epoch,
        event.type,
        event.v,
        event.time,
        event.traceparent ?? null,
        event.prevhash,
        event.hash,
        event.digest,
        storedEncoding(event),
        event.stored,
        event.forgotten ?? false,
      ]
      await client.query({
        name: 'project',
        text: `insert into m.query_events ("${[...COLUMNS, ...MORE_COLUMNS].join('", "')}")
          values (${values.map((_, index) => `$${index + 1}`).join(', ')})`,
        values,
      })
    }
    await client.query(
      `insert into m.checkpoints (name, version, revision, checkpoint, events, updated_at)
       values ('readmodels', 1, 0, $1, 0, now()) on conflict (name, version) do update set checkpoint = excluded.checkpoint`,
      [checkpointToJson(next)],
    )
    await client.query('commit')
  }
  const subscription = log.subscribe(beginning(options.partitions), store)
  return {
    async stop() {
      await subscription.stop()
      await log.close()
      await client.end().catch(() => {})
    },
  }
}
