import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrate, readMigrations } from '../../../src/events/postgres/migrate.ts'
import { createDatabase, type TestDatabase } from '../../support/postgres.ts'

let database: TestDatabase
let folder: string

beforeEach(async () => {
  database = await createDatabase()
  folder = await mkdtemp(join(tmpdir(), 'quipu-migrations-'))
})
afterEach(async () => {
  await database.drop()
  await rm(folder, { recursive: true, force: true })
})

async function tables(schema: string): Promise<string[]> {
  const client = new pg.Client(database.url)
  await client.connect()
  const { rows } = await client.query<{ name: string }>(
    'select tablename as name from pg_tables where schemaname = $1 order by 1',
    [schema],
  )
  await client.end()
  return rows.map((row) => row.name)
}

describe('`migrate`', () => {
  it('applies all migrations of the project, once', async () => {
    const connection = { connectionString: database.url }
    const all = (await readMigrations()).map((each) => each.number)
    expect(await migrate(connection)).toEqual(all)
    expect(await migrate(connection)).toEqual([])
    expect(await tables('quipu_log')).toContain('events')
    expect(await tables('m')).toContain('queries')
    expect(await tables('public')).toEqual([])
  })

  it('applies a migration once for several concurrent callers', async () => {
    await writeFile(join(folder, '0001_one.sql'), 'create table one (x int)')
    const done = await Promise.all([1, 2, 3].map(() => migrate({ connectionString: database.url }, folder)))
    expect(done.flat()).toEqual([1])
  })

  it('applies a migration completely or not at all', async () => {
    await writeFile(join(folder, '0001_half.sql'), 'create table half (x int); select 1 / 0')
    await expect(migrate({ connectionString: database.url }, folder)).rejects.toThrow('0001_half.sql failed')
    expect(await tables('public')).toEqual([])
  })

  it('refuses a changed migration, and a database with an unknown newer migration', async () => {
    await writeFile(join(folder, '0001_one.sql'), 'create table one (x int)')
    await writeFile(join(folder, '0002_two.sql'), 'create table two (x int)')
    await migrate({ connectionString: database.url }, folder)
    await writeFile(join(folder, '0001_one.sql'), 'create table one (x bigint)')
    await expect(migrate({ connectionString: database.url }, folder)).rejects.toThrow('was changed')
    await writeFile(join(folder, '0001_one.sql'), 'create table one (x int)')
    await rm(join(folder, '0002_two.sql'))
    await expect(migrate({ connectionString: database.url }, folder)).rejects.toThrow('does not know')
  })
})
