import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { translateError } from '../../../src/sql/functions/runtime-errors.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

describe('The errors of running statements', () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
  })
  afterAll(() => duckdb.close())

  const failure = async (sql: string): Promise<{ errorName: string; message: string }> => {
    const text = await duckdb.rows(sql).then(
      () => 'none',
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
    const { errorName, message } = translateError(text)
    return { errorName, message }
  }

  it.each([
    [`SELECT q_idiv(1, x) FROM (VALUES (0)) t(x)`, 'DIVISION_BY_ZERO', 'Division by zero'],
    [
      `SELECT CAST(x AS TINYINT) + CAST(100 AS TINYINT) FROM (VALUES (100)) t(x)`,
      'NUMERIC_VALUE_OUT_OF_RANGE',
      'tinyint addition overflow: 100 + 100',
    ],
    [
      `SELECT CAST(x AS BIGINT) * 9223372036854775807 FROM (VALUES (3)) t(x)`,
      'NUMERIC_VALUE_OUT_OF_RANGE',
      'bigint multiplication overflow: 3 * 9223372036854775807',
    ],
    [
      `SELECT abs(CAST(x AS TINYINT)) FROM (VALUES (-128)) t(x)`,
      'NUMERIC_VALUE_OUT_OF_RANGE',
      'Value -128 is out of range for abs(tinyint)',
    ],
    [
      `SELECT q_text_to_date(x) FROM (VALUES ('2024-13-01')) t(x)`,
      'INVALID_CAST_ARGUMENT',
      'Value cannot be cast to date: 2024-13-01',
    ],
    // Text in a statement never decides the name of its error.
    [
      `SELECT q_text_to_date(x) FROM (VALUES (chr(1) || 'a')) t(x)`,
      'INVALID_CAST_ARGUMENT',
      'Value cannot be cast to date: \u0001a',
    ],
    [
      `SELECT q_text_to_date(x) FROM (VALUES (chr(1) || 'REMOTE_TASK_ERROR: x')) t(x)`,
      'INVALID_CAST_ARGUMENT',
      'Value cannot be cast to date: \u0001REMOTE_TASK_ERROR: x',
    ],
    [
      `SELECT CAST(x AS INTEGER) FROM (VALUES (chr(1) || 'REMOTE_TASK_ERROR: x')) t(x)`,
      'INVALID_CAST_ARGUMENT',
      `Cannot cast '\u0001REMOTE_TASK_ERROR: x' to INTEGER`,
    ],
    [
      `SELECT q_json_parse(x) FROM (VALUES ('[1,')) t(x)`,
      'INVALID_FUNCTION_ARGUMENT',
      `Cannot convert value to JSON: '[1,'`,
    ],
    [
      `SELECT u_rx_like(x, '(') FROM (VALUES ('a')) t(x)`,
      'INVALID_FUNCTION_ARGUMENT',
      'end pattern with unmatched parenthesis',
    ],
    [
      `SELECT (SELECT x FROM (VALUES (1), (2)) t(x))`,
      'SUBQUERY_MULTIPLE_ROWS',
      'Scalar sub-query has returned multiple rows',
    ],
  ])('fail as in Trino: %s: %s', async (sql, errorName, message) => {
    expect(await failure(sql)).toEqual({ errorName, message })
  })

  it("hide DuckDB's errors", async () => {
    expect(await failure(`SELECT no_such_function(1)`)).toEqual({
      errorName: 'GENERIC_INTERNAL_ERROR',
      message: 'The query engine failed on this statement',
    })
  })

  it.each(['', '\n\nLINE 1: SELECT 1'])('name a refused file without its path%j', (end) => {
    const error = translateError(`IO Error: Cannot open file "/srv/lake/s/t/1.csv": Permission denied${end}`)
    expect(error).toMatchObject({
      errorName: 'PERMISSION_DENIED',
      message: expect.not.stringContaining('/srv') as string,
    })
  })

  it('do not mistake data for an error of Quipu', async () => {
    expect((await failure(`SELECT CAST('USER_CANCELED: forged' AS INTEGER)`)).errorName).toBe('INVALID_CAST_ARGUMENT')
  })
})
