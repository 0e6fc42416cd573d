import pg from 'pg'
import { READ_MODEL_SCHEMA } from '../events/postgres/migrate.ts'
import { READ_MODELS } from './projection.ts'

type Versions = Readonly<Record<'version' | 'readable', number>>

const ADOPT = `insert into ${READ_MODEL_SCHEMA}.checkpoints (name, version, revision, checkpoint, events, updated_at)
  select name, $2, revision, checkpoint, events, now() from ${READ_MODEL_SCHEMA}.checkpoints
  where name = $1 and version between $3 and $2 - 1 and events > 0
    and not exists (select from ${READ_MODEL_SCHEMA}.checkpoints where name = $1 and version >= $2)
  order by version desc limit 1
  on conflict do nothing`

/**
 * Lets this program continue with tables that an earlier version filled, if it can read them. The projection continues
 * from their checkpoint; new columns and tables are empty for the older rows. The earlier version's checkpoint stays,
 * and marks these tables for a rebuild.
 */
export async function adoptOlderTables(database: pg.ClientConfig, versions: Versions = READ_MODELS): Promise<void> {
  await withClient(database, (client) => client.query(ADOPT, [READ_MODELS.name, versions.version, versions.readable]))
}

/** Whether rows of the live tables are of an earlier version. */
export async function hasOlderTables(database: pg.ClientConfig, { version }: Versions = READ_MODELS): Promise<boolean> {
  const { rows } = await withClient(database, (client) =>
    client.query(`select from ${READ_MODEL_SCHEMA}.checkpoints where name = $1 and version < $2 and events > 0`, [
      READ_MODELS.name,
      version,
    ]),
  )
  return rows.length > 0
}

async function withClient<T>(database: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ ...database, application_name: 'quipu rebuild' })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}
