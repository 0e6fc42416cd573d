import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, startPostgres, type TestDatabase, type TestPostgres } from './postgres.ts'

async function ask(url: string, sql: string): Promise<unknown> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(sql)).rows[0]
  } finally {
    await client.end()
  }
}

describe('The database of a test file', () => {
  let database: TestDatabase
  beforeAll(async () => (database = await createDatabase()))
  afterAll(() => database.drop())

  it('is empty and writable', async () => {
    expect(await ask(database.url, `select count(*)::int as n from pg_tables where schemaname = 'public'`)).toEqual({
      n: 0,
    })
    await ask(database.url, 'create table t as select 1 as x')
    expect(await ask(database.url, 'select x from t')).toEqual({ x: 1 })
  })
})

describe('A Postgres server of one test file', () => {
  let server: TestPostgres
  beforeAll(async () => (server = await startPostgres()))
  afterAll(() => server.stop())

  it('has its committed rows after kill -9 and a restart', async () => {
    await ask(server.url(), 'create table t as select 7 as x')
    await server.kill('SIGKILL')
    await server.start()
    expect(await ask(server.url(), 'select x from t')).toEqual({ x: 7 })
  })
})
