import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { QuipuError } from '../../shared/quipu-error.ts'
import { migrationsFolder } from '../../shared/shipped-files.ts'

/** Schema of the read models; a rebuild builds them in another schema and swaps the two. */
export const READ_MODEL_SCHEMA = 'm'
/** First lines of a migration whose tables are read models: its table names carry no schema. */
const READ_MODELS = /^(--.*\n)*-- schema: read models\b/
/** An arbitrary lock number that nothing else in this database uses. */
const LOCK = 7_218_450_113

export interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
  readonly checksum: string
}

/** An applied migration was changed later, or the database is newer than this program. */
export class MigrationError extends QuipuError {
  readonly retry = 'never'
}

/**
 * Migrates a database to the newest version: numbered SQL files, each applied once and in its own transaction. Any
 * process may call this at any time; concurrent calls wait for each other.
 * @returns the numbers applied by this call
 * @throws MigrationError
 */
export async function migrate(connection: pg.ClientConfig, folder = migrationsFolder): Promise<number[]> {
  const migrations = await readMigrations(folder)
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK])
    await client.query('create schema if not exists quipu_log')
    await client.query(`create table if not exists quipu_log.migrations (
      number int primary key, name text not null, checksum text not null, applied timestamptz not null default now())`)
    const { rows } = await client.query<{ number: number; name: string; checksum: string }>(
      'select number, name, checksum from quipu_log.migrations order by number',
    )
    const applied = new Map(rows.map((row) => [row.number, row]))
    const newest = migrations.at(-1)?.number ?? 0
    const beyond = rows.find((row) => row.number > newest)
    if (beyond)
      throw new MigrationError(`The database has migration ${beyond.name}, which this version of Quipu does not know`)
    const done: number[] = []
    for (const migration of migrations) {
      const before = applied.get(migration.number)
      if (before && before.checksum !== migration.checksum)
        throw new MigrationError(`Migration ${migration.name} was changed after it was applied`)
      if (before) continue
      await apply(client, migration)
      done.push(migration.number)
    }
    return done
  } finally {
    // The end of the session releases the lock.
    await client.end().catch(() => {})
  }
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('begin')
  try {
    if (isOfReadModels(migration)) {
      await client.query(`create schema if not exists ${READ_MODEL_SCHEMA}`)
      await client.query(`set local search_path = ${READ_MODEL_SCHEMA}, public`)
    }
    await client.query(migration.sql)
    await client.query('insert into quipu_log.migrations (number, name, checksum) values ($1, $2, $3)', [
      migration.number,
      migration.name,
      migration.checksum,
    ])
    await client.query('commit')
  } catch (cause) {
    await client.query('rollback').catch(() => {})
    throw new MigrationError(`Migration ${migration.name} failed: ${(cause as Error).message}`, { cause })
  }
}

/** Whether the tables of a migration are read models. */
export function isOfReadModels(migration: Migration): boolean {
  return READ_MODELS.test(migration.sql)
}

/** Reads the numbered files of a folder, in order. @throws MigrationError when two files have the same number */
export async function readMigrations(folder = migrationsFolder): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name)).sort()
  const migrations = await Promise.all(
    names.map(async (name): Promise<Migration> => {
      const sql = await readFile(join(folder, name), 'utf8')
      return { number: Number(name.slice(0, 4)), name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
  const twice = migrations.find((each, index) => migrations[index + 1]?.number === each.number)
  if (twice) throw new MigrationError(`Two migrations have the number of ${twice.name}`)
  return migrations
}
