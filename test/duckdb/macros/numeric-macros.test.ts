import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

const integers = { tinyint: 8, smallint: 16, integer: 32, bigint: 64 } as const
const kinds = Object.entries(integers)

/** Arithmetic as the macros do it in the engine, beside the same done with whole numbers of any size. */
describe('arithmetic of the engine is that of whole numbers', { timeout: 120_000 }, () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
  })
  afterAll(() => duckdb.close())

  const among = (bits: number): fc.Arbitrary<bigint> =>
    fc.bigInt({ min: -(2n ** BigInt(bits - 1)), max: 2n ** BigInt(bits - 1) - 1n })

  /** What a macro makes of pairs, a row each. */
  async function answers(kind: string, call: string, pairs: readonly (readonly [bigint, bigint])[]): Promise<bigint[]> {
    // A literal of the least number would be a negation of one that is out of range.
    const values = pairs.map(([a, b], i) => `(${i}, CAST('${a}' AS ${kind}), CAST('${b}' AS ${kind}))`).join(', ')
    const rows = await duckdb.rows(`SELECT CAST(${call} AS VARCHAR) FROM (VALUES ${values}) t(i, a, b) ORDER BY i`)
    return rows.map(([value]) => BigInt(value as string))
  }

  it.each(kinds)('shifts of %s keep its width', async (kind, bits) => {
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

  it('division and remainder go towards zero', async () => {
    const divisors = among(64).filter((b) => b !== 0n && b !== -1n)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(among(64), divisors), { minLength: 1, maxLength: 40 }), async (pairs) => {
        expect(await answers('bigint', 'q_idiv(a, b)', pairs)).toEqual(pairs.map(([a, b]) => a / b))
        expect(await answers('bigint', 'q_imod(a, b)', pairs)).toEqual(pairs.map(([a, b]) => a % b))
      }),
      { numRuns: 20 },
    )
  })

  it.each(kinds)('the least %s has no opposite, every other has', async (kind, bits) => {
    const least = -(2n ** BigInt(bits - 1))
    await expect(answers(kind, `q_neg_${kind}(a)`, [[least, 0n]])).rejects.toThrow('NUMERIC_VALUE_OUT_OF_RANGE')
    expect(await answers(kind, `q_neg_${kind}(a)`, [[least + 1n, 0n]])).toEqual([-least - 1n])
  })

  it('nothing is divided by zero', async () => {
    for (const call of ['q_idiv(a, b)', 'q_imod(a, b)'])
      await expect(answers('bigint', call, [[1n, 0n]])).rejects.toThrow('DIVISION_BY_ZERO')
  })
})
