import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { processMemoryLimit } from '../../../src/execution/engine/sandbox.ts'
import { openTestPool, type TestPool } from '../../support/engines.ts'

const MB = 2 ** 20

/** Makes the statement `column_doubling`: each CTE selects all columns of the previous one twice. */
function columnDoubling(levels: number): string {
  const ctes = Array.from({ length: levels }, (_, level) => `t${level + 1} AS (SELECT *, * FROM t${level})`)
  return `WITH t0 AS (SELECT 1 AS a), ${ctes.join(', ')} SELECT count(*) FROM t${levels}`
}

function joinStar(tables: number): string {
  const joins = Array.from({ length: tables }, (_, n) => `JOIN range(5) t${n + 1}(i) ON t${n + 1}.i = t0.i`)
  return `SELECT count(*) FROM range(5) t0(i) ${joins.join(' ')}`
}

const orOfAnds = Array.from({ length: 2000 }, (_, i) => `(a = ${i} AND b <> ${i})`).join(' OR ')

/** Statements that take gigabytes or minutes, mostly while DuckDB plans them (`memory_limit` does not help). */
const statements: Record<string, string> = {
  like_backtrack: `SELECT repeat('a',60) ILIKE '%a%a%a%a%a%a%a%b'`,
  levenshtein_60k: `SELECT levenshtein(repeat('a',60000), repeat('b',60000))`,
  repeat_nested: `SELECT length(repeat(repeat('x',60000),60000))`,
  range_fold: `SELECT len(range(400000000))`,
  runtime_big_values: `SELECT max(length(repeat(repeat('x',1000+i::INT%3),1000000))) FROM range(1000) r(i)`,
  or_of_ands_2000: `SELECT count(*) FROM (SELECT i AS a, i + 1 AS b FROM range(10) r(i)) WHERE ${orOfAnds}`,
  join_star_200: joinStar(200),
  deep_calls_900: `SELECT ${'abs('.repeat(900)}1${')'.repeat(900)}`,
  column_doubling_22: columnDoubling(22),
  series_list: `SELECT len(generate_series(TIMESTAMP '1000-01-01', TIMESTAMP '9999-01-01', INTERVAL 1 SECOND))`,
}

let engines: TestPool
let peakBytes = 0
let sampler: NodeJS.Timeout

beforeAll(async () => {
  engines = await openTestPool({
    spareAfterMs: 0,
    // A short deadline keeps the tests with long planning short.
    prepareDeadlineMs: 1_500,
    translateError: (text) => new EngineError('GENERIC_USER_ERROR', text),
  })
  sampler = setInterval(() => {
    for (const { pid } of engines.pool.children()) {
      try {
        const pages = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]
        peakBytes = Math.max(peakBytes, Number(pages) * 4096)
      } catch {
        // The process ended between the two lines.
      }
    }
  }, 20)
})
afterAll(async () => {
  clearInterval(sampler)
  await engines[Symbol.asyncDispose]()
})

/** Runs a statement with a known answer that takes about a second. */
const neighbour = (): Promise<unknown[]> =>
  engines.rows(`SELECT json_array(count(*))::VARCHAR FROM range(100000000) r(i) WHERE i % 3 = 0`)

/** One statement of each kind is enough where the whole engine is lost with it. */
const ofEachKind = ['like_backtrack', 'repeat_nested', 'runtime_big_values', 'join_star_200']

describe.each([
  ['in an engine of its own', { risky: true, placement: 'shared' }],
  ['beside small statements', { risky: false, placement: 'shared' }],
] as const)('A hostile statement %s', (_name, statement) => {
  const chosen = Object.entries(statements).filter(([name]) => statement.risky || ofEachKind.includes(name))
  it.each(chosen)('fails with a clear error, and other statements succeed: %s', async (_title, sql) => {
    const beside = statement.risky ? undefined : neighbour()
    const hostile = engines.run(sql, statement).done.then(
      () => undefined,
      (error: unknown) => error,
    )
    // The engine answers this statement while the hostile one runs.
    expect(await engines.rows(`SELECT '[1]'`)).toEqual([[1]])
    const error = await hostile
    expect(error).toBeInstanceOf(EngineError)
    expect(['EXCEEDED_LOCAL_MEMORY_LIMIT', 'EXCEEDED_TIME_LIMIT', 'GENERIC_USER_ERROR']).toContain(
      (error as EngineError).errorName,
    )
    if (beside) expect(await beside).toEqual([[33_333_334]])
    expect(await engines.rows(`SELECT '[1]'`, statement)).toEqual([[1]])
    expect(peakBytes).toBeLessThan(processMemoryLimit(500 * MB) + 100 * MB)
  })
})
