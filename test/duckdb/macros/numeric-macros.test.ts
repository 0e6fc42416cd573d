import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

const integers = { tinyint: 8, smallint: 16, integer: 32, bigint: 64 } as const
const kinds = Object.entries(integers)

/** Compares the arithmetic of the macros in the engine with the same arithmetic on BigInt. */
describe('The integer macros', () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
  })
  afterAll(() => duckdb.close())

  const among = (bits: number): fc.Arbitrary<bigint> =>
    fc.bigInt({ min: -(2n ** BigInt(bits - 1)), max: 2n ** BigInt(bits - 1) - 1n })

  /** Returns the results of a macro call for pairs, one row per pair. */
  async function answers(kind: string, call: string, pairs: readonly (readonly [bigint, bigint])[]): Promise<bigint[]> {
    // A literal of the smallest number would be the negation of a number that is out of range.
    const values = pairs.map(([a, b], i) => `(${i}, CAST('${a}' AS ${kind}), CAST('${b}' AS ${kind}))`).join(', ')
    const rows = await duckdb.rows(`SELECT CAST(${call} AS VARCHAR) FROM (VALUES ${values}) t(i, a, b) ORDER BY i`)
    return rows.map(([value]) => BigInt(value as string))
  }

  it.each(kinds)('shift a %s within its width', async (kind, bits) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(among(bits), fc.bigInt({ min: 0n, max: 70n })), { minLength: 1, maxLength: 40 }),
        async (pairs) => {
          expect(await answers(kind, `q_shl_${kind}(a, b)`, pairs)).toEqual(
            pairs.map(([a, n]) => BigInt.asIntN(bits, a << n)),
          )
          expect(await answers(kind, `q_sar_${kind}(a, b)`, pairs)).toEqual(pairs.map(([a, n]) => a >> n))
        },
      ),
      { numRuns: 20 },
    )
  })

  it('divide and take the remainder towards zero', async () => {
    const divisors = among(64).filter((b) => b !== 0n && b !== -1n)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(among(64), divisors), { minLength: 1, maxLength: 40 }), async (pairs) => {
        expect(await answers('bigint', 'q_idiv(a, b)', pairs)).toEqual(pairs.map(([a, b]) => a / b))
        expect(await answers('bigint', 'q_imod(a, b)', pairs)).toEqual(pairs.map(([a, b]) => a % b))
      }),
      { numRuns: 20 },
    )
  })

  it.each(kinds)('refuse to negate the smallest %s, and negate the next one', async (kind, bits) => {
    const least = -(2n ** BigInt(bits - 1))
    await expect(answers(kind, `q_neg_${kind}(a)`, [[least, 0n]])).rejects.toThrow('NUMERIC_VALUE_OUT_OF_RANGE')
    expect(await answers(kind, `q_neg_${kind}(a)`, [[least + 1n, 0n]])).toEqual([-least - 1n])
  })

  it('refuse a division by zero', async () => {
    for (const call of ['q_idiv(a, b)', 'q_imod(a, b)'])
      await expect(answers('bigint', call, [[1n, 0n]])).rejects.toThrow('DIVISION_BY_ZERO')
  })
})
