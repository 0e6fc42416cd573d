import type { DuckDBConnection } from '@duckdb/node-api'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ColumnId, ConstantExpr, Expr, JoinType, RelationNode, SortKey } from '../../../src/sql/analyzer/tree.ts'
import { neededColumns } from '../../../src/sql/analyzer/needed-columns.ts'
import { renderQuery, renderTop } from '../../../src/sql/renderer/render-relation.ts'
import { newRenderState } from '../../../src/sql/renderer/render-state.ts'
import { plainName, toText } from '../../../src/duckdb/text/sql.ts'
import { resolveArithmetic } from '../../../src/sql/functions/operators.ts'
import { BIGINT, BOOLEAN, INTEGER } from '../../../src/sql/types/sql-type.ts'
import { openEngineConnection } from '../../support/duckdb-in-process.ts'

let connection: DuckDBConnection
let close: () => void
beforeAll(async () => void ({ connection, close } = await openEngineConnection()))
afterAll(() => close())

type Value = number | null
type Row = readonly [Value, Value]

/** A relation of two columns of whole numbers, with its expected rows. */
interface Relation {
  readonly node: RelationNode
  readonly ids: readonly [ColumnId, ColumnId]
  readonly rows: readonly Row[]
}

/** Makes a relation with new columns. */
type Make = (ids: { next: number }) => Relation

const constant = (value: Value): ConstantExpr => ({
  kind: 'constant',
  type: INTEGER,
  value: value === null ? null : String(value),
})
const column = (id: ColumnId): Expr => ({ kind: 'column', type: INTEGER, id })
const typed = (ids: readonly ColumnId[]) => ids.map((id) => ({ id, type: INTEGER }))
const twoOf = (ids: { next: number }): [ColumnId, ColumnId] => [ids.next++, ids.next++]
const addition = resolveArithmetic('+', INTEGER, INTEGER)

const value = fc.constantFrom<Value>(0, 1, 2, null)
const values = fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 5 }).map((rows): Make => (ids) => {
  const own = twoOf(ids)
  return { node: { kind: 'values', columns: typed(own), rows: rows.map((row) => row.map(constant)) }, ids: own, rows }
})

const filtered =
  (input: Make, index: 0 | 1, least: number): Make =>
  (ids) => {
    const { node, ids: own, rows } = input(ids)
    const predicate: Expr = {
      kind: 'compare',
      type: BOOLEAN,
      operator: '>=',
      left: column(own[index]),
      right: constant(least),
    }
    return {
      node: { kind: 'filter', input: node, predicate },
      ids: own,
      rows: rows.filter((row) => row[index] !== null && row[index] >= least),
    }
  }

const added =
  (input: Make): Make =>
  (ids) => {
    const {
      node,
      ids: [a, b],
      rows,
    } = input(ids)
    const sum = ids.next++
    const expression: Expr = {
      kind: 'operator',
      type: INTEGER,
      name: '+',
      operator: addition,
      left: column(a),
      right: column(b),
    }
    return {
      node: { kind: 'project', input: node, columns: [{ id: sum, expression }] },
      ids: [sum, a],
      rows: rows.map(([x, y]) => [x === null || y === null ? null : x + y, x]),
    }
  }

/** TABLESAMPLE of 100 percent. */
const sampled =
  (input: Make): Make =>
  (ids) => {
    const of = input(ids)
    return { ...of, node: { kind: 'sample', input: of.node, percentage: 100, system: false } }
  }

const joinedBy =
  (type: JoinType, left: Make, right: Make, lateral = false): Make =>
  (ids) => {
    const [l, r] = [left(ids), right(ids)]
    const on = (a: Row, b: Row): boolean => type === 'cross' || (a[0] !== null && a[0] === b[0])
    const condition: Expr = {
      kind: 'compare',
      type: BOOLEAN,
      operator: '=',
      left: column(l.ids[0]),
      right: column(r.ids[0]),
    }
    const rows: Row[] = l.rows.flatMap((a) => r.rows.filter((b) => on(a, b)).map((b): Row => [a[1], b[1]]))
    if (type === 'left' || type === 'full')
      for (const a of l.rows) if (!r.rows.some((b) => on(a, b))) rows.push([a[1], null])
    if (type === 'right' || type === 'full')
      for (const b of r.rows) if (!l.rows.some((a) => on(a, b))) rows.push([null, b[1]])
    return {
      node: {
        kind: 'join',
        type,
        lateral,
        left: l.node,
        right: r.node,
        condition: type === 'cross' ? undefined : condition,
      },
      ids: [l.ids[1], r.ids[1]],
      rows,
    }
  }

const key = (row: Row): string => JSON.stringify(row)
const unique = (rows: readonly Row[]): Row[] => [...new Map(rows.map((row) => [key(row), row])).values()]

const distinct =
  (input: Make): Make =>
  (ids) => {
    const { node, ids: own, rows } = input(ids)
    return { node: { kind: 'distinct', input: node, columns: typed(own) }, ids: own, rows: unique(rows) }
  }

const grouped =
  (input: Make): Make =>
  (ids) => {
    const { node, ids: own, rows } = input(ids)
    const keys = twoOf(ids)
    return {
      node: {
        kind: 'aggregate',
        input: node,
        keys: keys.map((id, i) => ({ id, input: own[i]!, type: INTEGER })),
        sets: undefined,
        aggregates: [],
        groupings: [],
      },
      ids: keys,
      rows: unique(rows),
    }
  }

/** ROLLUP: rows grouped by both keys, by the first key, and by none. */
const rolledUp =
  (input: Make): Make =>
  (ids) => {
    const { node, ids: own, rows } = input(ids)
    const keys = twoOf(ids)
    const byFirst = [...new Set(rows.map(([a]) => a))].map((a): Row => [a, null])
    return {
      node: {
        kind: 'aggregate',
        input: node,
        keys: keys.map((id, i) => ({ id, input: own[i]!, type: INTEGER })),
        sets: [[0, 1], [0], []],
        aggregates: [],
        groupings: [],
      },
      ids: keys,
      rows: [...unique(rows), ...byFirst, [null, null]],
    }
  }

interface Order {
  readonly descending: boolean
  readonly nullsFirst: boolean
}
const order = fc.record({ descending: fc.boolean(), nullsFirst: fc.boolean() })

function inOrder(rows: readonly Row[], orders: readonly Order[]): Row[] {
  return rows.toSorted((a, b) => {
    for (const [i, { descending, nullsFirst }] of orders.entries()) {
      const [x, y] = [a[i]!, b[i]!]
      if (x === y) continue
      if (x === null || y === null) return (x === null) === nullsFirst ? -1 : 1
      return descending ? y - x : x - y
    }
    return 0
  })
}
const keysOf = (ids: readonly ColumnId[], orders: readonly Order[]): SortKey[] =>
  orders.map((one, i) => ({ column: ids[i]!, type: INTEGER, ...one }))

/** ORDER BY both columns with LIMIT, or ORDER BY the first column with FETCH FIRST … WITH TIES. */
const limited =
  (input: Make, orders: readonly Order[], [offset, count]: readonly [number, number], ties: boolean): Make =>
  (ids) => {
    const { node, ids: own, rows } = input(ids)
    const by = ties ? orders.slice(0, 1) : orders
    const keys = keysOf(own, by)
    const all = inOrder(rows, by)
    const [from, to] = ties ? [0, endOfTies(all, count)] : [offset, offset + count]
    return {
      node: {
        kind: 'limit',
        input: { kind: 'sort', input: node, keys },
        count: String(count),
        offset: from === 0 ? undefined : String(from),
        ties: ties ? keys : undefined,
      },
      ids: own,
      rows: all.slice(from, to),
    }
  }

function endOfTies(rows: readonly Row[], count: number): number {
  const last = rows[count - 1]
  return last === undefined ? rows.length : rows.findLastIndex(([first]) => first === last[0]) + 1
}

const combined =
  (operator: 'union' | 'intersect' | 'except', all: boolean, left: Make, right: Make): Make =>
  (ids) => {
    const [l, r] = [left(ids), right(ids)]
    const own = twoOf(ids)
    const rest = r.rows.map(key)
    const take = (row: Row): boolean => {
      const at = rest.indexOf(key(row))
      if (at >= 0) rest.splice(at, 1)
      return at >= 0
    }
    const both = (rows: readonly Row[]): readonly Row[] => (all ? rows : unique(rows))
    const rows = {
      union: () => both([...l.rows, ...r.rows]),
      intersect: () => (all ? l.rows.filter(take) : unique(l.rows).filter((row) => rest.includes(key(row)))),
      except: () =>
        all ? l.rows.filter((row) => !take(row)) : unique(l.rows).filter((row) => !rest.includes(key(row))),
    }[operator]()
    return {
      node: {
        kind: 'set',
        operator,
        all,
        columns: typed(own),
        inputs: [
          { node: l.node, columns: l.ids },
          { node: r.node, columns: r.ids },
        ],
      },
      ids: own,
      rows,
    }
  }

/** WITH t AS (…) SELECT … FROM t a JOIN t b. */
const twice =
  (input: Make): Make =>
  (ids) => {
    const { node, ids: own, rows } = input(ids)
    const table = ids.next++
    const scan = (): Make => (at) => {
      const [a, b] = twoOf(at)
      return {
        node: { kind: 'cte', table, columns: [a, b].map((id, i) => ({ id, source: own[i]!, type: INTEGER })) },
        ids: [a, b],
        rows,
      }
    }
    const body = joinedBy('inner', scan(), scan())(ids)
    return { ...body, node: { kind: 'with', tables: [{ id: table, node, columns: typed(own) }], body: body.node } }
  }

const { relation } = fc.letrec<{ relation: Make }>((tie) => {
  const one = tie('relation')
  const position = fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 3 }))
  return {
    relation: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      values,
      fc
        .tuple(one, fc.constantFrom(0 as const, 1 as const), fc.integer({ min: 1, max: 2 }))
        .map(([input, index, least]) => filtered(input, index, least)),
      one.map(added),
      fc
        .tuple(fc.constantFrom<JoinType>('cross', 'inner', 'left', 'right', 'full'), one, one, fc.boolean())
        .map(([type, left, right, lateral]) => joinedBy(type, left, right, lateral)),
      one.map(sampled),
      one.map(distinct),
      one.map(grouped),
      one.map(rolledUp),
      fc
        .tuple(one, fc.tuple(order, order), position, fc.boolean())
        .map(([input, orders, at, ties]) => limited(input, orders, at, ties)),
      fc
        .tuple(fc.constantFrom('union' as const, 'intersect' as const, 'except' as const), fc.boolean(), one, one)
        .map(([operator, all, left, right]) => combined(operator, all, left, right)),
      one.map(twice),
    ),
  }
})

async function rowsOf(node: RelationNode, ids: readonly ColumnId[]): Promise<unknown[][]> {
  const needed = neededColumns(node, ids)
  const state = newRenderState({
    session: { timeZone: 'UTC', startTimeMillis: 0, user: 'ana', groups: [] },
    needed,
    renderQuery,
  })
  const outputs = ids.map((id, i) => ({ column: id, name: plainName(`c${i}`) }))
  return (await connection.runAndReadAll(toText(renderTop(state, node, outputs)))).getRows() as unknown[][]
}

const sorted = (rows: readonly (readonly unknown[])[]): string[] => rows.map((row) => JSON.stringify(row)).sort()

describe('A random tree of relations', () => {
  it('gives the expected rows', async () => {
    await fc.assert(
      fc.asyncProperty(relation, async (make) => {
        const { node, ids, rows } = make({ next: 0 })
        fc.pre(rows.length < 3000)
        expect(sorted(await rowsOf(node, ids))).toEqual(sorted(rows))
      }),
      { numRuns: 400 },
    )
  })

  it('gives the expected rows for any choice of its columns', async () => {
    await fc.assert(
      fc.asyncProperty(relation, fc.subarray([0, 1]), async (make, wanted) => {
        const { node, ids, rows } = make({ next: 0 })
        fc.pre(rows.length < 3000 && wanted.length > 0)
        const found = await rowsOf(
          node,
          wanted.map((i) => ids[i]!),
        )
        expect(sorted(found)).toEqual(sorted(rows.map((row) => wanted.map((i) => row[i]))))
      }),
      { numRuns: 200 },
    )
  })

  it('gives rows in the order of a sort at its top, with NULLs first or last', async () => {
    await fc.assert(
      fc.asyncProperty(relation, fc.tuple(order, order), async (make, orders) => {
        const { node, ids, rows } = make({ next: 0 })
        fc.pre(rows.length < 3000)
        expect(await rowsOf({ kind: 'sort', input: node, keys: keysOf(ids, orders) }, ids)).toEqual(
          inOrder(rows, orders),
        )
      }),
      { numRuns: 200 },
    )
  })
})

describe('A relation', () => {
  it('has all its rows even if they have no columns', async () => {
    const node: RelationNode = { kind: 'values', columns: [], rows: [[], [], []] }
    const one: RelationNode = { kind: 'project', input: node, columns: [{ id: 1, expression: constant(7) }] }
    expect(await rowsOf(one, [1])).toEqual([[7], [7], [7]])
  })

  it('keeps DISTINCT over all its columns even if fewer are read', async () => {
    const rows = [
      [constant(1), constant(1)],
      [constant(1), constant(2)],
    ]
    const input: RelationNode = { kind: 'values', columns: typed([0, 1]), rows }
    const node: RelationNode = { kind: 'distinct', input, columns: typed([0, 1]) }
    expect(await rowsOf(node, [0])).toEqual([[1], [1]])
    const inputs = [node, node].map((one) => ({ node: one, columns: [0, 1] }))
    const twice: RelationNode = { kind: 'set', operator: 'union', all: true, columns: typed([2, 3]), inputs }
    expect(await rowsOf(twice, [2])).toEqual([[1], [1], [1], [1]])
  })

  it.each([
    ['a query without used calculations', false, added],
    ['a sample of all rows', false, sampled],
    ['a query after LATERAL', true, (input: Make) => input],
    ['a query after LATERAL without used calculations', true, added],
  ] as const)('stays correct if it has an outer join and is joined with %s', async (_name, lateral, over) => {
    const one: Make = (ids) => {
      const own = twoOf(ids)
      const rows: readonly Row[] = [[ids.next, ids.next]]
      return { node: { kind: 'values', columns: typed(own), rows: rows.map((row) => row.map(constant)) }, ids: own, rows } // prettier-ignore
    }
    for (const type of ['left', 'right', 'full'] as const) {
      for (const by of ['cross', 'inner'] as const) {
        const { node, ids, rows } = joinedBy(by, one, over(joinedBy(type, one, one)), lateral)({ next: 0 })
        expect(sorted(await rowsOf(node, ids)), `${by} ${type}`).toEqual(sorted(rows))
      }
    }
  })

  it('has no more rows than the smaller of two limits', async () => {
    const input: RelationNode = { kind: 'values', columns: typed([0]), rows: [1, 2, 3].map((one) => [constant(one)]) }
    const limit = (of: RelationNode, count: number): RelationNode => ({
      kind: 'limit',
      input: of,
      count: String(count),
      offset: undefined,
      ties: undefined,
    })
    expect(await rowsOf(limit(limit(input, 1), 2), [0])).toHaveLength(1)
    expect(await rowsOf(limit(limit(input, 2), 1), [0])).toHaveLength(1)
  })

  it('includes both ends of a sequence, ascending and descending', async () => {
    const sequence = (start: bigint, stop: bigint, step: bigint): RelationNode => ({
      kind: 'sequence',
      id: 0,
      start,
      stop,
      step,
    })
    expect((await rowsOf(sequence(1n, 5n, 2n), [0])).flat()).toEqual([1n, 3n, 5n])
    expect((await rowsOf(sequence(5n, 1n, -2n), [0])).flat()).toEqual([5n, 3n, 1n])
    const most = 2n ** 63n - 1n
    expect((await rowsOf(sequence(most - 1n, most, 1n), [0])).flat()).toEqual([most - 1n, most])
  })

  it('is as long as the longest of several unnested arrays', async () => {
    const array = (...items: readonly Value[]): Expr => ({
      kind: 'array',
      type: { kind: 'array', element: INTEGER },
      items: items.map(constant),
    })
    const unnest: RelationNode = {
      kind: 'unnest',
      arguments: [
        { value: array(1, 2, 3), columns: [0] },
        { value: array(4), columns: [1] },
      ],
      ordinality: 2,
    }
    const rows = await rowsOf(
      { kind: 'sort', input: unnest, keys: [{ column: 2, type: BIGINT, descending: false, nullsFirst: false }] },
      [0, 1, 2],
    )
    expect(rows).toEqual([
      [1, 4, 1n],
      [2, null, 2n],
      [3, null, 3n],
    ])
  })

  it('ends at the condition of its recursion, and fails beyond the maximum depth', async () => {
    const numbers = (until: number, maxDepth: number): RelationNode => {
      const less: Expr = { kind: 'compare', type: BOOLEAN, operator: '<', left: column(1), right: constant(until) }
      const next: Expr = {
        kind: 'operator',
        type: INTEGER,
        name: '+',
        operator: addition,
        left: column(1),
        right: constant(1),
      }
      const read: RelationNode = { kind: 'cte', table: 9, columns: [{ id: 1, source: 0, type: INTEGER }] }
      const step: RelationNode = {
        kind: 'project',
        input: { kind: 'filter', input: read, predicate: less },
        columns: [{ id: 2, expression: next }],
      }
      const base: RelationNode = { kind: 'values', columns: typed([0]), rows: [[constant(1)]] }
      const table = {
        id: 9,
        node: base,
        columns: typed([0]),
        step: { node: step, columns: [2], maxDepth, distinct: false },
      }
      return {
        kind: 'with',
        tables: [table],
        body: { kind: 'cte', table: 9, columns: [{ id: 3, source: 0, type: INTEGER }] },
      }
    }
    expect(sorted(await rowsOf(numbers(4, 5), [3]))).toEqual(['[1]', '[2]', '[3]', '[4]'])
    await expect(rowsOf(numbers(9, 5), [3])).rejects.toThrow('Recursion depth limit exceeded (5)')
  })
})
