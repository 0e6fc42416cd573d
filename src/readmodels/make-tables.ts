import type pg from 'pg'
import { isOfReadModels, readMigrations } from '../events/postgres/migrate.ts'

/**
 * Makes the tables of read models in a new schema of any name, as `migrate` makes them in the one that serves.
 * @param phase what is better made after the rows, indexes for one, says so in its file and is run apart
 */
export async function makeReadModelTables(
  client: pg.ClientBase,
  schema: string,
  phase: 'before rows' | 'after rows',
  folder?: string,
): Promise<void> {
  const migrations = (await readMigrations(folder)).filter(isOfReadModels)
  await client.query('begin')
  try {
    await client.query(`create schema if not exists ${schema}`)
    await client.query(`set local search_path = ${schema}`)
    for (const { sql } of migrations)
      if (/^-- after: rows$/m.test(sql) === (phase === 'after rows')) await client.query(sql)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}
