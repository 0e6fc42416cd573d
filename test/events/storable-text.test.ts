import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { storableJson, storableText } from '../../src/events/storable-text.ts'
import { createDatabase, type TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
let client: pg.Client

beforeAll(async () => {
  database = await createDatabase()
  client = new pg.Client(database.url)
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await database.drop()
})

/** Arbitrary UTF-16 text, with many characters that Postgres refuses. */
const anyText = fc
  .array(
    fc.oneof(fc.constantFrom('\0', '\ud800', '\udfff', '\\', '\\u0000', '"', 'é', '😀'), fc.string({ maxLength: 3 })),
    {
      maxLength: 12,
    },
  )
  .map((parts) => parts.join(''))

const whole = (text: string): string => Buffer.from(text).toString().replaceAll('\0', '\ufffd')

it('`storableText` replaces characters that Postgres refuses by U+FFFD, and keeps all others', async () => {
  await fc.assert(
    fc.asyncProperty(anyText, async (text) => {
      const { rows } = await client.query<{ t: string }>('select $1::text as t', [storableText(text)])
      expect(rows[0]?.t).toBe(whole(text))
    }),
    { numRuns: 200 },
  )
})

it('`storableJson` replaces characters that Postgres refuses by U+FFFD, and keeps all others', async () => {
  await fc.assert(
    fc.asyncProperty(anyText, async (text) => {
      const { rows } = await client.query<{ t: string }>(`select $1::jsonb ->> 'a' as t`, [storableJson({ a: text })])
      expect(rows[0]?.t).toBe(whole(text))
    }),
    { numRuns: 200 },
  )
})
