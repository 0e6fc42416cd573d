import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { distinctEstimate, highestEstimate, shareOfCode } from '../../../src/duckdb/scripts/distinct-estimate.ts'
import { statisticsScripts } from '../../../src/duckdb/scripts/statistics.ts'
import { overloadsOf } from '../../../src/sql/functions/function-table.ts'
import { resolveDefinition } from '../../../src/sql/functions/resolve-function.ts'
import { codeOfModule, plainName, toText } from '../../../src/duckdb/text/sql.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { openEngineConnection, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

let db: Pick<InProcessDuckDB, 'connection' | 'close'>
beforeAll(async () => {
  db = await openEngineConnection()
})
afterAll(() => db.close())

/** Renders an aggregate over expressions of DuckDB. */
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
  it('is exact for few values, also with weights', async () => {
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
    ['all different, in order', 'CAST(i AS DOUBLE)'],
    ['with many duplicates', 'CAST(i // 50000 AS DOUBLE)'],
    ['in random order', 'CAST(hash(i) % 300000 AS DOUBLE)'],
  ])('has an error of at most six standard deviations for many values %s', async (_, value) => {
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
      // The small difference of these weights costs a tenth of the precision.
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

  it('counts the weight of a value that outweighs all others', async () => {
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
  ])('counts each value of type %s once, within two percent', async (type, value) => {
    for (const count of [0, 1, 10, 20_000]) {
      const repeated = `(SELECT ${value} AS x FROM range(${count}) r(i), range(2)) t`
      const [[found]] = (await rows(`SELECT ${rendered('approx_distinct', [['x', type]])} FROM ${repeated}`)) as [
        [string],
      ]
      expect(Math.abs(Number(found) - count), `${count}`).toBeLessThanOrEqual(count * 0.02)
    }
  })

  it('counts no NULLs, and counts each group separately', async () => {
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
    'has an error of at most six standard deviations for 100,000 to 10,000,000,000 values with 2^%i places',
    (bits, error) => {
      for (const count of [1e5, 1e7, 1e10]) {
        // Draws which places are taken, without the values.
        const levels = Array.from({ length: 40 }, (_, level) => level)
        const taken = levels.map((level) => {
          const all = Math.round(2 ** -Math.min(level + 1, 39) / shareOfCode(level, bits))
          const free = Math.exp(-count * shareOfCode(level, bits))
          return Array.from({ length: all }).reduce<number>((sum) => sum + (Math.random() < free ? 0 : 1), 0)
        })
        const found = distinctEstimate(levels, taken, bits)
        expect(Math.abs(found / count - 1), `${count}`).toBeLessThan(6 * error)
      }
    },
  )

  it('needs fewer than 600,000 codes for any number of values', () => {
    const codes = Array.from({ length: 31 }, (_, level) => 2 ** -(level + 1) / shareOfCode(level, 13))
    expect(codes.reduce((sum, each) => sum + each)).toBeLessThan(600_000)
  })
})

describe('Sketches of distinct values', () => {
  const set = rendered('approx_set', [['x', 'bigint']])
  const fine = rendered('approx_set', [
    ['x', 'bigint'],
    ['0.0040625', 'double'],
  ])
  const count = (sketch: string): string => rendered('cardinality', [[sketch, 'HyperLogLog']])
  const merged = rendered('merge', [['s', 'HyperLogLog']])

  it('count few values exactly, and never exceed their number of registers', async () => {
    for (const [sql, most, error] of [
      [set, 4096, 1.04 / 64],
      [fine, 65_536, 1.04 / 256],
    ] as const) {
      for (const values of [0, 1, 30, 3000, 100_000]) {
        const [[found, size]] = (await rows(
          `SELECT ${count('s')}, len(s.c) FROM (SELECT ${sql} AS s FROM (SELECT i AS x FROM range(${values}) r(i), range(2)))`,
        )) as [[string | null, string | null]]
        const off = Math.abs(Number(found ?? 0) - values)
        expect(off, `${values}`).toBeLessThanOrEqual(values <= 30 ? 0 : values * 6 * error)
        expect(Number(size ?? 0)).toBeLessThanOrEqual(most)
      }
    }
  })

  it('give the same count after a merge as one sketch of all values', async () => {
    for (const values of [20, 900, 40_000]) {
      const from = `(SELECT i AS x, CASE WHEN i % 7 = 0 THEN i % 3 ELSE 3 END AS g FROM range(${values}) r(i))`
      const found = await rows(
        `SELECT (SELECT ${count(set)} FROM ${from}), (SELECT ${count(merged)} FROM (SELECT ${set} AS s FROM ${from} GROUP BY g)),
          (SELECT ${count(merged)} FROM (SELECT ${set} AS s FROM ${from} WHERE g = 0 UNION ALL SELECT ${fine} FROM ${from} WHERE g > 0))`,
      )
      expect(new Set(found[0]).size, String(found)).toBe(1)
    }
  })

  it('are still read in the older stored form', async () => {
    const before = `CAST(to_json(histogram(hash(i))) AS VARCHAR)`
    expect(await rows(`SELECT ${count(`q_sketch_read(${before})`)} FROM range(40) r(i)`)).toEqual([['40']])
  })

  it.each([12, 16])('have an error of at most six standard deviations with 2^%i registers', (bits) => {
    const registers = 2 ** bits
    for (const values of [registers / 8, registers * 4, 1e12]) {
      const levels = new Map<number, number>()
      for (let i = 0; i < registers; i++) {
        // Draws the highest level of a register. Half of the values that reach a level also reach the next one.
        const highest = Math.floor(-Math.log2(-Math.log(Math.random()) / (values / registers)))
        if (highest >= 0) levels.set(Math.min(highest, 39), (levels.get(Math.min(highest, 39)) ?? 0) + 1)
      }
      const found = highestEstimate([...levels.keys()], [...levels.values()], bits)
      // The number of values of each register is drawn, so their sum varies too. For few values this varies more than
      // the sketch.
      const deviation = Math.sqrt(1.06 ** 2 / registers + 1 / values)
      expect(Math.abs(found / values - 1), `${values}`).toBeLessThan(6 * deviation)
    }
  })

  it('estimate the intersection of two sets if they have type SetDigest', async () => {
    const digest = rendered('make_set_digest', [['x', 'bigint']])
    const asked = (name: string): string =>
      rendered(name, [
        ['a', 'SetDigest'],
        ['b', 'SetDigest'],
      ])
    for (const [values, error] of [
      [40, 0],
      [20_000, 0.02],
    ] as const) {
      const from = (first: number): string =>
        `(SELECT ${digest} FROM (SELECT i + ${first} AS x FROM range(${values}) r(i), range(2)))`
      const [[common, share]] = (await rows(
        `SELECT ${asked('intersection_cardinality')}, ${asked('jaccard_index')} FROM (SELECT ${from(0)} AS a, ${from(values / 2)} AS b)`,
      )) as [[string, number]]
      expect(Math.abs(Number(common) - values / 2)).toBeLessThanOrEqual(values * error)
      expect(Math.abs(share - 1 / 3)).toBeLessThanOrEqual(error + 1e-9)
    }
  })
})

describe('Quantile digests', () => {
  const plain = rendered('tdigest_agg', [['x', 'double']])
  const weighed = rendered('qdigest_agg', [
    ['x', 'double'],
    ['w', 'bigint'],
  ])
  const fine = rendered('qdigest_agg', [
    ['x', 'double'],
    ['w', 'bigint'],
    ['0.002', 'double'],
  ])
  const at = (type: string): string =>
    rendered('value_at_quantile', [
      ['s', type],
      ['p', 'double'],
    ])
  const shares = '(VALUES (0.0), (0.01), (0.5), (0.9), (1.0)) v(p)'

  it('keep few values exactly', async () => {
    const from = `(SELECT CAST(i % 1000 AS DOUBLE) AS x, 1 + i % 2 AS w FROM range(9000) r(i))`
    for (const [sql, type] of [
      [plain, 'tdigest'],
      [weighed, 'qdigest(double)'],
      [fine, 'qdigest(double)'],
    ] as const) {
      const found = await rows(`SELECT ${at(type)} FROM (SELECT ${sql} AS s FROM ${from}), ${shares} ORDER BY p`)
      expect(found).toEqual([[0], [10], [500], [900], [999]])
    }
  })

  it.each([
    ['without weights', plain, 'tdigest', 0.015],
    ['with weights', weighed, 'qdigest(double)', 0.017],
    ['with weights and a higher accuracy', fine, 'qdigest(double)', 0.004],
  ])('estimate quantiles of many values %s', async (_, sql, type, error) => {
    const from = `(SELECT CAST(hash(i) % 200000 AS DOUBLE) AS x, 1 + i % 3 AS w, i FROM range(200000) r(i))`
    const merged = rendered('merge', [['s', type]])
    const sketches = `SELECT ${sql} AS s FROM ${from} UNION ALL SELECT ${merged} FROM (SELECT ${sql} AS s FROM ${from} GROUP BY i % 5)`
    const found = (await rows(
      `SELECT p, ${at(type)} / 200000, len(s), list_sum(list_transform(s, lambda e: e.w)) FROM (${sketches}), ${shares}`,
    )) as [number, number, string, number][]
    expect(found).toHaveLength(10)
    for (const [p, x, points, weight] of found) {
      expect(Math.abs(x - Number(p))).toBeLessThan(error)
      expect(Number(points)).toBeLessThanOrEqual(10_000)
      expect(weight / (sql === plain ? 200_000 : 400_000)).toBeCloseTo(1, 1)
    }
  })

  it('refuse invalid weights and accuracies', async () => {
    const refused = async (w: string, accuracy: string): Promise<string> => {
      const sql = rendered('qdigest_agg', [
        ['1.0', 'double'],
        [w, 'bigint'],
        [accuracy, 'double'],
      ])
      return rows(`SELECT ${sql}`).then(() => 'taken', String)
    }
    expect(await refused('0', '0.1')).toContain('Percentile weight must be > 0, was 0')
    expect(await refused('1', '1.0')).toContain('Percentile accuracy must be exclusively between 0 and 1, was 1.0')
    expect(await refused('1', '0.1')).toBe('taken')
  })
})

describe('numeric_histogram', () => {
  const { call } = statisticsScripts.find(({ name }) => name === 'u_numeric_histogram')!
  const histogram = call as unknown as (buckets: bigint, values: readonly number[]) => number[]

  it('merges the closest buckets first', () => {
    const joined = (limit: number, values: readonly number[]): number[] => {
      const bins: [number, number][] = []
      // -0 comes before 0, as in Java: the first value of a bin names it.
      for (const value of values.toSorted((a, b) => a - b || 1 / a - 1 / b)) {
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
