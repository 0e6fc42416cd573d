import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startAnchorer, type Anchorer } from '../../../src/coordinator/system/anchorer.ts'
import { forgetQuery } from '../../../src/coordinator/system/forget-query.ts'
import { createSystemJournal, type SystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import { Archive } from '../../../src/events/archive/archive.ts'
import { ArchiveDamaged } from '../../../src/events/archive/archived-records.ts'
import { archivePeriod, dropArchived, type DropperDeps } from '../../../src/events/archive/archiver.ts'
import { auditArchive } from '../../../src/events/archive/audit-archive.ts'
import type { PeriodManifest } from '../../../src/events/archive/manifest.ts'
import { writePeriod } from '../../../src/events/archive/write-period.ts'
import type { AnchorKey, ExportedAnchor } from '../../../src/events/audit/anchor.ts'
import type { Finding } from '../../../src/events/audit/finding.ts'
import { beginning, LogUnavailable, SequenceConflict, type Recorded } from '../../../src/events/event-log.ts'
import { restoreCommand } from '../../../src/cli/restore-command.ts'
import { createPostgresEventLog } from '../../../src/events/postgres/postgres-event-log.ts'
import { PostgresRecordStore } from '../../../src/events/postgres/postgres-record-store.ts'
import type { RecordDropper } from '../../../src/events/record-store.ts'
import { archiveLog, type ArchiveLogDeps } from '../../../src/processes/event-log/archive-log.ts'
import { verifyLog, type AuditSummary } from '../../../src/readmodels/audit/verify-log.ts'
import { rebuildReadModels } from '../../../src/readmodels/rebuild.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { isQueryId } from '../../../src/shared/ids.ts'
import { createMigratedDatabase } from '../../support/event-log/migrated-database.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { openReadModelBed, tableHashes, type ReadModelBed } from '../../support/read-models.ts'
import { waitUntil } from '../../support/quipu-process.ts'

let bed: ReadModelBed
let root: string
let archive: Archive
let store: PostgresRecordStore
let journal: SystemJournal
let anchorer: Anchorer
let exported: ExportedAnchor[]
const made = generateKeyPairSync('ed25519')
const key: AnchorKey = { private: made.privateKey, public: made.publicKey }
const FAR = '9999-01-01T00:00:00.000Z'
const node = 'node/worker-old'

const archiveOf = (logId: string): Archive => (archive ??= new Archive({ root, logId, canEnd: isQueryId }))

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'quipu-archive-'))
  archive = undefined as unknown as Archive
  bed = await openReadModelBed(undefined, { archiveOf })
  archiveOf((await bed.log.tip()).logId)
  store = new PostgresRecordStore(bed.config, { archiveOf })
  await store.open()
  journal = createSystemJournal(bed.log, systemClock)
  exported = []
  anchorer = startAnchorer({
    log: bed.log,
    partitions: 1,
    journal,
    key,
    previous: undefined,
    everyMs: 60_000,
    everyEvents: 7,
    onAnchored: (anchor) => exported.push(anchor),
    // The anchorer ends in tests where another writer claims the log.
    onEnd: () => {},
  })
})
afterEach(async () => {
  await anchorer.stop()
  await store.close()
  await bed.close()
  rmSync(root, { recursive: true, force: true })
})

/** Appends `count` ended queries, with an anchor after each. */
async function fill(from: number, count: number): Promise<void> {
  for (let number = from; number < from + count; number++) {
    const anchors = exported.length
    await appendLives(bed.log, [{ queryId: testQueryId(number), events: queryLife(testQueryId(number)) }])
    await waitUntil('an anchor is made', () => exported.length > anchors)
  }
}

async function project(): Promise<void> {
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  await runner.stop()
}

const reportedEvents: string[] = []
function parts(over: Partial<DropperDeps> = {}): DropperDeps {
  return {
    store,
    dropper: store.dropper,
    archive,
    canEnd: isQueryId,
    epoch: 1,
    announce: async (type, { number }) => void reportedEvents.push(`${type} ${number}`),
    ...over,
  }
}

const logParts = (over: Partial<ArchiveLogDeps> = {}): ArchiveLogDeps => ({
  log: bed.log,
  epoch: 1,
  journal,
  store,
  dropper: store.dropper,
  archive,
  query: (text, values) => bed.query(text, [...values]),
  key: key.public,
  ...over,
})

const all = { before: FAR, keepRecords: undefined, mostRecords: 1_000_000n, leastRecords: 1n, leastMs: 0 }

async function audit(known: { readonly keys?: (typeof key.public)[] } = { keys: [key.public] }) {
  const findings: Finding[] = []
  const fresh = new PostgresRecordStore(bed.config, { archiveOf })
  try {
    const { partitions } = await fresh.open()
    const summary: AuditSummary = await verifyLog({
      store: fresh,
      partitions,
      database: bed.config,
      compareWith: bed.log,
      archiveOf,
      exported,
      ...known,
      onFinding: (finding) => findings.push(finding),
    })
    return { findings, summary }
  } finally {
    await fresh.close()
  }
}

const positions = async (): Promise<number[]> =>
  (await bed.query<{ position: string }>('select position from quipu_log.events order by 1')).map((row) =>
    Number(row.position),
  )

async function streamOf(name: string, after = 0): Promise<Recorded[]> {
  const events: Recorded[] = []
  for await (const event of bed.log.readStream(name, after)) events.push(event)
  return events
}

describe('A log whose first records are archived', () => {
  it('is one chain with its archive for reads, audits, rebuilds and further writes', async () => {
    await bed.log.append(node, 0, [{ type: 'Seen', v: 1, time: '2026-01-01T00:00:00.000Z', data: {} }])
    await fill(0, 4)
    const straddling = testQueryId(4)
    const [first, ...rest] = toLogEvents(queryLife(straddling))
    await bed.log.append(straddling, 0, [first!])
    await fill(5, 2)
    await project()
    const before = await bed.log.read(beginning(), 1000)
    // An open query keeps all records from its first event on in the log.
    const { archived, dropped } = await archiveLog(logParts(), all)
    expect(archived.map(({ number }) => number)).toEqual([1])
    expect(dropped).toHaveLength(1)
    const opened = await bed.query<{ position: string }>('select position from quipu_log.events where stream = $1', [
      straddling,
    ])
    const end = Number(archived[0]!.to[0]!.offset)
    expect(end).toBeLessThanOrEqual(Number(opened[0]!.position))
    expect((await positions())[0]).toBe(end)
    // The query ends, and its first events are archived: the stream is in the archive and in the log.
    await bed.log.append(straddling, 1, rest.slice(0, 2))
    await fill(7, 1)
    await bed.log.append(straddling, 3, rest.slice(2))
    await project()
    await archivePeriod(parts(), exported.at(-1)!)
    await dropArchived(parts())
    expect(await store.start()).toMatchObject({ at: [{ offset: BigInt(exported.at(-1)!.at[0]!.offset) }] })
    // A read from the beginning returns the same events as before.
    const again = await bed.log.read(beginning(), 1000)
    expect(again.events.slice(0, before.events.length)).toEqual(before.events)
    for (const stream of [testQueryId(0), straddling, 'system'])
      expect(await streamOf(stream)).toEqual(again.events.filter((event) => event.stream === stream))
    expect((await streamOf(straddling, 2)).map(({ sequence }) => sequence)).toEqual([3, 4, 5, 6, 7])
    expect(await streamOf(testQueryId(99))).toEqual([])
    // A stream that never ends continues at its head, although all its records have left the log.
    const next = createPostgresEventLog(bed.config, { archiveOf })
    await next.open()
    await next.claim({ address: 'http://127.0.0.1:8081', version: 'test' })
    const seen = { type: 'Seen', v: 1, time: '2026-01-01T00:00:00.000Z', data: {} }
    await expect(next.append(node, 0, [seen])).rejects.toThrow(SequenceConflict)
    await next.append(node, 1, [seen])
    expect((await streamOf(node)).map(({ sequence }) => sequence)).toEqual([1, 2])
    await next.close()
    const { findings, summary } = await audit()
    expect(findings).toEqual([])
    expect(summary).toMatchObject({ periods: 2, queries: 8, open: 0 })
    expect(summary.tables).toBeGreaterThan(7)
    await project()
    const hashes = await tableHashes(bed)
    await rebuildReadModels({ log: bed.log, database: bed.config, clock: systemClock })
    expect(await tableHashes(bed)).toEqual(hashes)
  })
})

/** Reads the whole log from its beginning with a new log object. */
async function history(): Promise<readonly Recorded[]> {
  const log = createPostgresEventLog(bed.config, { archiveOf })
  try {
    await log.open()
    return (await log.read(beginning(), 10_000)).events
  } finally {
    await log.close()
  }
}

describe('An interrupted archiving', () => {
  /** Makes a function that fails from its call number `at` on, before or after the work. */
  function failing<A extends unknown[]>(work: (...args: A) => Promise<void>, at: number, when: 'before' | 'after') {
    let calls = 0
    return async (...args: A): Promise<void> => {
      if (++calls >= at && when === 'before') throw new LogUnavailable('cut off')
      await work(...args)
      if (calls >= at) throw new LogUnavailable('cut off')
    }
  }

  it('loses no event at any point, and can be continued', async () => {
    await fill(0, 6)
    const events = await history()
    const half = exported[2]!
    // The period is copied, but not published.
    await writePeriod({ store, archive, anchor: half, canEnd: isQueryId })
    expect(await archive.reread()).toEqual([])
    expect(await history()).toEqual(events)
    // The period is published, but not announced.
    await archivePeriod(parts(), half)
    expect(await history()).toEqual(events)
    expect((await audit()).findings).toEqual([])
    const small = (over: Partial<RecordDropper>): RecordDropper => ({
      recordsAtOnce: 4,
      keepHeads: (heads) => store.dropper.keepHeads(heads),
      drop: (drop) => store.dropper.drop(drop),
      ...over,
    })
    const drop = store.dropper.drop.bind(store.dropper)
    const reported: string[] = []
    const report = async (type: string): Promise<void> => void reported.push(type)
    const cuts: Partial<DropperDeps>[] = [
      { announce: failing(report, 1, 'before') },
      { announce: failing(report, 1, 'after') },
      { announce: failing(report, 2, 'after') },
      { dropper: small({ keepHeads: failing(small({}).keepHeads, 1, 'after') }) },
      { dropper: small({ drop: failing(drop, 1, 'before') }) },
      { dropper: small({ drop: failing(drop, 1, 'after') }) },
      { dropper: small({ drop: failing(drop, 2, 'before') }) },
      { dropper: small({ drop: failing(drop, 2, 'after') }) },
    ]
    for (const cut of cuts) {
      await expect(dropArchived(parts(cut))).rejects.toThrow('cut off')
      expect(await history()).toEqual(events)
      expect((await audit()).findings).toEqual([])
    }
    expect((await store.start())!.at[0]!.offset).toBeGreaterThan(8n)
    expect(await dropArchived(parts())).toHaveLength(1)
    expect((await positions())[0]).toBe(Number(half.at[0]!.offset))
    expect(await dropArchived(parts())).toEqual([])
    await archivePeriod(parts(), exported.at(-1)!)
    await dropArchived(parts())
    expect(await history()).toEqual(events)
    expect((await audit()).findings).toEqual([])
    expect(readdirSync(archive.folder).sort()).toEqual(['000001', '000002'])
    for (const name of readdirSync(join(archive.folder, '000001')))
      expect(statSync(join(archive.folder, '000001', name)).mode & 0o777).toBe(0o600)
  })

  it('is not continued by a writer that lost its epoch', async () => {
    await fill(0, 2)
    await archivePeriod(parts(), exported.at(-1)!)
    const next = createPostgresEventLog(bed.config, { archiveOf })
    await next.open()
    await next.claim({ address: 'http://127.0.0.1:8081', version: 'test' })
    const before = await positions()
    await expect(dropArchived(parts())).rejects.toThrow('Another writer has claimed the log')
    expect(await positions()).toEqual(before)
    await dropArchived(parts({ epoch: 2 }))
    expect((await positions())[0]).toBeGreaterThan(0)
    await next.close()
  })
})

describe('Records that differ from the archive', () => {
  async function archived(): Promise<PeriodManifest> {
    await fill(0, 3)
    return archivePeriod(parts(), exported.at(-1)!)
  }

  it('stay in the log if the archive is damaged', async () => {
    const manifest = await archived()
    const before = await positions()
    const records = manifest.segments[0]!.name
    const damages: [name: string, change: (bytes: Buffer) => Buffer][] = [
      [records, (bytes) => Buffer.concat([bytes.subarray(0, 40), Buffer.from([bytes[40]! ^ 1]), bytes.subarray(41)])],
      [records, () => Buffer.alloc(0)],
      [manifest.streams.name, (bytes) => bytes.subarray(0, 20)],
      [manifest.heads.name, () => Buffer.alloc(0)],
      ['manifest.json', (bytes) => Buffer.from(bytes.toString().replace(/"records":\d+/, '"records":3'))],
      [
        'manifest.json',
        (bytes) => Buffer.from(bytes.toString().replace(/"names":.*?\}/, '"names":{"first":"0","last":"1"}')),
      ],
      ['manifest.json', (bytes) => Buffer.from(bytes.toString().replace(/"signature":"../, '"signature":"AA'))],
    ]
    for (const [name, change] of damages) {
      const path = join(archive.folderOf(manifest), name)
      const whole = readFileSync(path)
      writeFileSync(path, change(whole))
      await expect(dropArchived(parts()), name).rejects.toThrow(ArchiveDamaged)
      expect(await positions()).toEqual(before)
      const { findings } = await audit()
      expect(findings, name).toEqual([expect.objectContaining({ kind: 'archive' })])
      writeFileSync(path, whole)
    }
    expect((await audit()).findings).toEqual([])
  })

  it('stay in the log if the log is altered, and are not archived', async () => {
    await archived()
    await bed.query(`update quipu_log.events set data = replace(data, 'alice', 'mallory') where stream = $1`, [
      testQueryId(1),
    ])
    await expect(dropArchived(parts())).rejects.toThrow(/^Offset \d+ of the log differs from its copy in the archive$/)
    expect((await positions())[0]).toBe(0)
    rmSync(archive.folder, { recursive: true })
    await expect(archivePeriod(parts(), exported.at(-1)!)).rejects.toThrow('does not match its hash')
    expect(await archive.reread()).toEqual([])
  })

  it('are found by an audit after they left the log, and a log without its archive is refused', async () => {
    const manifest = await archived()
    await dropArchived(parts())
    const path = join(archive.folderOf(manifest), manifest.segments[0]!.name)
    writeFileSync(path, readFileSync(path).subarray(0, 100))
    archive = new Archive({ root, logId: manifest.logId, canEnd: isQueryId })
    const { findings, summary } = await audit()
    expect(findings.map(({ kind }) => kind)).toEqual(['archive', 'archive'])
    expect(summary.events).toBe(0)
    rmSync(archive.folder, { recursive: true })
    await archive.reread()
    await expect(audit()).rejects.toThrow('not in the archive at')
    await expect(streamOf(testQueryId(0))).rejects.toThrow('lacks records that were deleted from the event log')
    // Records that are still in the log can be read, and new ones can be written.
    expect(await streamOf('system', 3)).not.toEqual([])
    await fill(50, 1)
    await expect(archiveLog(logParts(), all)).rejects.toThrow('is missing: bring it back')
    const full = new Archive({ root, logId: manifest.logId, canEnd: isQueryId, roomBytes: Number.MAX_SAFE_INTEGER })
    await expect(archivePeriod(parts({ archive: full }), exported.at(-1)!)).rejects.toThrow('MiB left')
    expect(await full.reread()).toEqual([])
  })
})

describe('A forgotten query in the archive', () => {
  const forget = (queryId = testQueryId(1)) => forgetQuery({ log: bed.log, journal }, queryId, { by: 'officer' })

  /** Returns the files of the archive that contain a text. */
  function tracesOf(text: string): string[] {
    const found: string[] = []
    for (const period of readdirSync(archive.folder))
      for (const name of readdirSync(join(archive.folder, period))) {
        const bytes = readFileSync(join(archive.folder, period, name))
        if ((name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().includes(text)) found.push(name)
      }
    return found
  }

  it('is removed from the archive and from the log, and an audit finds nothing', async () => {
    await fill(0, 3)
    await archivePeriod(parts(), exported.at(-1)!)
    expect(await forget(testQueryId(0))).toEqual({ kind: 'forgotten', events: 7 })
    await dropArchived(parts())
    expect(await forget(testQueryId(1))).toEqual({ kind: 'forgotten', events: 7 })
    expect(tracesOf('alice')).not.toEqual([])
    expect(await forget(testQueryId(2))).toEqual({ kind: 'forgotten', events: 7 })
    expect(tracesOf('alice')).toEqual([])
    expect(await forget(testQueryId(2))).toEqual({ kind: 'forgotten', events: 0 })
    expect(await forget(testQueryId(77))).toEqual({ kind: 'unknown' })
    await project()
    expect((await audit()).findings).toEqual([])
    for (const event of await streamOf(testQueryId(1))) expect(event).toMatchObject({ data: null, forgotten: true })
  })

  it('is removed from a period that is copied but not yet published', async () => {
    await fill(0, 2)
    const { folder, manifest } = await writePeriod({ store, archive, anchor: exported.at(-1)!, canEnd: isQueryId })
    expect(tracesOf('alice')).not.toEqual([])
    await forget(testQueryId(0))
    await forget(testQueryId(1))
    await archive.publish(folder, manifest)
    expect(tracesOf('alice')).toEqual([])
    await dropArchived(parts())
    for (const event of await streamOf(testQueryId(0))) expect(event).toMatchObject({ data: null, forgotten: true })
    await project()
    expect((await audit()).findings).toEqual([])
  })

  it('is removed from the unfinished copy of another process, and from replaced files', async () => {
    await fill(0, 2)
    const other = new Archive({ root, logId: exported[0]!.logId, canEnd: isQueryId })
    const left = await writePeriod({ store, archive: other, anchor: exported[0]!, canEnd: isQueryId })
    await forget(testQueryId(0))
    expect(tracesOf('alice')).toEqual([])
    await expect(other.publish(left.folder, left.manifest)).rejects.toThrow('ENOENT')
    // Another process publishes its copy without knowledge of the forgotten query.
    const unaware = await writePeriod({ store, archive: other, anchor: exported.at(-1)!, canEnd: isQueryId })
    const data = join(unaware.folder, unaware.manifest.segments[0]!.name)
    const before = readFileSync(data)
    await other.publish(unaware.folder, unaware.manifest)
    await forget(testQueryId(1))
    expect(tracesOf('alice')).toEqual([])
    // The state after a kill between the publication of the new file and the deletion of the old one.
    const old = join(archive.folder, '000001', unaware.manifest.segments[0]!.name)
    writeFileSync(old, before)
    utimesSync(old, 1, 1)
    expect(tracesOf('alice')).not.toEqual([])
    await project()
    expect((await audit()).findings).toEqual([
      { kind: 'archive', what: 'Period 1: 0-0.jsonl.gz was replaced, but the old file is still there' },
    ])
    await forget(testQueryId(1))
    expect(tracesOf('alice')).toEqual([])
    await dropArchived(parts())
    await project()
    expect((await audit()).findings).toEqual([])
  })

  it('is not returned by another process, and a forget fails if the records are not found', async () => {
    await fill(0, 2)
    await archivePeriod(parts(), exported.at(-1)!)
    const other = new Archive({ root, logId: exported[0]!.logId, canEnd: isQueryId })
    const [manifest] = await archive.periods()
    const { length } = await other.fetch(0, 0n, 1000)
    await dropArchived(parts())
    await forget(testQueryId(0))
    const texts = (await other.fetch(0, 0n, length)).filter(({ stream }) => stream === testQueryId(0))
    expect(texts.map(({ text }) => JSON.parse(text) as unknown)).toEqual(
      Array.from({ length: 7 }, () => expect.objectContaining({ data: '', forgotten: true })),
    )
    const path = join(archive.folderOf(manifest!), 'manifest.json')
    await archive.reread()
    const events = await bed.log.forgettable(testQueryId(1))
    expect(events).toHaveLength(7)
    writeFileSync(path, readFileSync(path, 'utf8').replace(/"names":.*?\}/, '"names":{"first":"0","last":"1"}'))
    await expect(bed.log.forget(testQueryId(1), [1, 2])).rejects.toThrow(
      '/1 is neither in the event log nor in its archive',
    )
  })

  it('is forgotten without loss of other queries when two processes forget concurrently', async () => {
    await fill(0, 12)
    await archivePeriod(parts(), exported.at(-1)!)
    await dropArchived(parts())
    const other = new Archive({ root, logId: exported[0]!.logId, canEnd: isQueryId })
    const paused = new PostgresRecordStore(bed.config, { archiveOf: () => other })
    await paused.open()
    await Promise.all(
      Array.from({ length: 10 }, (_, n) => (n % 2 ? store : paused).forget(testQueryId(n), [1, 2, 3, 4, 5, 6, 7], 1)),
    )
    await paused.close()
    for (let n = 0; n < 12; n++)
      expect((await streamOf(testQueryId(n))).map(({ forgotten }) => forgotten ?? false)).toEqual(
        Array.from({ length: 7 }, () => n < 10),
      )
  })

  it('does not disturb a concurrent audit of the archive', async () => {
    await fill(0, 2)
    await archivePeriod(parts(), exported.at(-1)!)
    const findings: Finding[] = []
    let reads = 0
    const periods = await auditArchive({
      archive: {
        periods: () => archive.periods(),
        heads: (period) => archive.heads(period),
        folderOf: (period) => archive.folderOf(period),
        replacedIn: (period) => archive.replacedIn(period),
        async reread() {
          const read = await archive.reread()
          if (reads++ === 0) await forget()
          return read
        },
      },
      canEnd: isQueryId,
      keys: [key.public],
      onFinding: (finding) => findings.push(finding),
    })
    expect({ periods, findings }).toEqual({ periods: 1, findings: [] })
  })
})

describe('A lost log', () => {
  const SELECT_ALL = 'select * from quipu_log.events order by position'

  /** Runs `quipu restore` into a database of its own, and returns its content. */
  async function restore(...flags: string[]) {
    const database = await createMigratedDatabase()
    const client = new pg.Client(database.url)
    await client.connect()
    const config = { connectionString: database.url }
    try {
      const keys = join(root, 'keys.pub')
      writeFileSync(keys, key.public.export({ type: 'spki', format: 'pem' }))
      const settings = ['--archive-folder', root, '--public-key', keys]
      const run = () => restoreCommand(['--into', database.url, ...settings, ...flags], {})
      const error = await run().then(
        () => undefined,
        (thrown: Error) => thrown.message,
      )
      const { rows } = await client.query<Record<string, unknown>>(SELECT_ALL)
      if (error !== undefined) return { error, rows, events: [], again: undefined, findings: [] }
      const again = await run().catch((thrown: Error) => thrown.message)
      const log = createPostgresEventLog(config, { archiveOf })
      const restored = new PostgresRecordStore(config, { archiveOf })
      const findings: Finding[] = []
      const { partitions } = await restored.open()
      await log.open()
      const { events } = await log.read(beginning(), 10_000)
      await rebuildReadModels({ log, database: config, clock: systemClock })
      const onFinding = (finding: Finding): void => void findings.push(finding)
      await verifyLog({ store: restored, partitions, database: config, compareWith: log, archiveOf, onFinding })
      // The restored log accepts a new writer.
      expect(await log.claim({ address: 'http://127.0.0.1:8081', version: 'test' })).toBe(2)
      await expect(
        log.append(node, 0, [{ type: 'Seen', v: 1, time: '2026-01-01T00:00:00.000Z', data: {} }]),
      ).rejects.toThrow(SequenceConflict)
      await Promise.all([log.close(), restored.close()])
      return { error, rows, events, again, findings }
    } finally {
      await client.end()
      await database.drop()
    }
  }

  it('is restored from its archive only, completely or one period', async () => {
    await bed.log.append(node, 0, [{ type: 'Seen', v: 1, time: '2026-01-01T00:00:00.000Z', data: {} }])
    await fill(0, 2)
    const first = await archivePeriod(parts(), exported.at(-1)!)
    await fill(2, 2)
    const second = await archivePeriod(parts(), exported.at(-1)!)
    const end = Number(second.to[0]!.offset)
    const rows = (await bed.query(SELECT_ALL)).slice(0, end)
    const events = (await history()).filter(({ position }) => position.offset < end)
    await dropArchived(parts())
    const live = await positions()
    const whole = await restore()
    expect(whole).toEqual({ error: undefined, rows, events, again: expect.stringContaining('already'), findings: [] })
    const alone = await restore('--period', '2')
    expect(alone).toEqual({ ...whole, rows: rows.slice(Number(first.to[0]!.offset)) })
    expect((await restore('--until', '1')).rows).toEqual(rows.slice(0, Number(first.to[0]!.offset)))
    expect(await positions()).toEqual(live)
    const path = join(archive.folderOf(second), second.segments[0]!.name)
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.subarray(0, 100))
    expect(await restore()).toMatchObject({
      error: `Period 2: ${second.segments[0]!.name} was changed after it was written`,
      rows: [],
    })
    writeFileSync(path, bytes)
    expect((await restore('--until', '3')).error).toContain('has 2 periods, but not periods 1 to 3')
    expect((await restore('--log', 'other')).error).toContain('--log: name a log of the archive')
  })
})

describe('A database that is restored from a backup', () => {
  it('continues with an archive that is newer than the backup', async () => {
    await fill(0, 2)
    await bed.query('create table saved as select * from quipu_log.events')
    const saved = await history()
    const before = exported.at(-1)!
    await archivePeriod(parts(), before)
    await dropArchived(parts())
    await fill(2, 2)
    await archivePeriod(parts(), exported.at(-1)!)
    await dropArchived(parts())
    await anchorer.stop()
    await bed.query('truncate quipu_log.events, quipu_log.log_start, quipu_log.archived_heads')
    await bed.query('insert into quipu_log.events select * from saved')
    const log = createPostgresEventLog(bed.config, { archiveOf })
    await log.open()
    expect(await log.claim({ address: 'http://127.0.0.1:8081', version: 'test' })).toBe(2)
    const anchors: ExportedAnchor[] = []
    const next = startAnchorer({
      log,
      partitions: 1,
      journal: createSystemJournal(log, systemClock),
      key,
      previous: before,
      everyMs: 60_000,
      everyEvents: 5,
      onAnchored: (anchor) => anchors.push(anchor),
      onEnd: () => {},
    })
    for (const number of [10, 11]) {
      const had = anchors.length
      await log.append(testQueryId(number), 0, toLogEvents(queryLife(testQueryId(number))))
      await waitUntil('an anchor is made', () => anchors.length > had)
    }
    await next.stop()
    const events = await history()
    expect(events.slice(0, saved.length)).toEqual(saved)
    expect(events.map(({ stream }) => stream)).not.toContain(testQueryId(3))
    // Records in both are dropped; periods archived after the backup differ from the restored log.
    const mine = parts({ epoch: 2 })
    await expect(dropArchived(mine)).rejects.toThrow('of the log differs from its copy in the archive')
    expect((await positions())[0]).toBe(Number(before.at[0]!.offset))
    expect(await history()).toEqual(events)
    rmSync(join(archive.folder, '000002'), { recursive: true })
    await archivePeriod(mine, anchors.at(-1)!)
    expect(await dropArchived(mine)).toHaveLength(1)
    expect((await positions())[0]).toBe(Number(anchors.at(-1)!.at[0]!.offset))
    expect(await history()).toEqual(events)
    await log.close()
  })
})
