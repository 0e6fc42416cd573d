import pg from 'pg'
import { checkpointFromJson, type Checkpoint, type EventReader, type LogEnd } from '../../events/event-log.ts'
import type { Finding } from '../../events/audit/finding.ts'
import { READ_MODEL_SCHEMA } from '../../events/postgres/migrate.ts'
import { ProjectionApplier } from '../../events/projection-applier.ts'
import { eventsBelow, ProjectionStore } from '../../events/projection-store.ts'
import type { QueryRows } from '../../events/projection.ts'
import { checkQueryFiles } from './check-query-files.ts'
import { makeReadModelTables } from '../make-tables.ts'
import { createReadModelsProjection, READ_MODELS } from '../projection.ts'
import { foldLogsBefore, TAKE_REBUILD_LOCK } from '../rebuild.ts'

const MADE = `${READ_MODEL_SCHEMA}_audit`

/** The checkpoint of the live read models; undefined when there are none yet. */
export async function readModelCheckpoint(database: pg.ClientConfig): Promise<Checkpoint | undefined> {
  const client = await connect(database)
  try {
    const { rows } = await client.query<{ there: string | null }>(
      `select to_regclass('${READ_MODEL_SCHEMA}.checkpoints')::text as there`,
    )
    return rows[0]?.there ? await checkpointOf(client) : undefined
  } finally {
    await client.end().catch(() => undefined)
  }
}

interface ComparedTo {
  /** Folder of the queries that left the read models; without it their files are not checked. */
  readonly queriesFolder?: string | undefined
  /** The logs that this one continues, the oldest first. */
  readonly before?: readonly (EventReader & LogEnd)[]
  readonly onFinding: (finding: Finding) => void
}

/**
 * Folds the log into tables beside the live ones, up to their checkpoint, and compares all rows. The live tables continue
 * meanwhile: a snapshot of them is compared.
 * @returns the number of compared tables
 */
export async function compareReadModels(
  log: EventReader,
  database: pg.ClientConfig,
  { onFinding, queriesFolder, before = [] }: ComparedTo,
): Promise<number> {
  const [live, made] = [await connect(database), await connect(database)]
  let store: ProjectionStore | undefined
  try {
    const { rows } = await made.query<{ held: boolean }>(TAKE_REBUILD_LOCK)
    if (!rows[0]?.held) throw new Error('A rebuild is running')
    await live.query('begin isolation level repeatable read read only')
    const checkpoint = await checkpointOf(live)
    if (!checkpoint) return 0
    await made.query(`drop schema if exists ${MADE} cascade`)
    await makeReadModelTables(made, MADE)
    store = await ProjectionStore.connect(database, MADE, READ_MODELS)
    await foldLogsBefore(store, before)
    const projection = createReadModelsProjection()
    const applier = await ProjectionApplier.open({ store, projection, log, maxBatch: 5000 })
    await applier.readOn(eventsBelow(checkpoint))
    const liveRows: QueryRows = async (text, values) =>
      (await live.query<Record<string, unknown>>(text, [...values])).rows
    const tables = await tablesOf(live)
    const archived = await archivedContents(live)
    if (queriesFolder !== undefined) await checkQueryFiles(liveRows, queriesFolder, onFinding)
    for (const table of tables) {
      const [stays, ours] = [await contentOf(live, READ_MODEL_SCHEMA, table), await contentOf(made, MADE, table)]
      const theirs = together([stays, ...(archived.get(table) ?? [])])
      if (theirs.rows !== ours.rows)
        onFinding({
          kind: 'read-model',
          what: `${table} has ${theirs.rows} rows, but a rebuild from the log gives ${ours.rows}`,
        })
      else if (theirs.sum !== ours.sum)
        onFinding({
          kind: 'read-model',
          what: `${table} has other rows than the ${ours.rows} rows that a rebuild from the log gives`,
        })
    }
    return tables.length
  } finally {
    await store?.close()
    await made.query(`drop schema if exists ${MADE} cascade`).catch(() => undefined)
    await Promise.all([live.end().catch(() => undefined), made.end().catch(() => undefined)])
  }
}

async function connect(database: pg.ClientConfig): Promise<pg.Client> {
  // Times are compared as text, so all connections use UTC.
  const client = new pg.Client({
    ...database,
    application_name: 'quipu audit',
    options: `-c timezone=UTC -c search_path=${READ_MODEL_SCHEMA},public`,
  })
  client.on('error', () => undefined)
  await client.connect()
  await client.query('set client_min_messages = warning')
  return client
}

async function checkpointOf(client: pg.Client): Promise<Checkpoint | undefined> {
  const { rows } = await client.query<{ checkpoint: string }>(
    `select checkpoint from ${READ_MODEL_SCHEMA}.checkpoints where name = $1 and version = $2`,
    [READ_MODELS.name, READ_MODELS.version],
  )
  return rows[0] && checkpointFromJson(rows[0].checkpoint)
}

/** All tables but those about the projection itself: dead letters have the times of their repair. */
async function tablesOf(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = '${READ_MODEL_SCHEMA}'::regnamespace
       and relkind in ('r', 'p') and not relispartition and relname not in ('checkpoints', 'dead_letters') order by 1`,
  )
  return rows.map((row) => row.name)
}

interface Content {
  readonly rows: string
  readonly sum: string
}

/** Counts and hash sums of the rows that left the live tables, by table, as recorded for the files. */
async function archivedContents(client: pg.Client): Promise<ReadonlyMap<string, readonly Content[]>> {
  const { rows } = await client.query<Content & { name: string }>(
    `select t.key as name, t.value->>'rows' as rows, t.value->>'sum' as sum
     from quipu_log.query_periods p, jsonb_each(p.tables) t`,
  )
  const contents = new Map<string, Content[]>()
  for (const { name, ...content } of rows) contents.set(name, [...(contents.get(name) ?? []), content])
  return contents
}

function together(parts: readonly Content[]): Content {
  const sum = (of: 'rows' | 'sum'): string => String(parts.reduce((all, part) => all + BigInt(part[of]), 0n))
  return { rows: sum('rows'), sum: sum('sum') }
}

/** Number of rows and a sum of their hashes: independent of the order, and without much memory. */
async function contentOf(client: pg.Client, schema: string, table: string): Promise<Content> {
  const { rows } = await client.query<{ rows: string; sum: string }>(
    `select count(*)::text as rows, coalesce(sum(hashtextextended(t::text, 0)::numeric), 0)::text as sum
     from ${schema}."${table}" t`,
  )
  return rows[0]!
}
