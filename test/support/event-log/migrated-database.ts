import { migrate } from '../../../src/events/postgres/migrate.ts'
import { sharedPostgres, type TestDatabase } from '../postgres.ts'
import { withRunLock } from '../run-folder.ts'
import pg from 'pg'

const TEMPLATE = 'migrated_template'
let ready: Promise<void> | undefined

/** A new database with all migrations on the shared server of the run, copied from a database that was migrated once. */
export async function createMigratedDatabase(): Promise<TestDatabase> {
  const server = await sharedPostgres()
  ready ??= withRunLock('migrated', async () => {
    const client = new pg.Client(server.url())
    await client.connect()
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [TEMPLATE])
    if (!rowCount) {
      await client.query(`create database ${TEMPLATE}_new`)
      await migrate({ connectionString: server.url(`${TEMPLATE}_new`) })
      await client.query(`alter database ${TEMPLATE}_new rename to ${TEMPLATE}`)
    }
    await client.end()
  })
  await ready
  return server.createDatabase(TEMPLATE)
}
