import { expect, it } from 'vitest'
import { decimalOperator } from '../../../src/sql/functions/decimal-operators.ts'
import { literal, plainName, sql, toText, type Sql } from '../../../src/duckdb/text/sql.ts'
import { decimalType } from '../../../src/sql/types/duckdb-representation.ts'
import { decimal, type DecimalType } from '../../../src/sql/types/sql-type.ts'
import { openEngineConnection } from '../../support/duckdb-in-process.ts'
import { analyzeQuery } from '../../support/front-end.ts'
import { representatives } from '../../support/full-tests.ts'
import { wireRows } from '../../support/rendered-rows.ts'

// DuckDB gets the operands without a cast if its own result type is Trino's. Otherwise the operands are cast first.
// In both cases every digit must be right for all operands, and the type must be the declared one.

/** Precisions around the borders where DuckDB changes its storage of decimals: 4, 9, 18 and 38 digits. */
const PRECISIONS = [1, 4, 9, 10, 17, 18, 19, 37, 38]
const TYPES = PRECISIONS.flatMap((precision) =>
  [...new Set([0, 2, precision >> 1, precision])]
    .filter((scale) => scale <= precision)
    .map((scale) => decimal(precision, scale)),
)

const unscaledMost = ({ precision }: DecimalType): bigint => 10n ** BigInt(precision) - 1n
const column = ({ precision, scale }: DecimalType, unscaled: bigint): Sql =>
  sql`CAST(${literal(written(unscaled, scale))} AS ${decimalType(precision, scale)})`

function written(unscaled: bigint, scale: number): string {
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
  const split = digits.length - scale
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, split)}${scale > 0 ? `.${digits.slice(split)}` : ''}`
}

function digitsOf(operator: '+' | '-' | '*', a: DecimalType, b: DecimalType): number {
  if (operator === '*') return a.precision + b.precision
  return Math.max(a.precision - a.scale, b.precision - b.scale) + Math.max(a.scale, b.scale) + 1
}

it('Decimal sums, differences and products have all their digits and the declared type', async () => {
  const db = await openEngineConnection()
  try {
    for (const [index, a] of TYPES.entries())
      for (const b of representatives(TYPES, 3, index)) {
        const checks: Sql[] = []
        const expected: string[] = []
        for (const operator of ['+', '-', '*'] as const) {
          if (digitsOf(operator, a, b) > 38) continue
          const { result, render } = decimalOperator(operator, a, b)
          if (result.kind !== 'decimal' || !render) throw new Error('Not decimal arithmetic')
          const [up, down] = [10n ** BigInt(result.scale - a.scale), 10n ** BigInt(result.scale - b.scale)]
          for (const x of [unscaledMost(a), -unscaledMost(a), 1n])
            for (const y of [unscaledMost(b), -unscaledMost(b)]) {
              const exact = operator === '*' ? x * y : operator === '+' ? x * up + y * down : x * up - y * down
              const value = render(plainName('l'), plainName('r'), undefined as never)
              checks.push(
                sql`(SELECT concat(CAST(${value} AS VARCHAR), ' ', typeof(${value})) FROM (SELECT ${column(a, x)} AS l, ${column(b, y)} AS r))`,
              )
              // DuckDB omits the 0 before the point if the type has no digit for it.
              const text = written(exact, result.scale)
              const shown = result.precision === result.scale ? text.replace('0.', '.') : text
              expected.push(`${shown} DECIMAL(${result.precision},${result.scale})`)
            }
        }
        if (checks.length === 0) continue
        const reader = await db.connection.runAndReadAll(`SELECT ${checks.map(toText).join(', ')}`)
        expect(reader.getRowsJson()[0], `${toText(decimalType(a.precision, a.scale))} and b`).toEqual(expected)
      }
  } finally {
    db.close()
  }
})

/** The average, rounded half away from zero. */
function averageOf(values: readonly bigint[]): bigint {
  const sum = values.reduce((a, b) => a + b, 0n)
  const count = BigInt(values.length)
  const half = (sum < 0n ? -count : count) / 2n
  return (sum + half) / count
}

it('avg of decimals is rounded half up, in groups, in windows and for no values', async () => {
  const db = await openEngineConnection()
  try {
    for (const type of representatives(TYPES, 2)) {
      const most = type.precision < 37 ? unscaledMost(type) : unscaledMost(type) / 100n
      const groups = [
        [1n, 2n],
        [-1n, -2n],
        [most, most, 1n],
        [-most, -most, most, -1n],
        [0n, 1n, 0n, 0n],
        [-7n % (most + 1n)],
        [1n, 1n, 0n],
      ]
      const typed = (value: bigint): string =>
        `CAST('${written(value, type.scale)}' AS decimal(${type.precision}, ${type.scale}))`
      const rows = groups.flatMap((group, g) => group.map((value) => `(${g}, ${typed(value)})`)).join(', ')
      const table = `(VALUES ${rows}, (${groups.length}, NULL)) t(g, x)`
      const expected = [...groups.map((group, g) => [g, written(averageOf(group), type.scale)]), [groups.length, null]]
      for (const sql of [
        `SELECT g, avg(x) FROM ${table} GROUP BY g ORDER BY g`,
        `SELECT DISTINCT g, avg(x) OVER (PARTITION BY g) FROM ${table} ORDER BY g`,
      ]) {
        const { query } = await analyzeQuery(sql)
        const given = await wireRows(db.connection, query, () => '')
        expect(given, sql).toEqual(expected)
      }
      const { query } = await analyzeQuery(`SELECT avg(x) FILTER (WHERE g < 0) FROM ${table}`)
      expect(await wireRows(db.connection, query, () => '')).toEqual([[null]])
    }
  } finally {
    db.close()
  }
})

it('sum of decimal products is exact, although some rows are multiplied within 64 bits', async () => {
  const db = await openEngineConnection()
  const price = (cents: bigint): string => `CAST('${written(cents, 2)}' AS decimal(15, 2))`
  const [small, large] = [
    [1999n, 9999n],
    [10n ** 15n - 1n, -(2n ** 31n)],
  ] as const
  const groups: readonly (readonly (readonly [bigint, bigint] | undefined)[])[] = [
    [small, small, undefined],
    [large, large, undefined],
    [small, large, undefined, small],
    [undefined],
    [[-(10n ** 9n), 2n ** 31n - 1n], small],
  ]
  const rows = groups.flatMap((group, g) =>
    group.map((row) => (row ? `(${g}, ${price(row[0])}, ${row[1]})` : `(${g}, NULL, 7)`)),
  )
  const expected = groups.map((group, g) => {
    const products = group.flatMap((row) => (row ? [row[0] * row[1]] : []))
    return [
      g,
      products.length === 0
        ? null
        : written(
            products.reduce((a, b) => a + b, 0n),
            2,
          ),
    ]
  })
  try {
    const { query } = await analyzeQuery(
      `SELECT g, sum(p * n) FROM (VALUES ${rows.join(', ')}) t(g, p, n) GROUP BY g ORDER BY g`,
    )
    expect(await wireRows(db.connection, query, () => '')).toEqual(expected)
    // A whole number of a column takes its half of the 64 bits: more than a calculated factor, as 1 - discount, is expected to.
    expect(query.sql).toContain('BETWEEN -999999999 AND 999999999')
  } finally {
    db.close()
  }
})
