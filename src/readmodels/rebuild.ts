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
  /** Logs that it goes on from, the first of them first. @default none */
  readonly before?: readonly (EventReader & LogEnd)[]
  readonly database: pg.ClientConfig
  /** Folder of the numbered SQL files. @default this program's */
  readonly migrations?: string
  readonly clock: Clock
  /** Events in one transaction. @default 5000 */
  readonly batch?: number
  /** Called after each batch with the events done and those there were at the beginning. */
  readonly onProgress?: (done: number, total: number) => void
}

export interface Rebuilt {
  readonly events: number
  readonly milliseconds: number
  readonly deadLetters: number
}

/** Held by whoever makes tables beside those that serve. */
export const TAKE_REBUILD_LOCK = `select pg_try_advisory_lock(hashtext('quipu rebuild')) as held`

const NEW = `${READ_MODEL_SCHEMA}_new`
const OLD = `${READ_MODEL_SCHEMA}_old`
/** Events that the running projection applies from nothing within a second. */
const SOON_CAUGHT_UP = 10_000
/** A server that has not caught up after this does not run, or not as it should: the new tables are the better ones. */
const WAIT_FOR_LIVE_MS = 2000

/**
 * Folds the log from its first event into a schema of its own while the old one serves, makes the indexes, catches up,
 * and swaps the schemas in one transaction when both hold the same events. Who projects into the old tables then finds
 * the checkpoint moved and goes on in the new ones. Serves a lost database as well.
 * @throws LogChanged when the tables that serve were made from another log
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
 * Folds logs that lie behind another one; its own events come next.
 * @returns their events
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
 * How far a rebuild beside this process is, by the events there are.
 * @returns 1 when none runs
 */
export async function rebuildProgress(query: QueryRows, events: number): Promise<number> {
  const [there] = await query(`select to_regclass('${NEW}.checkpoints') is not null as there`, [])
  if (!there?.['there'] || events === 0) return 1
  const [row] = await query(`select events from ${NEW}.checkpoints where name = $1`, [READ_MODELS.name])
  return Math.min(1, Number(row?.['events'] ?? 0) / events)
}

/** Until what serves has all that is in the new tables: nobody who reads now may be shown less later, or more too early. */
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
    // Holds the live projection just before its commit.
    const live = await readLive(admin, 'for update')
    if (live) {
      await applier.readOn(eventsBelow(live.checkpoint))
      mustAgree(live.checkpoint, applier.committed)
      // It may be waiting for this very row with its revision; then it must find another, also in the old table.
      const revision = String(live.revision + 1n)
      await admin.query(`update ${READ_MODEL_SCHEMA}.checkpoints set revision = $1`, [revision])
      await admin.query(`update ${NEW}.checkpoints set revision = $1`, [revision])
    }
    await admin.query(`
      do $$ begin
        if to_regnamespace('${READ_MODEL_SCHEMA}') is not null then alter schema ${READ_MODEL_SCHEMA} rename to ${OLD}; end if;
        alter schema ${NEW} rename to ${READ_MODEL_SCHEMA};
      end $$`)
    // All rows are in the new tables: the archive is made anew of them, as its rules say.
    await admin.query('delete from quipu_log.query_periods')
    await admin.query('commit')
  } catch (error) {
    await admin.query('rollback').catch(() => undefined)
    throw error
  }
  await admin.query(`drop schema if exists ${OLD} cascade`)
}

/** Counts and hashes prove that both folded the same events, wherever they hold as many. */
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
 * To be called before the projection starts: tables that are empty beside a long log (a lost database), or that an older
 * projection filled, are made anew at once.
 * @returns what was done, undefined when the tables can be gone on with
 */
export async function rebuildIfNeeded({
  logsBefore,
  ...options
}: Omit<RebuildOptions, 'before'> & {
  /** Asked only when the tables are made anew. @default none */
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
    // A log that goes on from another one adds to the tables; else its events are in them, and would be told twice.
    const isFilled = events > 0 && (await hasRows(client)) && ((await logsBefore?.()) ?? []).length === 0
    if (!filledByOlder && !isFilled && events < SOON_CAUGHT_UP) return undefined
  } finally {
    await client.end().catch(() => undefined)
  }
  return rebuildReadModels({ ...options, before: (await logsBefore?.()) ?? [] })
}

/** Of the first event of a log already. */
async function hasRows(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ filled: boolean }>(
    `select exists (select from ${READ_MODEL_SCHEMA}.audit_log) as filled`,
  )
  return rows[0]!.filled
}
