import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { loadConfig, type Config } from '../../src/config/load-config.ts'
import { startAnchorer } from '../../src/coordinator/system/anchorer.ts'
import { createSystemJournal, type SystemJournal } from '../../src/coordinator/system/system-journal.ts'
import { carryOut, type EraseDeps } from '../../src/erasure/erase.ts'
import type { ErasureResult } from '../../src/erasure/erasure-store.ts'
import type { Subject } from '../../src/erasure/subject.ts'
import type { Finding } from '../../src/events/audit/finding.ts'
import { beginning, type Recorded } from '../../src/events/event-log.ts'
import { PostgresRecordStore } from '../../src/events/postgres/postgres-record-store.ts'
import type { ProjectionRunner } from '../../src/events/projection-runner.ts'
import type { RecordDropper } from '../../src/events/record-store.ts'
import { archiveLog } from '../../src/processes/event-log/archive-log.ts'
import { archivesOf } from '../../src/processes/event-log/archives-of.ts'
import { openErasing, type Erasing } from '../../src/processes/event-log/erasing.ts'
import { queryArchiveFolder } from '../../src/processes/event-log/query-archive-of.ts'
import { createParquetEngine } from '../../src/readmodels/archive/parquet-engine.ts'
import { archiveQueries } from '../../src/readmodels/archive/query-archive.ts'
import { verifyLog } from '../../src/readmodels/audit/verify-log.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { appendLives, queryLife, testQueryId, type QueryLifeOptions } from './query-life.ts'
import { waitUntil } from './quipu-process.ts'
import { openReadModelBed, type ReadModelBed } from './read-models.ts'
import type { TestDatabase } from './postgres.ts'

/** The secret of the cluster, from which erasures derive their keys. */
export const ERASURE_SECRET = 'a secret of the tests'
const FAR = '9999-01-01T00:00:00.000Z'

/** A log in Postgres with read models, archives and erasures. */
export interface ErasureBed {
  readonly bed: ReadModelBed
  /** The data folder, which contains the archives. */
  readonly root: string
  readonly runner: ProjectionRunner
  readonly journal: SystemJournal
  readonly erasing: Erasing
  projected(): Promise<void>
  /** Appends the life of a query, and waits for an anchor after it. @returns the id */
  query(number: number, options?: QueryLifeOptions): Promise<string>
  /** The parts of an erasure that does not wait for open queries. */
  deps(over?: Partial<EraseDeps>): EraseDeps
  /** Stores a request. @returns the id of the erasure */
  request(subject: Subject, mentions?: boolean): Promise<string>
  erase(subject: Subject, mentions?: boolean): Promise<ErasureResult>
  audit(): Promise<readonly Finding[]>
  /**
   * Moves all records so far to the archive.
   * @param over replaces functions of the dropper, so that records stay in the log too
   */
  archiveRecords(over?: Partial<RecordDropper>): Promise<void>
  /** Moves the rows of all ended queries to Parquet files. */
  archiveRows(): Promise<void>
  /** The files below the data folder that match, unpacked where they are packed. */
  filesWith(words: RegExp): readonly string[]
  /** The events of the log and of its archive. */
  events(type?: string): Promise<readonly Recorded[]>
  close(): Promise<void>
}

export interface ErasureBedOptions {
  /** A database and a data folder that an earlier bed filled; the bed drops and removes them at the end. */
  readonly filled?: { readonly database: TestDatabase; readonly root: string }
  /** Whether the database and the folder stay when the bed is closed. */
  readonly keeps?: boolean
}

export async function openErasureBed({ filled, keeps = false }: ErasureBedOptions = {}): Promise<ErasureBed> {
  const root = filled?.root ?? mkdtempSync(join(tmpdir(), 'quipu-erasure-'))
  const config = loadConfig(['--data-dir', root, '--archive-folder', join(root, 'archive')], {})
  const bed = await openReadModelBed(filled?.database, { archiveOf: archivesOf(config), now: Date.now })
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const journal = createSystemJournal(bed.log, systemClock)
  let anchors = 0
  // The anchors of an earlier bed have another key.
  const anchorer = filled
    ? undefined
    : startAnchorer({
        log: bed.log,
        partitions: 1,
        journal,
        key: { private: privateKey, public: publicKey },
        previous: undefined,
        everyMs: 60_000,
        everyEvents: 7,
        onAnchored: () => anchors++,
        onEnd: () => {},
      })
  const runner = await bed.startRunner()
  const erasing = openErasing({ config, secret: ERASURE_SECRET, connection: bed.config, log: bed.log })

  async function projected(): Promise<void> {
    expect(await runner.barrier(60_000)).toBe(true)
  }
  const deps = (over: Partial<EraseDeps> = {}): EraseDeps => ({
    ...erasing.deps({ journal, projected }),
    waitMs: 0,
    ...over,
  })
  async function request(subject: Subject, mentions = false): Promise<string> {
    const id = crypto.randomUUID()
    await erasing.store.add(id, { subject, mentions, reason: 'Article 17' }, { by: 'officer' })
    return id
  }
  return {
    bed,
    root,
    runner,
    journal,
    erasing,
    projected,
    deps,
    request,
    async query(number, options = {}) {
      const queryId = testQueryId(number)
      const before = anchors
      await appendLives(bed.log, [{ queryId, events: queryLife(queryId, options) }])
      await waitUntil('an anchor is made', () => anchors > before)
      return queryId
    },
    erase: async (subject, mentions) => carryOut(deps(), await request(subject, mentions)),
    audit: () => auditOf(bed, config),
    async archiveRecords(over = {}) {
      await projected()
      await archiveRecordsOf({ bed, config, journal }, publicKey, over)
      await projected()
    },
    async archiveRows() {
      const folder = queryArchiveFolder(config, (await bed.log.tip()).logId)
      const engine = createParquetEngine(folder)
      const policy = { before: FAR, keepQueries: undefined, leastQueries: 1, leastMs: 0 }
      expect(await archiveQueries({ database: bed.config, engine, folder }, policy)).toHaveLength(1)
      await engine.close()
    },
    filesWith: (words) => filesWith(root, words),
    events: (type) => eventsOf(bed, type),
    async close() {
      await anchorer?.stop()
      await erasing.close()
      await (keeps ? bed.leave() : bed.close())
      if (!keeps) rmSync(root, { recursive: true, force: true })
    },
  }
}

async function auditOf(bed: ReadModelBed, config: Config): Promise<readonly Finding[]> {
  const archiveOf = archivesOf(config)
  const store = new PostgresRecordStore(bed.config, { archiveOf })
  const findings: Finding[] = []
  try {
    const { partitions } = await store.open()
    await verifyLog({
      store,
      partitions,
      database: bed.config,
      compareWith: bed.log,
      archiveOf,
      queriesFolderOf: (logId) => queryArchiveFolder(config, logId),
      onFinding: (finding) => findings.push(finding),
    })
    return findings
  } finally {
    await store.close()
  }
}

async function archiveRecordsOf(
  { bed, config, journal }: { readonly bed: ReadModelBed; readonly config: Config; readonly journal: SystemJournal },
  key: Parameters<typeof archiveLog>[0]['key'],
  over: Partial<RecordDropper>,
): Promise<void> {
  const archive = archivesOf(config)((await bed.log.tip()).logId)
  const store = new PostgresRecordStore(bed.config, { archiveOf: archivesOf(config) })
  await store.open()
  const policy = { before: FAR, keepRecords: undefined, mostRecords: 1_000_000n, leastRecords: 1n, leastMs: 0 }
  try {
    const { archived } = await archiveLog(
      {
        log: bed.log,
        epoch: 1,
        journal,
        store,
        dropper: { ...store.dropper, ...over },
        archive,
        query: (text, values) => bed.query(text, [...values]),
        key,
      },
      policy,
    )
    expect(archived.length).toBeGreaterThan(0)
  } finally {
    await store.close()
  }
}

function filesWith(folder: string, words: RegExp): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesWith(path, words)
    const bytes = readFileSync(path)
    return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('latin1').match(words) ? [path] : []
  })
}

async function eventsOf({ log }: ReadModelBed, type: string | undefined): Promise<readonly Recorded[]> {
  const found: Recorded[] = []
  for (let from = beginning(); ;) {
    const { events, next } = await log.read(from, 1000)
    if (events.length === 0) return found
    found.push(...events.filter((event) => type === undefined || event.type === type))
    from = next
  }
}
