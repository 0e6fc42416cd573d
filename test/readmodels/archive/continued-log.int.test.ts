import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import kafkajs from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { continueCommand } from '../../../src/cli/continue-command.ts'
import { startAnchorer } from '../../../src/coordinator/system/anchorer.ts'
import { forgetQuery } from '../../../src/coordinator/system/forget-query.ts'
import { VISITOR_ADDRESS } from '../../../src/coordinator/system/events.ts'
import { createSystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import { Archive } from '../../../src/events/archive/archive.ts'
import type { ExportedAnchor } from '../../../src/events/audit/anchor.ts'
import type { Finding } from '../../../src/events/audit/finding.ts'
import type { EventLog } from '../../../src/events/event-log.ts'
import { createKafkaEventLog, KafkaStoreBesidePostgres } from '../../../src/events/kafka-beside-postgres.ts'
import { logsBefore, refuseHalfContinued } from '../../../src/processes/event-log/logs-before.ts'
import { verifyLog } from '../../../src/readmodels/audit/verify-log.ts'
import { rebuildReadModels } from '../../../src/readmodels/rebuild.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { isQueryId } from '../../../src/shared/ids.ts'
import { collect, me, readAll } from '../../support/event-log/log-fixture.ts'
import { kafkaIsAvailable, sharedKafka } from '../../support/kafka.ts'
import { temporaryFolder, waitUntil } from '../../support/quipu-process.ts'
import { openReadModelBed, tableHashes, type ReadModelBed } from '../../support/read-models.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'

const made = generateKeyPairSync('ed25519')
const key = { private: made.privateKey, public: made.publicKey }
const node = 'node/worker-old'
const seen = { type: 'Seen', v: 1, time: '2026-01-01T00:00:00.000Z', data: {} }

describe.runIf(await kafkaIsAvailable())('A log in Kafka that continues a log in Postgres', () => {
  let bed: ReadModelBed
  let folder: ReturnType<typeof temporaryFolder>
  let brokers: readonly string[]
  let archive: Archive
  const topic = `test-continued-${randomBytes(5).toString('hex')}`
  const exported: ExportedAnchor[] = []
  const archives = {
    archiveOf: (logId: string): Archive =>
      new Archive({ root: join(folder.path, 'archive'), logId, canEnd: isQueryId }),
    archivedLogs: async () => [],
  }
  const anchorerOf = (log: EventLog) =>
    startAnchorer({
      log,
      partitions: 1,
      journal: createSystemJournal(log, systemClock),
      key,
      previous: undefined,
      everyMs: 60_000,
      everyEvents: 7,
      onAnchored: (anchor) => exported.push(anchor),
      onEnd: () => {},
    })

  beforeAll(async () => {
    folder = temporaryFolder()
    brokers = (await sharedKafka()).brokers
    bed = await openReadModelBed(undefined, archives)
    archive = archives.archiveOf((await bed.log.tip()).logId)
    writeFileSync(join(folder.path, 'key.pem'), key.private.export({ type: 'pkcs8', format: 'pem' }))
  })
  afterAll(async () => {
    await bed.close()
    const admin = new kafkajs.Kafka({ brokers: [...brokers], logLevel: kafkajs.logLevel.NOTHING }).admin()
    await admin.connect()
    await admin.deleteTopics({ topics: [topic, `${topic}-half`] }).catch(() => {})
    await admin.disconnect()
    await folder.remove()
  })

  const goOn = (): Promise<number> => {
    const settings = {
      'database-url': bed.database.url,
      'kafka-brokers': brokers.join(','),
      'kafka-topic': topic,
      'data-dir': join(folder.path, 'data'),
      'archive-folder': join(folder.path, 'archive'),
      'anchor-key': join(folder.path, 'key.pem'),
    }
    return continueCommand(
      Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
      {},
    )
  }
  const options = () => ({
    brokers,
    topic,
    database: bed.config,
    dataKeys: { file: join(folder.path, 'keys.jsonl'), encrypts: isQueryId },
  })

  async function audit(log: EventLog): Promise<readonly Finding[]> {
    const findings: Finding[] = []
    const store = new KafkaStoreBesidePostgres(options(), archives)
    try {
      const { partitions } = await store.open()
      await verifyLog({
        store,
        partitions,
        database: bed.config,
        compareWith: log,
        exported,
        keys: [key.public],
        archiveOf: archives.archiveOf,
        onFinding: (finding) => findings.push(finding),
      })
      return findings
    } finally {
      await store.close()
    }
  }

  it('is one chain with the old log, and reads and forgets queries of both', { timeout: 180_000 }, async () => {
    const anchorer = anchorerOf(bed.log)
    const journal = createSystemJournal(bed.log, systemClock)
    await bed.log.append(node, 0, [seen])
    await appendLives(
      bed.log,
      [0, 1].map((n) => ({ queryId: testQueryId(n), events: queryLife(testQueryId(n)) })),
    )
    await waitUntil('an anchor is made', () => exported.length > 0)
    await anchorer.stop()
    const open = testQueryId(2)
    await bed.log.append(open, 0, toLogEvents(queryLife(open)).slice(0, 1))
    await journal.record('EpochEnded', {
      epoch: 1,
      writer: (await bed.log.tip()).at[0]!.state.writer,
      reason: 'drained',
    })
    await expect(goOn()).rejects.toThrow('1 queries are still open')
    const writer = await reclaim()
    await writer.append(open, 1, toLogEvents(queryLife(open)).slice(1))
    await writer.close()
    mkdirSync(join(archive.folder, 'queries', 'x'), { recursive: true })
    await cutOff()
    expect(await goOn()).toBe(0)
    const [period] = await archive.reread()
    expect(await goOn()).toBe(0)
    expect(await archive.reread()).toEqual([period])
    const old = await readAll(bed.log)
    const log = createKafkaEventLog(options(), archives)
    await log.open()
    await refuseHalfContinued(log)
    const epoch = await log.claim(me)
    const runner = await bed.startRunner({ log })
    const next = anchorerOf(log)
    const anchors = exported.length
    await log.append(node, 1, [seen])
    await appendLives(log, [{ queryId: testQueryId(3), events: queryLife(testQueryId(3)) }])
    await waitUntil('an anchor is made', () => exported.length > anchors)
    await next.stop()
    expect(await runner.barrier(60_000)).toBe(true)
    // The files of archived queries belong to the new log.
    expect(readdirSync(join(archives.archiveOf((await log.tip()).logId).folder, 'queries'))).toEqual(['x'])
    expect(existsSync(join(archive.folder, 'queries'))).toBe(false)
    // Epochs and streams continue, and old events can be read.
    expect(epoch).toBe(period!.to[0]!.epoch + 2)
    const streams = await collect(log.readStream('system'))
    expect(streams.map(({ sequence }) => sequence)).toEqual(streams.map((_, index) => index + 1))
    expect(streams.map(({ type }) => type)).toContain('LogContinued')
    for (const n of [0, 2])
      expect(await collect(log.readStream(testQueryId(n)))).toEqual(
        old.filter(({ stream }) => stream === testQueryId(n)),
      )
    expect((await collect(log.readStream(node))).map(({ sequence }) => sequence)).toEqual([1, 2])
    expect(await audit(log)).toEqual([])
    const forgotten = await forgetQuery({ log, journal: createSystemJournal(log, systemClock) }, testQueryId(0), {
      by: 'officer',
    })
    expect(forgotten).toEqual({ kind: 'forgotten', events: 7 })
    expect(await runner.barrier(60_000)).toBe(true)
    expect(await audit(log)).toEqual([])
    const hashes = await tableHashes(bed)
    const before = await logsBefore(log, archives.archiveOf)
    await rebuildReadModels({ log, before, database: bed.config, clock: systemClock })
    expect(await tableHashes(bed)).toEqual(hashes)
    // The archive answers for a query whose rows have left the read models.
    const left = old.filter(({ stream }) => stream === open)
    await bed.query('delete from query_events where stream = $1', [open])
    expect(await collect(log.readStream(open))).toEqual(left)
    expect(await collect(log.readStream(open, 2))).toEqual(left.slice(2))
    const gone = await forgetQuery({ log, journal: createSystemJournal(log, systemClock) }, open, { by: 'officer' })
    expect(gone).toEqual({ kind: 'forgotten', events: left.length })
    expect((await collect(log.readStream(open))).map(({ forgotten }) => forgotten)).toEqual(left.map(() => true))
    // An archive with another end belongs to another log.
    const path = join(archive.folderOf(period!), 'manifest.json')
    writeFileSync(path, JSON.stringify({ ...period, anchor: { ...period!.anchor, root: 'other' } }))
    expect((await audit(log)).map(({ kind }) => kind)).toContain('archive')
    await runner.stop()
    await log.close()
  })

  /** Leaves a topic as the command does if it is killed after its claim. */
  async function cutOff(): Promise<void> {
    const database = await openReadModelBed(undefined, archives)
    const half = createKafkaEventLog({ ...options(), topic: `${topic}-half`, database: database.config }, archives)
    await half.open()
    await refuseHalfContinued(half)
    await half.claim({ address: VISITOR_ADDRESS, version: 'test', above: 1 })
    await expect(refuseHalfContinued(half)).rejects.toThrow('quipu continue began the topic and was interrupted')
    await half.close()
    await database.close()
  }

  /** Opens and claims the log as a restarted coordinator does. */
  async function reclaim(): Promise<EventLog> {
    const { createPostgresEventLog } = await import('../../../src/events/postgres/postgres-event-log.ts')
    const log = createPostgresEventLog(bed.config, archives)
    await log.open()
    await log.claim({ address: '', version: 'test' })
    return log
  }
})
