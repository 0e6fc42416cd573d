import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'

let runner: LibraryRunner
beforeAll(async () => void (runner = await openLibraryRunner()))
afterAll(() => runner.close())

async function literalRow(sql: string): Promise<string | undefined> {
  const analyzed = await runner.analyze(sql)
  if (analyzed.kind !== 'query') throw new Error(`No query: ${sql}`)
  return analyzed.query.literalRow
}

describe('A row of literals', () => {
  it("is the same as the engine's row, for any text", async () => {
    const literal = fc.oneof(
      fc.constantFrom('true', 'false', 'NULL', '0', '-1', '2147483648'),
      fc.integer().map(String),
      fc.string({ unit: 'grapheme' }).map((text) => `'${text.replaceAll("'", "''").replaceAll('\0', '')}'`),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(literal, { minLength: 1, maxLength: 5 }), async (literals) => {
        const sql = `SELECT ${literals.join(', ')}`
        const row = await literalRow(sql)
        expect(row).toBeDefined()
        expect([JSON.parse(row!)]).toEqual((await runner.run(sql)).rows)
      }),
      { numRuns: 60 },
    )
  })

  it('keeps every digit of an integer', async () => {
    expect(await literalRow('SELECT 9223372036854775807, -9223372036854775808')).toBe(
      '[9223372036854775807, -9223372036854775808]',
    )
  })

  it.each([
    'SELECT 1 + 1',
    'SELECT 1.5',
    'SELECT 1e0',
    "SELECT DATE '2024-01-01'",
    "SELECT CAST('a' AS char(3))",
    'SELECT 1 FROM nation',
    'SELECT 1 WHERE false',
    'SELECT 1 LIMIT 0',
    'SELECT 1 UNION ALL SELECT 2',
    'VALUES 1, 2',
    'SELECT now()',
  ])('is not used for %s', async (sql) => {
    expect(await literalRow(sql)).toBeUndefined()
  })
})
