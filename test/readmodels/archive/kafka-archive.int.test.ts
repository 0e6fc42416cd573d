import { generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readStreamsOfLog } from '../../../src/coordinator/recovery/streams-of-log.ts'
import { startAnchorer, type Anchorer } from '../../../src/coordinator/system/anchorer.ts'
import { forgetQuery } from '../../../src/coordinator/system/forget-query.ts'
import { createSystemJournal, type SystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import { Archive } from '../../../src/events/archive/archive.ts'
import { ArchiveDamaged } from '../../../src/events/archive/archived-records.ts'
import { archivePeriod, dropArchived, type DropperDeps } from '../../../src/events/archive/archiver.ts'
import { restoreLog } from '../../../src/events/archive/restore-log.ts'
import type { ExportedAnchor } from '../../../src/events/audit/anchor.ts'
import {
  Fenced,
  LogUnavailable,
  SequenceConflict,
  type EventLog,
  type Recorded,
} from '../../../src/events/event-log.ts'
import { createPostgresEventLog } from '../../../src/events/postgres/postgres-event-log.ts'
import { restoreCommand } from '../../../src/cli/restore-command.ts'
import { createMigratedDatabase } from '../../support/event-log/migrated-database.ts'
import { createKafkaEventLog, KafkaStoreBesidePostgres } from '../../../src/events/kafka-beside-postgres.ts'
import { withTopicTarget } from '../../../src/events/kafka/restore-target.ts'
import type { ProjectionRunner } from '../../../src/events/projection-runner.ts'
import { archiveLog } from '../../../src/processes/event-log/archive-log.ts'
import { rebuildReadModels } from '../../../src/readmodels/rebuild.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { epochOf, isQueryId } from '../../../src/shared/ids.ts'
import { collect, me, readAll } from '../../support/event-log/log-fixture.ts'
import { openKafkaAuditBed, type KafkaAuditBed } from '../../support/kafka-audit-bed.ts'
import { kafkaIsAvailable } from '../../support/kafka.ts'
import { temporaryFolder, waitUntil } from '../../support/quipu-process.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'

const made = generateKeyPairSync('ed25519')
const key = { private: made.privateKey, public: made.publicKey }
const all = {
  before: '9999-01-01T00:00:00.000Z',
  keepRecords: undefined,
  mostRecords: 1_000_000n,
  leastRecords: 1n,
  leastMs: 0,
}
const node = 'node/worker-old'
const seen = { type: 'Seen', v: 1, time: '2026-01-01T00:00:00.000Z', data: {} }

describe.runIf(await kafkaIsAvailable())('A topic whose first records are archived', () => {
  let bed: KafkaAuditBed
  let root: ReturnType<typeof temporaryFolder>
  let archive: Archive
  let log: EventLog
  let journal: SystemJournal
  let anchorer: Anchorer
  let runner: ProjectionRunner
  let store: KafkaStoreBesidePostgres
  let exported: ExportedAnchor[]
  const archives = {
    archiveOf: (logId: string): Archive => (archive ??= new Archive({ root: root.path, logId, canEnd: isQueryId })),
    archivedLogs: async () => readdirSync(root.path),
  }

  beforeEach(async () => {
    root = temporaryFolder()
    archive = undefined as unknown as Archive
    bed = await openKafkaAuditBed(archives)
    log = createKafkaEventLog(bed.optionsOf('writer.jsonl'), archives)
    await log.open()
    await log.claim(me)
    archives.archiveOf((await log.tip()).logId)
    store = new KafkaStoreBesidePostgres(bed.optionsOf('none'), archives)
    await store.open()
    runner = await bed.project(log)
    journal = createSystemJournal(log, systemClock)
    exported = []
    anchorer = startAnchorer({
      log,
      partitions: 1,
      journal,
      key,
      previous: undefined,
      everyMs: 60_000,
      everyEvents: 7,
      onAnchored: (anchor) => exported.push(anchor),
      onEnd: () => {},
    })
  })
  afterEach(async () => {
    await anchorer.stop()
    await runner.stop()
    await store.close()
    await log.close()
    await bed.close()
    await root.remove()
  })

  /** Appends `count` ended queries, with an anchor after each. */
  async function fill(from: number, count: number): Promise<void> {
    for (let number = from; number < from + count; number++) {
      const anchors = exported.length
      await appendLives(log, [{ queryId: testQueryId(number), events: queryLife(testQueryId(number)) }])
      await waitUntil('an anchor is made', () => exported.length > anchors)
    }
  }

  const query = async (text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> =>
    (await bed.pool.query<Record<string, unknown>>(text, [...values])).rows
  const low = async (): Promise<bigint> => {
    const admin = bed.kafka.admin()
    await admin.connect()
    const [first] = await admin.fetchTopicOffsets(bed.topic)
    await admin.disconnect()
    return BigInt(first!.low)
  }
  const parts = (over: Partial<DropperDeps> = {}): DropperDeps => ({
    store,
    dropper: store.dropper,
    archive,
    canEnd: isQueryId,
    epoch: 1,
    announce: async () => {},
    ...over,
  })
  const archiveAll = async () => {
    expect(await runner.barrier(60_000)).toBe(true)
    const { dropper } = store
    return archiveLog({ log, epoch: 1, journal, store, dropper, archive, query, key: key.public }, all)
  }
  const audit = () => bed.audit({ compareWith: log, exported, keys: [key.public], archiveOf: archives.archiveOf })
  const recordTexts = (): string[] =>
    readdirSync(archive.folder).flatMap((period) =>
      readdirSync(join(archive.folder, period))
        .filter((name) => /^\d/.test(name))
        .map((name) => gunzipSync(readFileSync(join(archive.folder, period, name))).toString()),
    )

  it('is one chain with its archive, forgets queries, and can be claimed without Postgres', async () => {
    await log.append(node, 0, [seen])
    await fill(0, 3)
    const open = testQueryId(3)
    await log.append(open, 0, toLogEvents(queryLife(open)).slice(0, 1))
    await fill(4, 1)
    const before = await readAll(log)
    const { archived, dropped } = await archiveAll()
    expect([archived.length, dropped.length]).toEqual([1, 1])
    const end = BigInt(archived[0]!.to[0]!.offset)
    expect(await low()).toBe(end)
    for (const text of recordTexts()) expect(text).not.toContain('alice')
    // Both the old reader and a new one get all events.
    expect((await readAll(log)).slice(0, before.length)).toEqual(before)
    const fresh = createKafkaEventLog(bed.optionsOf('fresh.jsonl'), archives)
    await fresh.open()
    expect((await readAll(fresh)).slice(0, before.length)).toEqual(before)
    await fresh.close()
    await bed.pool.query('delete from query_events where stream = $1', [testQueryId(0)])
    expect(await collect(log.readStream(testQueryId(0), 2))).toEqual(
      before.filter(({ stream, sequence }) => stream === testQueryId(0) && sequence > 2),
    )
    // The archive marks the forgotten events, and keeps the names of their removed keys.
    const encrypted = recordTexts()
      .join('')
      .match(/"aes[^"\\]*/g)!.length
    for (const queryId of [0, 1, 4].map(testQueryId))
      expect(await forgetQuery({ log, journal }, queryId, { by: 'officer' })).toMatchObject({ kind: 'forgotten' })
    expect(
      recordTexts()
        .join('')
        .match(/"forgotten\\":true/g),
    ).toHaveLength(14)
    expect(
      recordTexts()
        .join('')
        .match(/"aes[^"\\]*/g)!.length,
    ).toBe(encrypted)
    await rebuildReadModels({ log, database: bed.connection, clock: systemClock })
    expect(await runner.barrier(60_000)).toBe(true)
    expect(await audit()).toEqual([])
    // A new writer reads nothing from the archive but the last events of streams that never end.
    const fetched: bigint[] = []
    const counted = (logId: string): Archive => {
      const own = new Archive({ root: root.path, logId, canEnd: isQueryId })
      const fetch = own.fetch.bind(own)
      own.fetch = (partition, from, limit) => (fetched.push(from), fetch(partition, from, limit))
      return own
    }
    const next = createKafkaEventLog(
      { ...bed.optionsOf('writer.jsonl'), database: { connectionString: 'postgres://nobody@127.0.0.1:1/none' } },
      { ...archives, archiveOf: counted, bornIn: epochOf },
    )
    await next.open()
    await next.claim(me)
    const streams = await readStreamsOfLog(next, { endedSince: '2000-01-01', onLeftOut: () => {} })
    expect(streams.open).toEqual([open])
    await expect(next.append(node, 0, [seen])).rejects.toThrow(SequenceConflict)
    await next.append(node, 1, [seen])
    const own = testQueryId(9).replace(/1$/, '2')
    await next.append(own, 0, toLogEvents(queryLife(own)))
    await next.append(open, 1, toLogEvents(queryLife(open)).slice(1))
    expect(fetched).toEqual([])
    await next.close()
    expect(await audit()).toEqual([])
  })

  it('loses no event if archiving is interrupted or a period is damaged', async () => {
    await fill(0, 3)
    expect(await runner.barrier(60_000)).toBe(true)
    const before = await readAll(log)
    const period = await archivePeriod(parts(), exported.at(-1)!)
    const path = join(archive.folderOf(period), period.segments[0]!.name)
    const whole = readFileSync(path)
    writeFileSync(path, whole.subarray(0, 60))
    await expect(dropArchived(parts())).rejects.toThrow(ArchiveDamaged)
    writeFileSync(path, whole)
    const cut = async (): Promise<never> => {
      throw new LogUnavailable('cut off')
    }
    await expect(dropArchived(parts({ announce: cut }))).rejects.toThrow('cut off')
    expect(await low()).toBe(0n)
    const { dropper } = store
    const drop: typeof dropper.drop = async (one) => (await dropper.drop(one), cut())
    await expect(dropArchived(parts({ dropper: { ...dropper, drop } }))).rejects.toThrow('cut off')
    expect(await readAll(log)).toEqual(before)
    expect(await dropArchived(parts())).toEqual([])
    expect(await audit()).toEqual([])
    // Records that are forgotten only in the archive, and not by their key, count as damaged.
    await fill(3, 1)
    await archivePeriod(parts(), exported.at(-1)!)
    await archive.forget(new Map([[testQueryId(3), new Set([1])]]), [0n])
    await expect(dropArchived(parts())).rejects.toThrow('of the log differs from its copy in the archive')
    // A writer that lost its epoch can neither drop nor forget records.
    const next = createKafkaEventLog(bed.optionsOf('next.jsonl'), archives)
    await next.open()
    await next.claim(me)
    await expect(
      store.dropper.drop({ partition: 0, to: { offset: 1n } as never, logId: '', epoch: 1 }),
    ).rejects.toThrow(Fenced)
    await expect(store.forget(testQueryId(0), [1], 1)).rejects.toThrow(Fenced)
    await next.close()
  })

  it('is restored into an empty topic, and an interrupted restore can be continued', async () => {
    await fill(0, 2)
    const { number, to } = await archivePeriod(parts(), exported.at(-1)!)
    const topic = bed.newTopic()
    const options = { ...bed.optionsOf('none'), topic }
    const target = new KafkaStoreBesidePostgres(options)
    await target.open()
    let puts = 0
    const restore = (most: number) =>
      withTopicTarget(options, target, (into) =>
        restoreLog({
          archive,
          first: 1,
          last: number,
          canEnd: isQueryId,
          keys: [key.public],
          target: {
            ...into,
            put: async (partition, records) => {
              for (const record of records) {
                if (++puts > most) throw new LogUnavailable('cut off')
                await into.put(partition, [record])
              }
            },
          },
        }),
      )
    await expect(restore(5)).rejects.toThrow('cut off')
    expect(await target.end(0)).toBe(5n)
    expect(await restore(1000)).toHaveLength(1)
    expect(String(await target.end(0))).toBe(to[0]!.offset)
    const kept = (await bed.recordsOf()).slice(0, Number(to[0]!.offset))
    expect(await bed.recordsOf(topic)).toEqual(kept)
    // A topic with other records is refused.
    await fill(2, 1)
    await expect(
      withTopicTarget({ ...options, topic: bed.topic }, store, (into) => into.put(0, [{ ...kept[3]!, text: 'other' }])),
    ).rejects.toThrow('has another record at offset 3')
    await target.close()
  })

  it(
    'is restored into Postgres, completely or one period, decrypted with the keys of its queries',
    { timeout: 180_000 },
    async () => {
      await fill(0, 3)
      const forgotten = testQueryId(1)
      expect(await forgetQuery({ log, journal }, forgotten, { by: 'officer' })).toMatchObject({ kind: 'forgotten' })
      await archivePeriod(parts(), exported.at(-1)!)
      await fill(3, 1)
      await anchorer.stop()
      const kept = await readAll(log)
      await log.close()

      const settings = {
        'database-url': bed.connection.connectionString,
        'kafka-brokers': bed.optionsOf('none').brokers.join(','),
        'kafka-topic': bed.topic,
        'data-dir': join(bed.folder, 'data'),
        'archive-folder': root.path,
      }
      const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
      const whole = await createMigratedDatabase()
      const part = await createMigratedDatabase()
      expect(await restoreCommand(['--from', 'topic', '--into', whole.url, ...flags], {})).toBe(0)
      expect(await restoreCommand(['--into', part.url, '--period', '1', ...flags], {})).toBe(0)

      const inPostgres = createPostgresEventLog({ connectionString: whole.url }, archives)
      await inPostgres.open()
      const summaryOf = (events: readonly Recorded[]) =>
        events.map(({ stream, sequence, hash, data, forgotten }) => ({ stream, sequence, hash, data, forgotten }))
      expect(summaryOf(await readAll(inPostgres))).toEqual(summaryOf(kept))
      const eventsOf = (stream: string): Promise<Recorded[]> => collect(inPostgres.readStream(stream))
      const [query0, query1] = [await eventsOf(testQueryId(0)), await eventsOf(forgotten)]
      expect(query0.map(({ data }) => data)).not.toContain(null)
      expect(query1.every((event) => event.forgotten)).toBe(true)
      // The log continues in Postgres without encryption, and can forget queries there.
      await inPostgres.claim(me)
      await appendLives(inPostgres, [{ queryId: testQueryId(9), events: queryLife(testQueryId(9)) }])
      await inPostgres.forget(
        testQueryId(0),
        query0.map(({ sequence }) => sequence),
      )
      expect((await eventsOf(testQueryId(0))).every((event) => event.forgotten)).toBe(true)
      await inPostgres.close()

      const ofPeriod = createPostgresEventLog({ connectionString: part.url }, archives)
      await ofPeriod.open()
      expect((await readAll(ofPeriod)).some(({ stream }) => stream === testQueryId(2))).toBe(true)
      await ofPeriod.close()
      // A second restore is refused, because the log already exists.
      await expect(restoreCommand(['--from', 'topic', '--into', whole.url, ...flags], {})).rejects.toThrow(
        'already has an event log',
      )
      await Promise.all([whole.drop(), part.drop()])
    },
  )

  it('is accepted with fewer deleted records than archived ones, and refused with more', async () => {
    await fill(0, 2)
    const before = await readAll(log)
    await archivePeriod(parts(), exported.at(-1)!)
    await bed.deleteBelow(5n)
    const opened = createKafkaEventLog(bed.optionsOf('late.jsonl'), archives)
    await opened.open()
    expect((await readAll(opened)).slice(0, before.length)).toEqual(before)
    await opened.close()
    const without = new KafkaStoreBesidePostgres(bed.optionsOf('none'))
    await expect(without.open()).rejects.toThrow('begins at offset 5 in partition 0: earlier records were deleted')
    await without.close()
    await fill(2, 1)
    await bed.deleteBelow(BigInt(exported.at(-1)!.at[0]!.offset))
    const lost = createKafkaEventLog(bed.optionsOf('late.jsonl'), archives)
    await expect(lost.open()).rejects.toThrow('earlier records were deleted, and no archive')
    await lost.close()
  })
})
