import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { renderCast, renderTryCast } from '../../../src/sql/functions/casts.ts'
import { comparisonKey, isDistinct, sortItems } from '../../../src/sql/functions/comparison.ts'
import { renderComparison, renderIn } from '../../../src/sql/functions/operators.ts'
import { translateError } from '../../../src/sql/functions/runtime-errors.ts'
import { canCast } from '../../../src/sql/types/coercion.ts'
import { plainName, toText, type Sql } from '../../../src/duckdb/text/sql.ts'
import { duckdbTypeText, typedNull } from '../../../src/sql/types/duckdb-representation.ts'
import { isComparable, isOrderable } from '../../../src/sql/types/sql-type.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { wireEncoding } from '../../../src/sql/types/wire-encoding.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { sampleOf } from '../../support/sql-samples.ts'

const names = { count: 0, fresh: () => plainName(`v${names.count++}`) }
const [x, y] = [plainName('x'), plainName('y')]
const list = (pieces: readonly Sql[]): string => pieces.map(toText).join(', ')
const session = { timeZone: 'America/New_York', startTimeMillis: Date.UTC(2024, 5, 1), user: 'somebody', groups: [] }
const context = { names, session }

const texts = [
  ...new Set(
    readFileSync(new URL('../types/coercions.tsv', import.meta.url), 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .flatMap((line) => line.split('\t').slice(0, 2)),
  ),
].filter((text) => !/JsonPath|json2016|LikePattern|JoniRegExp|Geometry|Geography|BingTile/.test(text))
const types = texts.map((text) => ({ text, type: parseTypeText(text) }))

describe('Every type', () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
  })
  afterAll(() => duckdb.close())

  /**
   * Returns why the statement does not run, or undefined. Trino's errors are valid answers: they have no cause in
   * DuckDB.
   */
  const failure = async (sql: () => string): Promise<string | undefined> => {
    try {
      await duckdb.rows(sql())
      return undefined
    } catch (error) {
      const found =
        error instanceof EngineError ? error : translateError(error instanceof Error ? error.message : String(error))
      return found.cause !== undefined ? `${sql()}: ${String(error)}` : undefined
    }
  }

  it.each(types)('$text can be encoded for the wire, compared, grouped and sorted', async ({ type }) => {
    const wire = toText(wireEncoding(x, type, { parametricDatetime: true }))
    const bare = toText(wireEncoding(x, type, { parametricDatetime: false }))
    const from = `FROM (SELECT ${sampleOf(type)} AS x, ${sampleOf(type)} AS y)`
    expect(await failure(() => `SELECT json_array(${wire}), json_array(${bare}) ${from}`)).toBeUndefined()
    if (isComparable(type)) {
      const parts = [
        renderComparison('=', type, x, y, names),
        renderComparison('<>', type, x, y, names),
        isDistinct(type, x, y, names),
        renderIn(type, x, [y, y], names),
      ]
      const [row] = await duckdb.rows(`SELECT ${list(parts)} ${from}`)
      expect(row).toEqual(type.kind === 'unknown' ? [null, null, false, null] : [true, false, false, true])
      const key = toText(comparisonKey(type, x, names))
      expect(await failure(() => `SELECT ${key}, count(*) ${from} GROUP BY 1`)).toBeUndefined()
    }
    if (isOrderable(type)) {
      const items = list(sortItems(type, x, false, true, names))
      expect(await failure(() => `SELECT 1 ${from} ORDER BY ${items}`)).toBeUndefined()
      expect(await failure(() => `SELECT ${toText(renderComparison('<', type, x, y, names))} ${from}`)).toBeUndefined()
    }
  })

  it.each(types)('$text can be cast to each type that Trino allows', async ({ type: from }) => {
    const failures: string[] = []
    for (const { text, type: to } of types.filter((each) => canCast(from, each.type))) {
      const wanted = duckdbTypeText(to)
      const source = `FROM (SELECT ${sampleOf(from)} AS x)`
      const why = await failure(() => `SELECT ${toText(renderCast(x, from, to, context))} ${source}`)
      if (why !== undefined) failures.push(`${text}: ${why}`)
      try {
        const cast = (value: Sql): string => toText(renderTryCast(value, from, to, context))
        const sql = `SELECT typeof(${cast(x)}), typeof(${cast(typedNull(from))}) ${source}`
        const [row] = (await duckdb.rows(sql)) as [string[]]
        const plain = (written: string): string => written.replaceAll('"', '').replaceAll(/\s+/g, ' ').toUpperCase()
        if (row.some((given) => plain(given) !== plain(wanted)))
          failures.push(`${text}: ${row.join(' and ')}, not ${wanted}`)
      } catch (error) {
        if (!(error instanceof EngineError)) failures.push(`TRY ${text}: ${String(error)}`)
      }
    }
    expect(failures).toEqual([])
  })
})
