import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'

/** The schema that serves; first in the search path of whoever reads. */
export const READ_MODEL_SCHEMA = 'm'

interface Migration {
  readonly name: string
  readonly sql: string
  /** Indexes and the like, made after the rows when tables are built anew. */
  readonly afterRows: boolean
}

/** The numbered files that say `-- schema: read models` in their first line, in order. */
async function readModelMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_.*\.sql$/.test(name)).sort()
  const files = await Promise.all(
    names.map(async (name) => ({ name, sql: await readFile(join(folder, name), 'utf8') })),
  )
  return files
    .filter(({ sql }) => sql.startsWith('-- schema: read models\n'))
    .map(({ name, sql }) => ({ name, sql, afterRows: /^-- after: rows$/m.test(sql) }))
}

/**
 * Brings a schema of read models up to date: makes it when missing and runs the migrations it has not seen. What was run
 * is noted in the schema itself, so it moves with a swap. Safe beside another that does the same.
 * @param phase `tables` leaves out what is better made after the rows
 */
export async function installReadModels(
  client: pg.ClientBase,
  folder: string,
  schema: string = READ_MODEL_SCHEMA,
  phase: 'tables' | 'all' = 'all',
): Promise<void> {
  const migrations = await readModelMigrations(folder)
  await client.query('begin')
  try {
    await client.query(`select pg_advisory_xact_lock(hashtext('quipu read models'))`)
    await client.query(`create schema if not exists ${schema}`)
    await client.query(`set local search_path = ${schema}, public`)
    await client.query('set local client_min_messages = warning')
    await client.query(
      `create table if not exists ${schema}.migrations (name text primary key, run_at timestamptz not null default now())`,
    )
    const { rows } = await client.query<{ name: string }>('select name from migrations')
    const done = new Set(rows.map((row) => row.name))
    for (const { name, sql, afterRows } of migrations) {
      if (done.has(name) || (phase === 'tables' && afterRows)) continue
      await client.query(sql)
      await client.query('insert into migrations (name) values ($1)', [name])
    }
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}
