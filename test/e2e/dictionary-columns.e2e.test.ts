import { describe, expect, it } from 'vitest'
import { serverOfFile } from '../support/server-of-file.ts'
import { run } from '../support/statement-client.ts'

/*
 * Columns of Parquet with a dictionary: DuckDB evaluates expressions that it considers harmless over the dictionary.
 */

const server = serverOfFile()

/** A thousand clerks have written the orders: `Clerk#000000001` and so on. */
const of = async (expression: string, from = '(SELECT * FROM orders LIMIT 5000)') => {
  const { rows, error } = await run(server.url, `SELECT count(${expression}), count(*) FROM ${from}`)
  return error?.message ?? rows
}

describe('Expressions over a column with a dictionary', { timeout: 400_000 }, () => {
  it.each([
    'TRY_CAST(clerk AS bigint)',
    'TRY_CAST(clerk AS smallint)',
    'TRY(CAST(clerk AS integer))',
    'TRY_CAST(clerk AS double)',
    'TRY_CAST(clerk AS real)',
    'TRY_CAST(clerk AS decimal(10, 2))',
    'TRY_CAST(clerk AS decimal(38, 10))',
    'TRY_CAST(clerk AS boolean)',
  ])('%s is NULL where it fails, in all rows or in some', async (expression) => {
    expect(await of(expression, 'orders')).toEqual([[0, 15_000]])
    const some = expression.replace('clerk', 'substr(clerk, 15)')
    const [[count]] = (await of(some, 'orders')) as [[number]]
    expect(count).toBe(expression.includes('boolean') ? await ones() : 15_000)
  })

  it.each([
    `TRY_CAST(clerk AS date)`,
    `TRY_CAST(clerk AS timestamp)`,
    `TRY_CAST(clerk AS time)`,
    `TRY(date_parse(clerk, '%%Y'))`,
    `TRY(json_parse(clerk))`,
    `TRY(from_base(clerk, 10))`,
    `TRY(from_iso8601_timestamp(clerk))`,
    `TRY(CAST(clerk AS ipaddress))`,
    `TRY(CAST(clerk AS uuid))`,
    `TRY(1 / (orderkey - orderkey))`,
  ])('%s is NULL where it fails', async (expression) => {
    expect(await of(expression.replace('%%', '%'), '(SELECT * FROM orders LIMIT 2500)')).toEqual([[0, 2500]])
  })

  it('an expression that fails for one value of the dictionary does not fail for rows with other values', async () => {
    const numbers = "from_base(if(clerk = 'Clerk#000000951', 'none', substr(clerk, 7)), 10)"
    expect(await of(numbers)).toBe('Not a valid base-10 number: none')
    const others = "(SELECT * FROM orders WHERE clerk <> 'Clerk#000000951')"
    expect(await of(numbers, others)).toEqual(await of('clerk', others))
    expect(await of('from_base(substr(clerk, 1), 36)', "(SELECT * FROM orders WHERE clerk = 'none')")).toEqual([[0, 0]])
  })
})

async function ones(): Promise<number> {
  const { rows } = await run(server.url, "SELECT count(*) FROM orders WHERE substr(clerk, 15) IN ('0', '1')")
  return rows[0]![0] as number
}
