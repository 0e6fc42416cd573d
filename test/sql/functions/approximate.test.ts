import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { distinctEstimate, shareOfPlace } from '../../../src/sql/functions/javascript/distinct-estimate.ts'
import { statisticsScripts } from '../../../src/sql/functions/javascript/statistics.ts'
import { overloadsOf } from '../../../src/sql/functions/function-table.ts'
import { resolveDefinition } from '../../../src/sql/functions/resolve-function.ts'
import { codeOfModule, plainName, toText } from '../../../src/sql/text/sql.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { openEngineConnection, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

let db: Pick<InProcessDuckDB, 'connection' | 'close'>
beforeAll(async () => {
  db = await openEngineConnection()
})
afterAll(() => db.close())

/** An aggregate as it is rendered over expressions of DuckDB. */
function rendered(name: string, args: readonly (readonly [sql: string, type: string])[]): string {
  const asked = args.map(([, type]) => ({ kind: 'value', type: parseTypeText(type) }) as const)
  const definition = overloadsOf(name).find((each) => resolveDefinition(each, asked) !== undefined)!
  let next = 0
  return toText(
    resolveDefinition(definition, asked)!.render({
      args: args.map(([sql]) => ({ kind: 'value', sql: codeOfModule(sql) })),
      session: { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody', groups: [] },
      names: { fresh: () => plainName(`n${next++}`) },
    }),
  )
}

const percentile = (args: readonly (readonly [sql: string, type: string])[]): string =>
  rendered('approx_percentile', args)

async function rows(sql: string): Promise<unknown[][]> {
  return (await db.connection.runAndReadAll(sql)).getRowsJson() as unknown[][]
}

const share = fc.oneof(fc.constantFrom(0, 0.5, 1), fc.double({ min: 0, max: 1, noNaN: true }))

describe('approx_percentile', () => {
  it('is exact on few values, with weights too', async () => {
    const values = fc.array(fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 1, max: 5 })), {
      minLength: 1,
      maxLength: 60,
    })
    await fc.assert(
      fc.asyncProperty(values, share, async (some, p) => {
        const plain = some.map(([x]) => x).toSorted((a, b) => a - b)
        const weighed = some.flatMap(([x, w]) => Array.from({ length: w }, () => x)).toSorted((a, b) => a - b)
        const at = (sorted: readonly number[]): string =>
          String(sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))])
        const shares = `[CAST('${p}' AS DOUBLE)]`
        const from = `(VALUES ${some.map(([x, w]) => `(CAST(${x} AS BIGINT), ${w}, CAST('${p}' AS DOUBLE))`).join(', ')}) t(x, w, p)`
        const found = await rows(
          `SELECT ${percentile([
            ['x', 'bigint'],
            ['p', 'double'],
          ])}, ${percentile([
            ['x', 'bigint'],
            ['CAST(w AS DOUBLE)', 'double'],
            ['p', 'double'],
          ])}, ${percentile([
            ['x', 'bigint'],
            [shares, 'array(double)'],
          ])}, ${percentile([
            ['x', 'bigint'],
            ['CAST(w AS DOUBLE)', 'double'],
            [shares, 'array(double)'],
          ])} FROM ${from}`,
        )
        expect(found).toEqual([[at(plain), at(weighed), [at(plain)], [at(weighed)]]])
      }),
      { numRuns: 40 },
    )
  })

  it.each([
    ['in order', 'CAST(i AS DOUBLE)'],
    ['of many alike', 'CAST(i // 50000 AS DOUBLE)'],
    ['mixed', 'CAST(hash(i) % 300000 AS DOUBLE)'],
  ])('is at most six standard deviations off on many values %s', async (_, value) => {
    const shares = [0.001, 0.1, 0.5, 0.9, 0.999]
    const list = `[${shares.join(', ')}]`
    const [[plain, weighed]] = (await rows(
      `SELECT ${percentile([
        ['x', 'double'],
        [list, 'array(double)'],
      ])}, ${percentile([
        ['x', 'double'],
        ['w', 'double'],
        [list, 'array(double)'],
      ])} FROM (SELECT ${value} AS x, CAST(1 + i % 3 AS DOUBLE) AS w FROM range(300000) r(i))`,
    )) as [[string[], string[]]]
    const ranks = async (found: string, weight: string): Promise<[number, number]> => {
      const from = `(SELECT ${value} AS x, CAST(1 + i % 3 AS DOUBLE) AS w FROM range(300000) r(i))`
      const [[below, upTo]] = (await rows(
        `SELECT sum(CASE WHEN x < ${found} THEN ${weight} ELSE 0 END) / sum(${weight}), sum(CASE WHEN x <= ${found} THEN ${weight} ELSE 0 END) / sum(${weight}) FROM ${from}`,
      )) as [[number, number]]
      return [below, upTo]
    }
    for (const [i, p] of shares.entries()) {
      // Weights that differ by so little cost a tenth of the precision.
      const error = 6 * 1.1 * Math.sqrt((p * (1 - p)) / 10_000)
      for (const [found, weight] of [
        [plain[i]!, '1.0'],
        [weighed[i]!, 'w'],
      ] as const) {
        const [below, upTo] = await ranks(`CAST('${found}' AS DOUBLE)`, weight)
        expect(below, `${p} of ${value} by ${weight}`).toBeLessThan(p + error)
        expect(upTo, `${p} of ${value} by ${weight}`).toBeGreaterThan(p - error)
      }
    }
  })

  it('counts a value that outweighs all others', async () => {
    const heavy = percentile([
      ['x', 'bigint'],
      ['w', 'double'],
      ['p', 'double'],
    ])
    const sql = `SELECT p, ${heavy} FROM (SELECT CASE WHEN i = 77 THEN 1 ELSE 2 END AS x, CASE WHEN i = 77 THEN 1e6 ELSE 1.0 END AS w, p FROM range(100000) r(i), (VALUES (0.85), (0.95)) v(p)) GROUP BY p ORDER BY p`
    expect((await rows(sql)).map(([, value]) => value)).toEqual([1, 2])
  })
})

describe('approx_distinct', () => {
  it.each([
    ['bigint', 'i'],
    ['double', 'i / 8'],
    ['varchar', `'customer ' || i`],
    ['decimal(38,3)', 'CAST(i AS DECIMAL(38,3))'],
    ['date', `DATE '1970-01-01' + CAST(i AS INTEGER)`],
    ['array(bigint)', '[i, -i]'],
    ['timestamp(3) with time zone', `{'t': make_timestamp(i), 'z': 'Europe/Berlin'}`],
  ])('counts %s, however often each comes', async (type, value) => {
    for (const count of [0, 1, 10, 20_000]) {
      const repeated = `(SELECT ${value} AS x FROM range(${count}) r(i), range(2)) t`
      const [[found]] = (await rows(`SELECT ${rendered('approx_distinct', [['x', type]])} FROM ${repeated}`)) as [
        [string],
      ]
      expect(Math.abs(Number(found) - count), `${count}`).toBeLessThanOrEqual(count * 0.02)
    }
  })

  it('counts no NULL, and each group for itself', async () => {
    const found = await rows(
      `SELECT g, ${rendered('approx_distinct', [['x', 'bigint']])} FROM (SELECT i % 2 AS g, CASE WHEN i % 2 = 0 THEN i % 14 END AS x FROM range(1000) r(i)) GROUP BY g ORDER BY g`,
    )
    expect(found).toEqual([
      ['0', '7'],
      ['1', '0'],
    ])
  })

  it.each([
    [13, 0.007],
    [16, 0.003],
  ])(
    'is at most six standard deviations off on as many values as there may be, by 2 to the %i places',
    (places, error) => {
      for (const count of [1e5, 1e7, 1e10]) {
        // Which of the places are taken, without the values that take them.
        const levels = Array.from({ length: 40 }, (_, level) => level)
        const taken = levels.map((level) => {
          const all = Math.round(2 ** -Math.min(level + 1, 39) / shareOfPlace(level, places))
          const free = Math.exp(-count * shareOfPlace(level, places))
          return Array.from({ length: all }).reduce<number>((sum) => sum + (Math.random() < free ? 0 : 1), 0)
        })
        const found = distinctEstimate(levels, taken, places)
        expect(Math.abs(found / count - 1), `${count}`).toBeLessThan(6 * error)
      }
    },
  )

  it('holds no more than half a million codes, whatever the number of values', () => {
    const places = Array.from({ length: 31 }, (_, level) => 2 ** -(level + 1) / shareOfPlace(level, 13))
    expect(places.reduce((sum, each) => sum + each)).toBeLessThan(600_000)
  })
})

describe('numeric_histogram', () => {
  const { call } = statisticsScripts.find(({ name }) => name === 'u_numeric_histogram')!
  const histogram = call as unknown as (buckets: bigint, values: readonly number[]) => number[]

  it('joins the closest buckets first', () => {
    const joined = (limit: number, values: readonly number[]): number[] => {
      const bins: [number, number][] = []
      for (const value of values.toSorted((a, b) => a - b)) {
        if (bins.at(-1)?.[0] === value) bins.at(-1)![1]++
        else bins.push([value, 1])
      }
      while (bins.length > limit) {
        let at = 0
        for (let i = 1; i + 1 < bins.length; i++) {
          if (bins[i + 1]![0] - bins[i]![0] < bins[at + 1]![0] - bins[at]![0]) at = i
        }
        const [[x, n], [y, m]] = [bins[at]!, bins[at + 1]!]
        bins.splice(at, 2, [(x * n + y * m) / (n + m), n + m])
      }
      return bins.flat()
    }
    const value = fc.oneof(fc.integer({ min: -20, max: 20 }), fc.double({ min: -1e6, max: 1e6, noNaN: true }))
    fc.assert(
      fc.property(fc.array(value, { maxLength: 80 }), fc.integer({ min: 2, max: 12 }), (values, limit) => {
        expect(histogram(BigInt(limit), values)).toEqual(joined(limit, values))
      }),
      { numRuns: 500 },
    )
  })
})
