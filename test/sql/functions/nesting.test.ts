import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { renderCast } from '../../../src/sql/functions/casts.ts'
import { resolveArithmetic, resolveSubscript } from '../../../src/sql/functions/operators.ts'
import { resolveFunction } from '../../../src/sql/functions/resolve-function.ts'
import { literal, plainName, sql as code, toText, type Sql } from '../../../src/duckdb/text/sql.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

const names = { count: 0, fresh: () => plainName(`v${names.count++}`) }
const session = { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody', groups: [] }
const LEVELS = 12

/** Macros repeat their arguments. If copies were copied again, DuckDB would take longer than this test may. */
describe('Deeply nested calls in DuckDB', () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
  })
  afterAll(() => duckdb.close())

  const nested = (start: Sql, level: (inner: Sql) => Sql): string => {
    let sql = start
    for (let i = 0; i < LEVELS; i++) sql = level(sql)
    return toText(sql)
  }

  it('run in time if they call a function', async () => {
    const bigint = parseTypeText('bigint')
    const substr = resolveFunction('substr', [
      { kind: 'value', type: parseTypeText('varchar(26)') },
      { kind: 'value', type: bigint },
    ])
    const two = { kind: 'value', sql: code`CAST(2 AS BIGINT)`, constant: 2n } as const
    const sql = nested(plainName('x'), (inner) =>
      substr.render({ args: [{ kind: 'value', sql: inner }, two], session, names }),
    )
    expect(await duckdb.rows(`SELECT ${sql} FROM (VALUES ('abcdefghijklmnopqrstuvwxyz')) t(x)`)).toEqual([
      ['mnopqrstuvwxyz'],
    ])
  })

  it('run in time if they are decimal divisions', async () => {
    const type = parseTypeText('decimal(12,2)')
    const sql = nested(plainName('x'), (inner) => {
      const division = resolveArithmetic('/', type, type)
      const quotient = division.render(inner, code`CAST('2.00' AS DECIMAL(12,2))`, { names, session })
      return renderCast(quotient, division.result, type, { names, session })
    })
    expect(
      await duckdb.rows(`SELECT CAST(${sql} AS VARCHAR) FROM (VALUES (CAST(40960 AS DECIMAL(12,2)))) t(x)`),
    ).toEqual([['10.00']])
  })

  it('may contain a long literal', async () => {
    const substr = resolveFunction('substr', [
      { kind: 'value', type: parseTypeText('varchar(300)') },
      { kind: 'value', type: parseTypeText('bigint') },
    ])
    const args = [
      { kind: 'value', sql: literal('a'.repeat(300)) },
      { kind: 'value', sql: code`CAST(299 AS BIGINT)` },
    ] as const
    expect(await duckdb.rows(`SELECT ${toText(substr.render({ args, session, names }))}`)).toEqual([['aa']])
  })

  it('run in time if they are subscripts, and report the innermost error', async () => {
    const type = parseTypeText('array(integer)')
    const subscript = resolveSubscript(type, parseTypeText('bigint'))
    const at = (inner: Sql, index: Sql): Sql => subscript.render(inner, index, { names, session })
    const first = (inner: Sql): Sql => code`[${at(inner, code`1`)}]`
    expect(await duckdb.rows(`SELECT ${nested(code`[7]`, first)}`)).toEqual([[[7]]])
    await expect(duckdb.rows(`SELECT ${nested(code`[${at(code`[7]`, code`2`)}]`, first)}`)).rejects.toThrow(
      'Array subscript must be less than or equal to array length: 2 > 1',
    )
  })
})
