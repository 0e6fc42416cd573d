import pg from 'pg'
import { READ_MODEL_SCHEMA } from '../events/postgres/migrate.ts'
import { isQueryId, type QueryId } from '../shared/ids.ts'
import { readStreams } from './query-events/queries.ts'
import { READ_MODELS } from './projection.ts'
import { QueryFolds } from './queries/projection.ts'
import { tablesOfQueries } from './queries/tables.ts'

export interface Mended {
  readonly events: number
  /** Dead letters, parked events included, that are now resolved. */
  readonly deadLetters: number
}

/**
 * Writes a query's rows anew from its stored events and closes its dead letters, while the server runs. The running
 * projection finds its checkpoint moved and reads the parked streams again.
 * @throws the error that still prevents an event from being applied; then nothing is changed
 */
export function mendQuery(database: pg.ClientConfig, queryId: QueryId): Promise<Mended> {
  return withClient(database, (client) => mendBy(client, queryId))
}

/** Streams with events that the database accepted but the projecting program refused. */
const SELECT_REFUSED = `select distinct stream from dead_letters
  where projection = $1 and kind = 'failed' and sqlstate is null and resolved_at is null order by stream`

/**
 * Repairs the queries with events that a program refused: most often an older version, in a log that a newer version
 * had written. A query that this program cannot read either stays as it is.
 */
export function mendRefused(database: pg.ClientConfig, stopping: AbortSignal): Promise<Mended> {
  return withClient(database, async (client) => {
    const mended = { events: 0, deadLetters: 0 }
    const { rows } = await client.query<{ stream: string }>(SELECT_REFUSED, [READ_MODELS.name])
    for (const queryId of rows.map(({ stream }) => stream).filter(isQueryId)) {
      if (stopping.aborted) break
      const one = await mendBy(client, queryId).catch(() => ({ events: 0, deadLetters: 0 }))
      mended.events += one.events
      mended.deadLetters += one.deadLetters
    }
    return mended
  })
}

async function withClient<T>(database: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    ...database,
    application_name: 'quipu rebuild',
    options: `${database.options ?? ''} -c search_path=${READ_MODEL_SCHEMA},public`.trim(),
  })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function mendBy(client: pg.Client, queryId: QueryId): Promise<Mended> {
  try {
    await client.query('begin')
    // Blocks the running projection just before its commit.
    await client.query('update checkpoints set revision = revision + 1 where name = $1', [READ_MODELS.name])
    const query = async (text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> =>
      (await client.query<Record<string, unknown>>(text, [...values])).rows
    const events = await readStreams(query, [queryId])
    for (const { name } of tablesOfQueries) await client.query(`delete from ${name} where query_id = $1`, [queryId])
    const batch = await new QueryFolds().begin(events, query)
    for (const event of events) batch.apply(event)
    for (const write of batch.writes()) await client.query({ ...write, values: [...write.values] })
    const resolved = await client.query(
      'update dead_letters set resolved_at = now() where projection = $1 and stream = $2 and resolved_at is null',
      [READ_MODELS.name, queryId],
    )
    await client.query('commit')
    return { events: events.length, deadLetters: resolved.rowCount ?? 0 }
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}
