import type pg from 'pg'
import { isOfReadModels, readMigrations } from '../events/postgres/migrate.ts'

/** New tables of read models, without rows. */
export interface MadeTables {
  /**
   * Makes the indexes that lists filter and sort by: over all rows at once this is faster than row by row. Also
   * collects statistics, because Postgres plans badly for new tables until it collects them itself.
   */
  makeIndexes(): Promise<void>
}

/**
 * Makes the tables of read models in a new schema, as `migrate` makes the live ones. All migrations run, in order, over
 * empty tables; so rows never meet an index that a later migration replaced.
 */
export async function makeReadModelTables(client: pg.ClientBase, schema: string, folder?: string): Promise<MadeTables> {
  const migrations = (await readMigrations(folder)).filter(isOfReadModels)
  const indexes = await inTransaction(client, async () => {
    await client.query(`create schema if not exists ${schema}`)
    await client.query(`set local search_path = ${schema}`)
    for (const { sql } of migrations) await client.query(sql)
    const found = await client.query<{ name: string; definition: string }>(INDEXES, [schema])
    for (const { name } of found.rows) await client.query(`drop index ${name}`)
    return found.rows
  })
  return {
    makeIndexes: () =>
      inTransaction(client, async () => {
        for (const { definition } of indexes) await client.query(definition)
        const tables = await client.query<{ name: string }>(TABLES, [schema])
        for (const { name } of tables.rows) await client.query(`analyze ${name}`)
      }),
  }
}

/** Without indexes of constraints: keys must hold while rows are inserted. */
const INDEXES = `
  select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
  from pg_index i join pg_class c on c.oid = i.indexrelid
  where c.relnamespace = $1::regnamespace and not i.indisunique and not c.relispartition
    and not exists (select from pg_constraint where conindid = i.indexrelid)
  order by c.relname`

const TABLES = `
  select c.oid::regclass::text as name from pg_class c
  where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  order by c.relname`

async function inTransaction<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('begin')
  try {
    const result = await work()
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}
