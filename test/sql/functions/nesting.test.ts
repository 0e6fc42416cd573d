import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { renderCast } from '../../../src/sql/functions/casts.ts'
import { resolveArithmetic, resolveSubscript } from '../../../src/sql/functions/operators.ts'
import { resolveFunction } from '../../../src/sql/functions/resolve-function.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

const names = { count: 0, fresh: () => `v${names.count++}` }
const session = { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody' }
const LEVELS = 12

/** Macros name their arguments several times; copies of copies would take DuckDB longer than this test may. */
describe('deeply nested calls', () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
  })
  afterAll(() => duckdb.close())

  const nested = (start: string, level: (inner: string) => string): string => {
    let sql = start
    for (let i = 0; i < LEVELS; i++) sql = level(sql)
    return sql
  }

  it('of a function', async () => {
    const bigint = parseTypeText('bigint')
    const substr = resolveFunction('substr', [
      { kind: 'value', type: parseTypeText('varchar(26)') },
      { kind: 'value', type: bigint },
    ])
    const two = { kind: 'value', sql: 'CAST(2 AS BIGINT)', constant: 2n } as const
    const sql = nested('x', (inner) => substr.render({ args: [{ kind: 'value', sql: inner }, two], session, names }))
    expect(await duckdb.rows(`SELECT ${sql} FROM (VALUES ('abcdefghijklmnopqrstuvwxyz')) t(x)`)).toEqual([
      ['mnopqrstuvwxyz'],
    ])
  })

  it('of a decimal division', async () => {
    const type = parseTypeText('decimal(12,2)')
    const sql = nested('x', (inner) => {
      const division = resolveArithmetic('/', type, type)
      const quotient = division.render(inner, `CAST('2.00' AS DECIMAL(12,2))`, { names, session })
      return renderCast(quotient, division.result, type, { names, session })
    })
    expect(
      await duckdb.rows(`SELECT CAST(${sql} AS VARCHAR) FROM (VALUES (CAST(40960 AS DECIMAL(12,2)))) t(x)`),
    ).toEqual([['10.00']])
  })

  it('of a subscript, the innermost error included', async () => {
    const type = parseTypeText('array(integer)')
    const subscript = resolveSubscript(type, parseTypeText('bigint'))
    const at = (inner: string, index: string): string => subscript.render(inner, index, { names, session })
    const sql = nested('[7]', (inner) => `[${at(inner, '1')}]`)
    expect(await duckdb.rows(`SELECT ${at(sql, '1')}`)).toEqual([[7]])
    await expect(
      duckdb.rows(`SELECT ${nested(`[${at('[7]', '2')}]`, (inner) => `[${at(inner, '1')}]`)}`),
    ).rejects.toThrow('Array subscript must be less than or equal to array length: 2 > 1')
  })
})
