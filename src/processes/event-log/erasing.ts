import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { z } from 'zod'
import type { Config } from '../../config/load-config.ts'
import { systemStream } from '../../coordinator/system/events.ts'
import { forgetQuery } from '../../coordinator/system/forget-query.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { ErasureWriter, EraseDeps } from '../../erasure/erase.ts'
import { ErasureStore } from '../../erasure/erasure-store.ts'
import type { SearchedLogs } from '../../erasure/search-logs.ts'
import type { Subject } from '../../erasure/subject.ts'
import { verifyErasure, type Proof, type SearchedTopic, type VerifyDeps } from '../../erasure/verify-erasure.ts'
import type { EventLog, Recorded } from '../../events/event-log.ts'
import { READ_MODEL_SCHEMA } from '../../events/postgres/migrate.ts'
import { PatientPool } from '../../events/postgres/patient-pool.ts'
import type { QueryRows } from '../../events/projection.ts'
import { createParquetEngine } from '../../readmodels/archive/parquet-engine.ts'
import { archiveQueries } from '../../readmodels/archive/query-archive.ts'
import { readArchivedQueries } from '../../readmodels/archive/query-periods.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { archivesOf } from './archives-of.ts'
import { publicKafkaSecurityOf } from './kafka-security.ts'
import { logsBefore } from './logs-before.ts'
import { queryArchiveFolder } from './query-archive-of.ts'

export interface ErasingDeps {
  readonly config: Config
  readonly secret: string
  readonly connection: pg.ClientConfig
  /** Opened. */
  readonly log: EventLog
}

/** The parts of erasures, in the process of a coordinator or of a command. */
export interface Erasing {
  readonly store: ErasureStore
  readonly logs: SearchedLogs
  /** Searches all locations for a subject. */
  prove(subject: Subject, erasureId?: string): Promise<Proof>
  /** Makes the parts that carry out an erasure as the writer of the log. */
  deps(writer: ErasingWriter): EraseDeps
  close(): Promise<void>
}

export interface ErasingWriter extends Partial<Pick<ErasureWriter, 'forgetQuery'>> {
  readonly journal: SystemJournal
  /** Resolves when the read models have all events of the log. */
  readonly projected: () => Promise<void>
  readonly onStep?: () => void
  /** Resolves when log-ins and refusals that this process has counted are recorded. */
  readonly flushed?: () => Promise<void>
}

/** Makes the parts of erasures. They have connections of their own, because a search of all tables takes long. */
export function openErasing(deps: ErasingDeps): Erasing {
  const { config, secret, connection, log } = deps
  const pool = new PatientPool({
    ...connection,
    application_name: 'quipu erasure',
    options: `-c search_path=${READ_MODEL_SCHEMA},public -c timezone=UTC`,
    max: 2,
    allowExitOnIdle: true,
  })
  pool.on('error', () => {})
  let closing: Promise<void> | undefined
  const read = rowsOf(pool)
  const archiveOf = archivesOf(config)
  const logs: SearchedLogs = {
    log,
    before: () => logsBefore(log, archiveOf),
    selectForgettable: (events, isInNewestLog) => selectForgettable(deps, events, isInNewestLog),
  }
  const store = new ErasureStore(read, {
    subjects: deriveKey(secret, 'erasures'),
    hashes: deriveKey(secret, 'erasure-subjects'),
  })
  async function prove(subject: Subject, erasureId?: string): Promise<Proof> {
    const locations = await locationsOf(deps, pool, logs)
    try {
      return await verifyErasure(locations, subject, erasureId)
    } finally {
      for (const { engine } of locations.archives) await engine.close()
    }
  }
  return {
    store,
    logs,
    prove,
    deps: (writer) => depsOf(deps, { read, store, logs, prove, writer }),
    close: () => (closing ??= pool.end()),
  }
}

function rowsOf(client: pg.Pool | pg.PoolClient): QueryRows {
  return async (text, values) => (await client.query<Record<string, unknown>>(text, [...values])).rows
}

async function locationsOf({ config, log }: ErasingDeps, pool: pg.Pool, logs: SearchedLogs): Promise<VerifyDeps> {
  const { logId } = await log.tip()
  const archive = dirname(dirname(queryArchiveFolder(config, logId)))
  const { openLineageFile } = config.publishing
  return {
    logs,
    async tables(work) {
      const client = await pool.connect()
      try {
        await client.query('begin isolation level repeatable read read only')
        return await work(rowsOf(client))
      } finally {
        await client.query('rollback').catch(() => {})
        client.release()
      }
    },
    archives: existsSync(archive) ? [{ folder: archive, engine: createParquetEngine(resolve(archive)) }] : [],
    files: openLineageFile === undefined ? [] : [openLineageFile],
    topics: publicTopics(config),
  }
}

function publicTopics(config: Config): readonly SearchedTopic[] {
  const { publicKafkaBrokers: brokers, publicKafkaTopic: topic } = config.publishing
  if (brokers.length === 0) return []
  const options = { brokers, topic, ...publicKafkaSecurityOf(config) }
  return [
    {
      name: topic,
      async *messages() {
        const { readTopic } = await import('../../events/kafka/read-topic.ts')
        yield* readTopic(options)
      },
      async keptMs() {
        const { retentionOf } = await import('../../events/kafka/read-topic.ts')
        return retentionOf(options)
      },
    },
  ]
}

interface Opened extends Pick<Erasing, 'store' | 'logs' | 'prove'> {
  readonly read: QueryRows
  readonly writer: ErasingWriter
}

function depsOf(deps: ErasingDeps, { read, store, logs, prove, writer }: Opened): EraseDeps {
  const { log } = deps
  const { journal, projected, onStep, flushed } = writer
  return {
    logs,
    store,
    prove,
    ...(onStep && { onStep }),
    ...(flushed && { flushed }),
    writer: {
      journal,
      forgetQuery:
        writer.forgetQuery ??
        ((queryId, administrator, erasure) => forgetQuery({ log, journal }, queryId, administrator, erasure)),
      forgetRecords: (sequences) => log.forget(systemStream, sequences),
      async settled() {
        await projected()
        await archivesForgot(deps, read)
      },
    },
    async isRecorded(type, erasureId) {
      await projected()
      const rows = await read(`select from audit_log where kind = $1 and details->>'erasureId' = $2 limit 1`, [
        type,
        erasureId,
      ])
      return rows.length > 0
    },
    async recordedOf(streams, erasureId) {
      await projected()
      const rows = await read(
        `select distinct details->>'stream' as stream from audit_log
         where kind = 'DataForgotten' and details->>'erasureId' = $1 and details->>'stream' = any($2)`,
        [erasureId, streams],
      )
      return new Set(rows.map(({ stream }) => String(stream)))
    },
    async lastRecordsOf(erasureId) {
      await projected()
      const [row] = await read(
        `select details->'sequences' as sequences from audit_log
         where kind = 'DataForgotten' and details->>'erasureId' = $1 and details->>'stream' = $2
         order by sequence desc limit 1`,
        [erasureId, systemStream],
      )
      return row ? z.array(z.number()).parse(row['sequences']) : []
    },
  }
}

/** Asks the brokers for the start of the log at most once for all events. */
async function selectForgettable(
  { config, log }: ErasingDeps,
  events: readonly Recorded[],
  isInNewestLog: boolean,
): Promise<readonly Recorded[]> {
  if (config.kafkaBrokers.length === 0 || !isInNewestLog || events.every(({ key }) => key !== undefined)) return events
  const { at } = await log.start()
  return events.filter(
    ({ key, position: { partition, offset } }) => key !== undefined || offset < (at[partition]?.offset ?? 0n),
  )
}

const LOOK_AGAIN_MS = 200
const ARCHIVES_MS = 60_000

/** Resolves when the files of archived queries have lost everything that was forgotten, or after a minute. */
async function archivesForgot({ config, connection, log }: ErasingDeps, read: QueryRows): Promise<void> {
  const folder = queryArchiveFolder(config, (await log.tip()).logId)
  if (!existsSync(folder)) return
  const engine = createParquetEngine(folder)
  try {
    for (const until = performance.now() + ARCHIVES_MS; performance.now() < until; await sleep(LOOK_AGAIN_MS)) {
      // Does nothing while another process rewrites the files.
      await archiveQueries({ database: connection, engine, folder }, undefined)
      const { periods, forgotten } = await readArchivedQueries(read)
      const known = new Set(periods.map((period) => period.folder))
      const left = (await readdir(folder)).filter((name) => !known.has(name))
      if (forgotten.length === 0 && left.length === 0) return
    }
  } finally {
    await engine.close()
  }
}
