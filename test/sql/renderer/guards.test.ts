import type { DuckDBConnection } from '@duckdb/node-api'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ColumnId, Expr, JoinType, RelationNode } from '../../../src/sql/analyzer/tree.ts'
import { someExpr, visitColumns } from '../../../src/sql/analyzer/walk.ts'
import { neededColumns } from '../../../src/sql/analyzer/needed-columns.ts'
import { renderQuery, renderTop } from '../../../src/sql/renderer/render-relation.ts'
import { newRenderState } from '../../../src/sql/renderer/render-state.ts'
import { plainName, toText } from '../../../src/duckdb/text/sql.ts'
import { BIGINT } from '../../../src/sql/types/sql-type.ts'
import {
  column,
  compared,
  comparison,
  condition,
  constant,
  divided,
  division,
  inList,
  logical,
  not,
  Raised,
  whole,
  type Case,
} from '../../support/drawn-conditions.ts'
import { openEngineConnection } from '../../support/duckdb-in-process.ts'

let connection: DuckDBConnection
let close: () => void
beforeAll(async () => void ({ connection, close } = await openEngineConnection()))
afterAll(() => close())

type Row = readonly (number | null)[]
const VALUES = [null, 0, 1, 2]
const PAIRS: readonly Row[] = VALUES.flatMap((a) => VALUES.map((b) => [a, b]))
const ROWS: readonly Row[] = PAIRS.flatMap((pair) => VALUES.map((c) => [...pair, c]))

const scan = (...ids: readonly ColumnId[]): RelationNode => ({
  kind: 'scan',
  catalog: 'c',
  schema: 's',
  table: 't',
  handle: {},
  columns: ids.map((id) => ({ id, name: `x${id}`, type: BIGINT })),
})

/** Runs a tree over tables with these rows, and returns the result. */
async function rowsOf(
  node: RelationNode,
  ids: readonly ColumnId[],
  ...tables: readonly (readonly Row[])[]
): Promise<readonly string[]> {
  const state = newRenderState({
    session: { timeZone: 'UTC', startTimeMillis: 0, user: 'ana', groups: [] },
    needed: neededColumns(node, ids),
    renderQuery,
  })
  const outputs = ids.map((id, i) => ({ column: id, name: plainName(`c${i}`) }))
  const text = toText(renderTop(state, node, outputs))
  const given = state.scans.map(({ columns }, i) => {
    const rows = tables[i]!.map((row) => `(${row.map((value) => `CAST(${value} AS BIGINT)`).join(', ')})`)
    return `"$s${i}" AS MATERIALIZED (SELECT * FROM (VALUES ${rows.join(', ')}) t(${columns.join(', ')}))`
  })
  const reader = await connection.runAndReadAll(`WITH ${given.join(', ')} ${text}`)
  return sorted(reader.getRows().map((row) => row.map((value) => (typeof value === 'bigint' ? Number(value) : value))))
}
const sorted = (rows: readonly (readonly unknown[])[]): string[] => rows.map((row) => JSON.stringify(row)).sort()

/** Returns the result, or undefined if the calculation fails. */
function unlessRaised<T>(of: () => T): T | undefined {
  try {
    return of()
  } catch (error) {
    if (error instanceof Raised) return undefined
    throw error
  }
}

const CALCULATED = 3
/** Conditions that can also read a calculated column. */
const overCalculated = fc.oneof(condition, compared(fc.oneof(whole, fc.constant(column(CALCULATED, BIGINT)))))
const conditionOver = fc.oneof(
  overCalculated,
  fc
    .tuple(fc.constantFrom('and' as const, 'or' as const), fc.array(overCalculated, { minLength: 2, maxLength: 3 }))
    .map(([kind, terms]) => logical(kind, terms)),
)

/** Puts a calculation over a filter, and a second filter on top. Checks the rows on which no part fails. */
async function failsForNoRow(below: Case, calculated: Case, above: Case): Promise<void> {
  const expected: Row[] = []
  const rows = ROWS.filter((row) => {
    const is = unlessRaised(
      () => below.of(row) === true && above.of([...row, calculated.of(row) as number | null]) === true,
    )
    if (is === true) expected.push(row)
    return is !== undefined
  })
  if (rows.length === 0) return
  const filtered: RelationNode = { kind: 'filter', input: scan(0, 1, 2), predicate: below.expr }
  const project: RelationNode = {
    kind: 'project',
    input: filtered,
    columns: [{ id: CALCULATED, expression: calculated.expr }],
  }
  const node: RelationNode = { kind: 'filter', input: project, predicate: above.expr }
  expect(await rowsOf(node, [0, 1, 2], rows)).toEqual(sorted(expected))
}

const x = (id: number): Case => column(id, BIGINT)
const known = (value: number | null): Case => constant(BIGINT, value)
const isKnown = (id: number): Case => comparison('=', x(id), x(id))
const or = (...terms: readonly Case[]): Case => logical('or', terms)
const and = (...terms: readonly Case[]): Case => logical('and', terms)

const long = Array.from({ length: 200 }, (_, i) => known(1000 + i))

describe('A row that a filter removes', () => {
  it('fails in no calculation above the filter, and in no condition over this calculation', async () => {
    await fc.assert(fc.asyncProperty(condition, fc.oneof(division, whole), conditionOver, failsForNoRow), {
      numRuns: 150,
    })
  })

  it.each<[string, Case, Case, Case]>([
    [
      'a term of OR after a true term, in a condition after others',
      comparison('<=', known(0), x(0)),
      known(1),
      and(comparison('<', x(1), known(2)), or(isKnown(1), comparison('<', x(2), divided(1)))),
    ],
    [
      'a term of OR after a true term, over a calculated column',
      comparison('<>', x(0), known(0)),
      divided(0),
      or(comparison('=', x(CALCULATED), x(CALCULATED)), comparison('<', x(2), divided(1))),
    ],
    [
      'a condition above a query without used columns',
      comparison('=', divided(0), x(1)),
      divided(2),
      or(comparison('<', divided(1), x(2)), isKnown(0)),
    ],
    [
      'a condition that is NULL, after one over a calculated column',
      or(comparison('=', x(0), x(2)), comparison('=', divided(2), known(0))),
      divided(0),
      and(comparison('=', x(CALCULATED), x(0)), comparison('=', divided(0), known(null)), isKnown(CALCULATED)),
    ],
    [
      'a term of OR that another column guards',
      isKnown(0),
      known(1),
      or(and(comparison('=', x(0), known(2)), comparison('=', divided(1), known(2))), comparison('=', x(1), known(0))),
    ],
    [
      'a condition too long to be repeated, around a query that removes rows',
      or(comparison('=', x(2), known(1)), comparison('>', divided(0), known(5))),
      known(1),
      not(or(inList(x(1), long), comparison('<', divided(2), x(0)))),
    ],
  ])('does not fail in %s', async (_what, below, calculated, above) => {
    await failsForNoRow(below, calculated, above)
  })
})

const columnsOf = (expr: Expr): ReadonlySet<ColumnId> => {
  const found = new Set<ColumnId>()
  visitColumns(expr, (id) => found.add(id))
  return found
}
/** The items of FROM that a condition reads: x0 and x1 are on the left, x2 is on the right. */
const sidesRead = (expr: Expr): string =>
  [...new Set([...columnsOf(expr)].map((id) => (id === 2 ? 'right' : 'left')))].sort().join()

/** Whether a condition like `2 / x0 < x2` becomes a join key. Both sides of a key are calculated for every row. */
function isKey(expr: Expr): boolean {
  if (expr.kind === 'not') return isKey(expr.value)
  return expr.kind === 'compare' && [expr.left, expr.right].map(sidesRead).sort().join(' ') === 'left right'
}

/** A comparison with a constant NULL does not evaluate its other side. */
const isNull = (expr: Expr): boolean => expr.kind === 'constant' && expr.value === null

/**
 * Whether a pair of rows matches. Each condition is evaluated only if the earlier conditions over the same items
 * hold.
 */
function joins(conditions: readonly Case[], pair: Row): boolean {
  const asked = conditions.map(({ expr }, i) =>
    isKey(expr) ? [] : conditions.slice(0, i).filter((other) => sidesRead(expr).includes(sidesRead(other.expr))),
  )
  const hold = conditions.map((one, i) => asked[i]!.every((guard) => guard.of(pair) === true) && one.of(pair) === true)
  return hold.every(Boolean)
}

describe('A join', () => {
  it('evaluates no condition for a pair of rows that an earlier condition excludes', async () => {
    const types = fc.constantFrom<JoinType>('inner', 'left', 'right', 'full')
    const some = fc.array(
      condition.filter(({ expr }) => expr.kind !== 'and' && !someExpr(expr, isNull)),
      { minLength: 1, maxLength: 3 },
    )
    const others: readonly Row[] = VALUES.map((value) => [value])
    await fc.assert(
      fc.asyncProperty(types, some, async (type, conditions) => {
        const found = new Map(
          PAIRS.flatMap((row) => {
            const matches = unlessRaised(() => others.filter((other) => joins(conditions, [...row, ...other])))
            return matches === undefined ? [] : [[row, matches] as const]
          }),
        )
        fc.pre(found.size > 0)
        const expected: Row[] = [...found].flatMap(([row, matches]) => matches.map((other) => [...row, ...other]))
        const matched = new Set([...found.values()].flat())
        if (type === 'left' || type === 'full')
          for (const [row, matches] of found) if (matches.length === 0) expected.push([...row, null])
        if (type === 'right' || type === 'full')
          for (const other of others) if (!matched.has(other)) expected.push([null, null, ...other])
        const node: RelationNode = {
          kind: 'join',
          type,
          lateral: false,
          left: scan(0, 1),
          right: scan(2),
          condition: and(...conditions).expr,
        }
        expect(await rowsOf(node, [0, 1, 2], [...found.keys()], others)).toEqual(sorted(expected))
      }),
      { numRuns: 150 },
    )
  })
})
