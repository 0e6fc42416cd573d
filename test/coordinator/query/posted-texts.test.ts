import { afterAll, expect, it, vi } from 'vitest'
import { FrontEndThreads } from '../../../src/coordinator/front-end-threads/front-end-threads.ts'
import { LONG_TEXT } from '../../../src/coordinator/front-end-threads/threaded-front-end.ts'
import { HoldsLoop } from '../../../src/shared/cpu-budget.ts'
import type { EngineError } from '../../../src/shared/engine-error.ts'
import { limitOwners } from '../../../src/shared/limit-owner.ts'
import { createPostedTexts } from '../../../src/coordinator/query/secrets/posted-texts.ts'
import { recordedSubmission } from '../../../src/coordinator/query/secrets/query-secrets.ts'
import { checkPreparedTexts } from '../../../src/sql/planning-limits.ts'
import { sampleData } from '../../support/query-events.ts'
import { shopMetadata } from '../../support/front-end.ts'

const threads = new FrontEndThreads({ most: 1 })
afterAll(() => threads.stop())

const run = vi.spyOn(threads, 'run')
const texts = createPostedTexts({
  threads,
  metadata: shopMetadata(),
  typeIsAsked: () => true,
  ownerOf: limitOwners(false),
})
const { session, ...rest } = sampleData.QueryCreated
const long = (sql: string): string => sql + ' '.repeat(LONG_TEXT)

it.each([
  ["SELECT 'x' AS password", true],
  ["INSERT INTO nowhere.nowhere.nowhere VALUES ('hidden')", true],
  ['SELECT 1', false],
  ["SELECT password = '", true],
])('`seal` redacts a long text in a thread exactly as a short text: %s', async (sql, redacted) => {
  run.mockClear()
  const short = await texts.seal(sql, session, rest)
  expect(run).not.toHaveBeenCalled()
  const sealed = await texts.seal(long(sql), session, rest)
  expect(run).toHaveBeenCalledTimes(1)
  expect(short.created.redacted).toBe(redacted)
  expect(sealed.created.redacted).toBe(redacted)
  expect(sealed.created.sql.trim()).toBe(short.created.sql.trim())
  expect(sealed.text.sql).toBe(long(sql))
})

it('`seal` and `findType` determine the query type of a long statement in the thread', async () => {
  const sql = long('INSERT INTO orders SELECT * FROM orders')
  const { text, type } = await texts.seal(sql, session, rest)
  expect(type.get()).toBe('INSERT')
  expect(text.parsed).toBeUndefined()
  const recovered = recordedSubmission({ ...rest, session, sql: long('EXPLAIN SELECT 1') })
  await texts.findType(recovered)
  expect(recovered.type.get()).toBe('EXPLAIN')
  expect(recovered.text.parsed).toBeUndefined()
  expect(texts.findType(recordedSubmission({ ...rest, session, sql: 'SELECT 1' }))).toBeUndefined()
})

it.each([
  ['SELECT 1', undefined],
  ['SELECT 1 +', 'SYNTAX_ERROR'],
])('`checkPrepared` parses long prepared statements in a thread with the same answer: %s', async (sql, errorName) => {
  run.mockClear()
  const check = (prepared: string) =>
    texts.checkPrepared({ ...session, preparedStatements: { a: 'SELECT 1', p: prepared } }).then(
      () => undefined,
      (error: unknown) => (error as EngineError).errorName,
    )
  expect(await check(sql)).toBe(errorName)
  expect(run).not.toHaveBeenCalled()
  expect(await check(long(sql))).toBe(errorName)
  expect(run).toHaveBeenCalledTimes(1)
})

it('`checkPreparedTexts` gives up when all texts together hold the event loop for too long', () => {
  const preparedStatements = Object.fromEntries(
    Array.from({ length: 200 }, (_, i) => [`p${i}`, `SELECT ${'1 + '.repeat(200)}1`]),
  )
  expect(() => checkPreparedTexts(preparedStatements, { holdMs: 0 })).toThrow(HoldsLoop)
})
