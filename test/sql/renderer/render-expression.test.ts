import type { DuckDBConnection } from '@duckdb/node-api'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Expr, RelationNode } from '../../../src/sql/analyzer/tree.ts'
import { sidesOf } from '../../../src/sql/renderer/guards.ts'
import { renderConjuncts, renderExpr } from '../../../src/sql/renderer/render-expression.ts'
import { renderQuery } from '../../../src/sql/renderer/render-relation.ts'
import { newRenderState, type RenderState } from '../../../src/sql/renderer/render-state.ts'
import { toText } from '../../../src/duckdb/text/sql.ts'
import { BIGINT, BOOLEAN, DOUBLE } from '../../../src/sql/types/sql-type.ts'
import {
  between,
  column,
  compared,
  comparison,
  condition,
  constant,
  divided,
  inList,
  logical,
  not,
  Raised,
  type Case,
  type Meaning,
} from '../../support/drawn-conditions.ts'
import { openEngineConnection } from '../../support/duckdb-in-process.ts'

let connection: DuckDBConnection
let close: () => void
beforeAll(async () => {
  ;({ connection, close } = await openEngineConnection())
  const values = '(VALUES (NULL), (0), (1), (2))'
  await connection.run(
    `CREATE TABLE whole AS SELECT row_number() OVER () - 1 AS id, x0, x1, x2 FROM ${values} a(x0), ${values} b(x1), ${values} c(x2)`,
  )
  const doubles = `(VALUES (NULL), ('NaN'::DOUBLE), ('Infinity'), ('-Infinity'), ('-0'), (0), (1.5))`
  await connection.run(
    `CREATE TABLE floats AS SELECT row_number() OVER () - 1 AS id, x0, x1, CAST(NULL AS BIGINT) AS x2 FROM ${doubles} a(x0), ${doubles} b(x1)`,
  )
})
afterAll(() => close())

const newState = (): RenderState =>
  newRenderState({ session: { timeZone: 'UTC', startTimeMillis: 0, user: 'ana', groups: [] }, needed: new Set([0, 1, 2]), renderQuery }) // prettier-ignore

interface Row {
  readonly id: number
  readonly values: readonly unknown[]
}

async function rowsOf(table: string): Promise<readonly Row[]> {
  const reader = await connection.runAndReadAll(`SELECT CAST(id AS INTEGER), x0, x1, x2 FROM ${table} ORDER BY id`)
  return reader.getRows().map(([id, ...values]) => ({
    id: id as number,
    values: values.map((value) => (typeof value === 'bigint' ? Number(value) : value)),
  }))
}

/** Returns the expected value for each row on which nothing fails. */
function meant(rows: readonly Row[], of: Meaning): ReadonlyMap<number, unknown> {
  return new Map(
    rows.flatMap(({ id, values }) => {
      try {
        return [[id, of(values)] as const]
      } catch (error) {
        if (error instanceof Raised) return []
        throw error
      }
    }),
  )
}

async function select(what: string, table: string, ids: Iterable<number>, where = ''): Promise<readonly unknown[][]> {
  const list = [...ids].join(', ')
  if (list === '') return []
  const given = `WITH given AS MATERIALIZED (SELECT * FROM ${table} WHERE id IN (${list}))`
  return (await connection.runAndReadAll(`${given} SELECT CAST(id AS INTEGER)${what} FROM given${where} ORDER BY id`)).getRows() // prettier-ignore
}

const item: RelationNode = { kind: 'values', columns: [0, 1, 2].map((id) => ({ id, type: BIGINT })), rows: [] }

/** Checks an expression as a value, and as a condition of WHERE. */
async function holds({ expr, of }: Case, table: string, rows: readonly Row[]): Promise<void> {
  const expected = meant(rows, of)
  const value = toText(renderExpr(newState(), expr))
  expect(await select(`, ${value}`, table, expected.keys())).toEqual([...expected])
  const conjuncts = renderConjuncts(newState(), [expr], sidesOf(item)).map(toText)
  const kept = await select('', table, expected.keys(), ` WHERE ${conjuncts.join(' AND ')}`)
  expect(kept.flat()).toEqual([...expected].filter(([, one]) => one === true).map(([id]) => id))
}

describe('A rendered condition', () => {
  it('has the value of the SQL standard, and does not fail where an earlier term decides', async () => {
    const rows = await rowsOf('whole')
    await fc.assert(
      fc.asyncProperty(condition, (one) => holds(one, 'whole', rows)),
      { numRuns: 150 },
    )
  })

  it('compares doubles as numbers, so that NaN is neither less, equal nor greater', async () => {
    const rows = await rowsOf('floats')
    const number = fc.constantFrom(Number.NaN, Infinity, -Infinity, -0, 0, 1.5, null)
    const double = fc.oneof(
      fc.constantFrom(0, 1).map((id) => column(id, DOUBLE)),
      number.map((value) => constant(DOUBLE, value)),
    )
    const ofDoubles = fc.oneof(
      compared(double),
      fc.tuple(double, double, double).map(([x, min, max]) => between(x, min, max)),
      fc.tuple(double, fc.array(double, { minLength: 1, maxLength: 3 })).map(([x, list]) => inList(x, list)),
    )
    const nested = fc.oneof(
      ofDoubles,
      fc
        .tuple(fc.constantFrom('and' as const, 'or' as const), fc.array(ofDoubles, { minLength: 2, maxLength: 3 }))
        .map(([kind, terms]) => logical(kind, terms)),
    )
    await fc.assert(
      fc.asyncProperty(nested, (one) => holds(one, 'floats', rows)),
      { numRuns: 300 },
    )
  })

  it('does not fail where an earlier term decides, also if it is too long to be repeated', async () => {
    const rows = await rowsOf('whole')
    const x = (id: number): Case => column(id, BIGINT)
    const many = Array.from({ length: 200 }, (_, i) => constant(BIGINT, 1000 + i))
    const zero = inList(x(0), [constant(BIGINT, 0), ...many])
    const fails = comparison('>', divided(0), x(1))
    const other = comparison('=', x(1), x(2))
    for (const [one, two] of [
      ['or', zero],
      ['and', not(zero)],
    ] as const) {
      const value = toText(renderExpr(newState(), logical(one, [other, two, fails]).expr))
      const { of } = logical(one, [other, two, fails])
      const expected = meant(rows, of)
      expect(await select(`, ${value}`, 'whole', expected.keys())).toEqual([...expected])
    }
  })

  it('contains only its constant term if this term decides', () => {
    const fails: Expr = { kind: 'engineCall', type: BOOLEAN, name: 'u_raise', arguments: [] }
    const yes: Expr = { kind: 'constant', type: BOOLEAN, value: true }
    const text = (kind: 'and' | 'or', terms: readonly Expr[]) =>
      toText(renderExpr(newState(), { kind, type: BOOLEAN, terms }))
    expect(text('or', [fails, yes])).toBe('true')
    expect(text('and', [fails, { ...yes, value: false }])).toBe('false')
    expect(text('and', [yes, fails])).toContain('u_raise')
  })
})

describe('A rendered expression', () => {
  const not = (times: number): Expr =>
    Array.from({ length: times }).reduce<Expr>(
      (value) => ({ kind: 'not', type: BOOLEAN, value }),
      { kind: 'column', type: BOOLEAN, id: 0 }, // prettier-ignore
    )

  it('is refused if it is nested too deeply', () => {
    expect(() => renderExpr(newState(), not(249))).not.toThrow()
    expect(() => renderExpr(newState(), not(250))).toThrow(
      expect.objectContaining({ errorName: 'STACK_OVERFLOW', message: expect.stringContaining('250 levels') }),
    )
    // The terms of a chain add only their own depth.
    const terms = Array.from({ length: 10_000 }, () => not(1))
    expect(() => renderExpr(newState(), { kind: 'and', type: BOOLEAN, terms })).not.toThrow()
  })

  it('throws for a node that cannot be rendered in this position', () => {
    const grouping: Expr = { kind: 'grouping', type: BIGINT, columns: [] }
    expect(() => renderExpr(newState(), { kind: 'not', type: BOOLEAN, value: grouping })).toThrow('Unexpected grouping')
  })

  it('calculates a named value once, however often it is used', () => {
    const name = { kind: 'lambdaArgument', type: BOOLEAN, id: 7 } as const
    const body: Expr = { kind: 'compare', type: BOOLEAN, operator: '=', left: name, right: name }
    const text = toText(renderExpr(newState(), { kind: 'let', type: BOOLEAN, name, value: not(40), body }))
    expect(text.match(/NOT/g)).toHaveLength(40)
  })
})
