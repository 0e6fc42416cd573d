import type { DuckDBConnection } from '@duckdb/node-api'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ColumnId, RelationNode } from '../../../src/sql/analyzer/tree.ts'
import { neededColumns } from '../../../src/sql/renderer/needed-columns.ts'
import { renderQuery, renderTop } from '../../../src/sql/renderer/render-relation.ts'
import { newRenderState } from '../../../src/sql/renderer/render-state.ts'
import { plainName, toText } from '../../../src/sql/text/sql.ts'
import { BIGINT } from '../../../src/sql/types/sql-type.ts'
import {
  column,
  compared,
  comparison,
  condition,
  constant,
  divided,
  division,
  logical,
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

/** The rows of a tree over tables with these rows. */
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

/** What it gives, or nothing where that would fail. */
function unlessRaised<T>(of: () => T): T | undefined {
  try {
    return of()
  } catch (error) {
    if (error instanceof Raised) return undefined
    throw error
  }
}

const CALCULATED = 3
/** Over a calculated column too. */
const overCalculated = fc.oneof(condition, compared(fc.oneof(whole, fc.constant(column(CALCULATED, BIGINT)))))
const conditionOver = fc.oneof(
  overCalculated,
  fc
    .tuple(fc.constantFrom('and' as const, 'or' as const), fc.array(overCalculated, { minLength: 2, maxLength: 3 }))
    .map(([kind, terms]) => logical(kind, terms)),
)

/** Above a filter a calculation, and above that another filter: over the rows of which none fails. */
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

describe('what a filter removes', () => {
  it('fails in no calculation above it, and in no condition over that', async () => {
    await fc.assert(fc.asyncProperty(condition, fc.oneof(division, whole), conditionOver, failsForNoRow), {
      numRuns: 150,
    })
  })

  it.each<[string, Case, Case, Case]>([
    [
      'a term of OR behind one that holds, in a condition behind others',
      comparison('<=', known(0), x(0)),
      known(1),
      and(comparison('<', x(1), known(2)), or(isKnown(1), comparison('<', x(2), divided(1)))),
    ],
    [
      'a term of OR behind one that holds, over a calculated column',
      comparison('<>', x(0), known(0)),
      divided(0),
      or(comparison('=', x(CALCULATED), x(CALCULATED)), comparison('<', x(2), divided(1))),
    ],
    [
      'a condition above a query of which nothing is read',
      comparison('=', divided(0), x(1)),
      divided(2),
      or(comparison('<', divided(1), x(2)), isKnown(0)),
    ],
    [
      'a condition that is NULL, behind one over a calculated column',
      or(comparison('=', x(0), x(2)), comparison('=', divided(2), known(0))),
      divided(0),
      and(comparison('=', x(CALCULATED), x(0)), comparison('=', divided(0), known(null)), isKnown(CALCULATED)),
    ],
  ])('fails not in %s', async (_what, below, calculated, above) => {
    await failsForNoRow(below, calculated, above)
  })
})
