import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import kafkajs from 'kafkajs'
import pg from 'pg'
import type { Finding } from '../../src/events/audit/finding.ts'
import type { EventLog } from '../../src/events/event-log.ts'
import type { EventLogOptions } from '../../src/events/folded-event-log.ts'
import {
  createKeyRing,
  KafkaStoreBesidePostgres,
  type KafkaEventLogOptions,
} from '../../src/events/kafka-beside-postgres.ts'
import { createProjectionRunner, type ProjectionRunner } from '../../src/events/projection-runner.ts'
import type { StoredRecord } from '../../src/events/record-store.ts'
import { verifyLog } from '../../src/readmodels/audit/verify-log.ts'
import type { VerifyOptions } from '../../src/readmodels/audit/verify-options.ts'
import { createReadModelsProjection } from '../../src/readmodels/projection.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { isQueryId } from '../../src/shared/ids.ts'
import { allRecords } from './event-log/log-fixture.ts'
import { createMigratedDatabase } from './event-log/migrated-database.ts'
import { sharedKafka } from './kafka.ts'
import { temporaryFolder } from './quipu-process.ts'

/** A database, and topics for one log and its copies: all parts of a log in Kafka, including data keys. */
export async function openKafkaAuditBed(archives: Pick<EventLogOptions, 'archiveOf' | 'archivedLogs'> = {}) {
  const { brokers } = await sharedKafka()
  const kafka = new kafkajs.Kafka({ brokers: [...brokers], logLevel: kafkajs.logLevel.NOTHING })
  const folder = temporaryFolder()
  const database = await createMigratedDatabase()
  const connection = { connectionString: database.url }
  const pool = new pg.Pool({ ...connection, max: 2, options: '-c search_path=m,public' })
  pool.on('error', () => {})
  const topics: string[] = []
  const newTopic = (): string => {
    topics.push(`test-audit-${randomBytes(6).toString('hex')}`)
    return topics.at(-1)!
  }
  const topic = newTopic()
  /** @param file a file in the data folder of a process */
  const optionsOf = (file: string): KafkaEventLogOptions => ({
    brokers,
    topic,
    database: connection,
    dataKeys: { file: join(folder.path, file), encrypts: isQueryId },
  })

  async function withStore<T>(of: string, work: (store: KafkaStoreBesidePostgres) => Promise<T>): Promise<T> {
    const store = new KafkaStoreBesidePostgres({ brokers, topic: of, database: connection }, archives)
    try {
      await store.open()
      return await work(store)
    } finally {
      await store.close()
    }
  }

  return {
    kafka,
    folder: folder.path,
    pool,
    connection,
    topic,
    newTopic,
    optionsOf,
    recordsOf: (of = topic): Promise<StoredRecord[]> => withStore(of, allRecords),
    async audit(
      options: Pick<VerifyOptions, 'compareWith' | 'exported' | 'keys' | 'archiveOf'> = {},
      of = topic,
    ): Promise<Finding[]> {
      const keyPool = new pg.Pool({ ...connection, max: 1 })
      // The database may be dropped before its connection closes, which an ended pool no longer handles.
      keyPool.on('connect', (client) => client.on('error', () => {}))
      const dataKeys = createKeyRing(keyPool, topic, { ...optionsOf('none').dataKeys!, keepsFile: false })
      const findings: Finding[] = []
      try {
        await dataKeys.open()
        await dataKeys.refresh()
        const onFinding = (finding: Finding): void => void findings.push(finding)
        await withStore(of, (store) =>
          verifyLog({ store, partitions: 1, database: connection, dataKeys, onFinding, ...options }),
        )
        return findings
      } finally {
        dataKeys.close()
        await keyPool.end()
      }
    },
    async project(log: EventLog): Promise<ProjectionRunner> {
      const runner = createProjectionRunner({
        log,
        projection: createReadModelsProjection(),
        database: connection,
        clock: systemClock,
        lingerMs: 5,
      })
      await runner.start()
      return runner
    },
    /** Changes the topic as an administrator of the broker would. */
    async deleteBelow(offset: bigint): Promise<void> {
      const admin = kafka.admin()
      await admin.connect()
      await admin.fetchTopicOffsets(topic)
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(offset) }] })
      await admin.disconnect()
    },
    async close() {
      await pool.end()
      await database.drop()
      const admin = kafka.admin()
      await admin.connect()
      for (const each of topics) await admin.deleteTopics({ topics: [each] }).catch(() => {})
      await admin.disconnect()
      await folder.remove()
    },
  }
}

export type KafkaAuditBed = Awaited<ReturnType<typeof openKafkaAuditBed>>
