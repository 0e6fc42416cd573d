import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { checkpointFromJson, LogChanged, type Checkpoint, type EventReader, type LogEnd } from '../events/event-log.ts'
import { ProjectionApplier } from '../events/projection-applier.ts'
import { eventsBelow, ProjectionStore } from '../events/projection-store.ts'
import type { QueryRows } from '../events/projection.ts'
import type { Clock } from '../shared/clock.ts'
import { READ_MODEL_SCHEMA } from '../events/postgres/migrate.ts'
import { LOCK_PERIODS } from './archive/query-periods.ts'
import { makeReadModelTables } from './make-tables.ts'
import { createReadModelsProjection, READ_MODELS } from './projection.ts'

export interface RebuildOptions {
  readonly log: EventReader & LogEnd
  /** The logs that this one continues, the oldest first. @default none */
  readonly before?: readonly (EventReader & LogEnd)[]
  readonly database: pg.ClientConfig
  /** Folder of the numbered SQL files. @default the files of this program */
  readonly migrations?: string
  readonly clock: Clock
  /** Most events in one transaction. @default 5000 */
  readonly batch?: number
  /** Called after each batch with the number of events done, and the number at the beginning. */
  readonly onProgress?: (done: number, total: number) => void
}

export interface Rebuilt {
  readonly events: number
  readonly milliseconds: number
  readonly deadLetters: number
}

/** Lock for the process that builds tables beside the live ones. */
export const TAKE_REBUILD_LOCK = `select pg_try_advisory_lock(hashtext('quipu rebuild')) as held`

const NEW = `${READ_MODEL_SCHEMA}_new`
const OLD = `${READ_MODEL_SCHEMA}_old`
/** The running projection applies this many events from the beginning within a second. */
const SOON_CAUGHT_UP = 10_000
/** After this time a server that has not caught up is stopped or broken: the new tables are better. */
const WAIT_FOR_LIVE_MS = 2000

/**
 * Folds the log from its first event into a schema of its own while the old one serves. Then makes the indexes, catches
 * up, and swaps the schemas in one transaction when both hold the same events. The running projection then finds its
 * checkpoint moved and continues in the new tables. Restores a lost database as well.
 * @throws LogChanged when the live tables were made from another log
 */
export async function rebuildReadModels(options: RebuildOptions): Promise<Rebuilt> {
  const { log, database, clock, migrations, onProgress, batch = 5000 } = options
  const started = clock.monotonicMs()
  const admin = new pg.Client({ ...database, application_name: 'quipu rebuild' })
  admin.on('error', () => undefined)
  await admin.connect()
  let store: ProjectionStore | undefined
  try {
    const { rows } = await admin.query<{ held: boolean }>(TAKE_REBUILD_LOCK)
    if (!rows[0]?.held) throw new Error('Another rebuild is running')
    await admin.query('set client_min_messages = warning')
    await admin.query(`drop schema if exists ${NEW} cascade; drop schema if exists ${OLD} cascade`)
    const tables = await makeReadModelTables(admin, NEW, migrations)
    store = await ProjectionStore.connect(database, NEW, READ_MODELS)
    const ofBefore = await foldLogsBefore(store, options.before ?? [])
    const total = eventsBelow(await log.tip())
    const applier = await ProjectionApplier.open({
      store,
      projection: createReadModelsProjection(),
      log,
      maxBatch: batch,
      onCommitted: (committed) => onProgress?.(eventsBelow(committed), total),
    })
    await applier.readOn(total)
    await tables.makeIndexes()
    await waitForLive(admin, applier, clock)
    await swap(admin, applier)
    return {
      events: ofBefore + eventsBelow(applier.committed),
      milliseconds: clock.monotonicMs() - started,
      deadLetters: applier.deadLetters,
    }
  } finally {
    await store?.close()
    await admin.end().catch(() => undefined)
  }
}

/**
 * Folds the logs that another one continues; that log's own events come next.
 * @returns the number of their events
 */
export async function foldLogsBefore(
  store: ProjectionStore,
  before: readonly (EventReader & LogEnd)[],
): Promise<number> {
  let events = 0
  for (const log of before) {
    const applier = await ProjectionApplier.open({
      store,
      projection: createReadModelsProjection(),
      log,
      maxBatch: 5000,
    })
    await applier.readOn(eventsBelow(await log.tip()))
    events += eventsBelow(applier.committed)
    await store.beginLog()
  }
  return events
}

/**
 * The progress of a rebuild in another process, from 0 to 1.
 * @param events number of events in the log
 * @returns 1 when no rebuild runs
 */
export async function rebuildProgress(query: QueryRows, events: number): Promise<number> {
  const [there] = await query(`select to_regclass('${NEW}.checkpoints') is not null as there`, [])
  if (!there?.['there'] || events === 0) return 1
  const [row] = await query(`select events from ${NEW}.checkpoints where name = $1`, [READ_MODELS.name])
  return Math.min(1, Number(row?.['events'] ?? 0) / events)
}

/**
 * Waits until the live tables hold all events of the new ones. Otherwise a reader could see less after the swap, or new
 * rows too early.
 */
async function waitForLive(admin: pg.Client, applier: ProjectionApplier, clock: Clock): Promise<void> {
  for (const started = clock.monotonicMs(); clock.monotonicMs() - started < WAIT_FOR_LIVE_MS;) {
    const live = await readLive(admin, '')
    if (!live || eventsBelow(live.checkpoint) >= eventsBelow(applier.committed)) return
    await sleep(50)
  }
}

interface Live {
  readonly checkpoint: Checkpoint
  readonly revision: bigint
}

async function readLive(admin: pg.Client, lock: '' | 'for update'): Promise<Live | undefined> {
  const there = await admin.query<{ there: string | null }>(
    `select to_regclass('${READ_MODEL_SCHEMA}.checkpoints')::text as there`,
  )
  if (!there.rows[0]?.there) return undefined
  const { rows } = await admin.query<{ checkpoint: string; revision: string }>(
    `select checkpoint, revision from ${READ_MODEL_SCHEMA}.checkpoints where name = $1 order by version desc limit 1 ${lock}`,
    [READ_MODELS.name],
  )
  const row = rows[0]
  return row ? { checkpoint: checkpointFromJson(row.checkpoint), revision: BigInt(row.revision) } : undefined
}

async function swap(admin: pg.Client, applier: ProjectionApplier): Promise<void> {
  await admin.query('begin')
  try {
    await admin.query(LOCK_PERIODS)
    // Blocks the live projection just before its commit.
    const live = await readLive(admin, 'for update')
    if (live) {
      await applier.readOn(eventsBelow(live.checkpoint))
      mustAgree(live.checkpoint, applier.committed)
      // The projection may wait for this row with its revision. It must then find another revision, in the old table as
      // well.
      const revision = String(live.revision + 1n)
      await admin.query(`update ${READ_MODEL_SCHEMA}.checkpoints set revision = $1`, [revision])
      await admin.query(`update ${NEW}.checkpoints set revision = $1`, [revision])
    }
    await admin.query(`
      do $$ begin
        if to_regnamespace('${READ_MODEL_SCHEMA}') is not null then alter schema ${READ_MODEL_SCHEMA} rename to ${OLD}; end if;
        alter schema ${NEW} rename to ${READ_MODEL_SCHEMA};
      end $$`)
    // The new tables have all rows: the archive is made anew from them by its own rules.
    await admin.query('delete from quipu_log.query_periods')
    await admin.query('commit')
  } catch (error) {
    await admin.query('rollback').catch(() => undefined)
    throw error
  }
  await admin.query(`drop schema if exists ${OLD} cascade`)
}

/** Compares counts and hashes. They prove that both folded the same events in log partitions with equal counts. */
function mustAgree(live: Checkpoint, rebuilt: Checkpoint): void {
  const same = live.at.every((position, partition) => {
    const other = rebuilt.at[partition]?.state
    if (!other) return position.state.count === 0
    return other.count === position.state.count
      ? other.hash === position.state.hash
      : other.count > position.state.count
  })
  if (!same || (live.logId !== '' && live.logId !== rebuilt.logId))
    throw new LogChanged('The read models that serve were made from another log than this one; nothing was replaced')
}

/**
 * Rebuilds the read models if needed; must be called before the projection starts. Rebuilds tables that are empty
 * beside a long log (a lost database), and tables that an older projection filled.
 * @returns the rebuild, or undefined when the projection can continue with the tables
 */
export async function rebuildIfNeeded({
  logsBefore,
  ...options
}: Omit<RebuildOptions, 'before'> & {
  /** Called only for a rebuild, or when tables have rows although no event counts as projected. @default none */
  readonly logsBefore?: () => Promise<NonNullable<RebuildOptions['before']>>
}): Promise<Rebuilt | undefined> {
  const client = new pg.Client({ ...options.database, application_name: 'quipu rebuild' })
  client.on('error', () => undefined)
  await client.connect()
  try {
    const { rows } = await client.query<{ version: number; events: string }>(
      `select version, events from ${READ_MODEL_SCHEMA}.checkpoints where name = $1`,
      [READ_MODELS.name],
    )
    const current = rows.find((row) => row.version === READ_MODELS.version)
    if (current && Number(current.events) > 0) return undefined
    const filledByOlder = !current && rows.length > 0
    const events = eventsBelow(await options.log.tip())
    // A log that continues another adds to that log's rows. Otherwise these rows are this log's own events, and
    // projecting from the beginning would count them twice.
    const isFilled = events > 0 && (await hasRows(client)) && ((await logsBefore?.()) ?? []).length === 0
    if (!filledByOlder && !isFilled && events < SOON_CAUGHT_UP) return undefined
  } finally {
    await client.end().catch(() => undefined)
  }
  return rebuildReadModels({ ...options, before: (await logsBefore?.()) ?? [] })
}

/** Whether the read models have rows; the first event of a log already makes one. */
async function hasRows(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ filled: boolean }>(
    `select exists (select from ${READ_MODEL_SCHEMA}.audit_log) as filled`,
  )
  return rows[0]!.filled
}
