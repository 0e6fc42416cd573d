import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FULL_TESTS } from '../support/full-tests.ts'
import { openTableRunner, type TableRunner } from '../support/table-runner.ts'

type Value = number | null
/** A row of the tables t(k, v) and s(k, v). */
type Row = readonly [k: Value, v: Value]
type Truth = boolean | null

/** A condition as SQL and as a function of the row of t and, in MERGE, of the row of s. */
interface Condition {
  readonly sql: string
  readonly test: (t: Row, s: Row) => Truth
}

/** An expression of the same rows. */
interface Expression {
  readonly sql: string
  readonly value: (t: Row, s: Row) => Value
}

const over = (a: Value, b: Value, compute: (a: number, b: number) => boolean): Truth =>
  a === null || b === null ? null : compute(a, b)
const plus = (a: Value, b: Value): Value => (a === null || b === null ? null : a + b)

const conditionsOfT: readonly Condition[] = [
  { sql: 't.k = 1', test: ([k]) => over(k, 1, (a, b) => a === b) },
  { sql: 'v IS NULL', test: ([, v]) => v === null },
  { sql: 't.v > k', test: ([k, v]) => over(v, k, (a, b) => a > b) },
  { sql: 't.k IN (SELECT x FROM two)', test: ([k]) => over(k, 0, (a) => a === 1 || a === 2) },
  { sql: 'NOT EXISTS (SELECT 1 FROM two WHERE x = t.v)', test: ([, v]) => v !== 1 && v !== 2 },
  { sql: 'false', test: () => false },
]
const conditionsOfBoth: readonly Condition[] = [
  { sql: 't.k = s.k', test: ([a], [b]) => over(a, b, (x, y) => x === y) },
  { sql: 't.v < s.v', test: ([, a], [, b]) => over(a, b, (x, y) => x < y) },
  { sql: 's.v IS NOT NULL', test: (_, [, v]) => v !== null },
  { sql: 's.k > 1', test: (_, [k]) => over(k, 1, (a, b) => a > b) },
  { sql: 't.k IS NULL', test: ([k]) => k === null },
  { sql: 'false', test: () => false },
]
const expressionsOfT: readonly Expression[] = [
  { sql: 'v + 1', value: ([, v]) => plus(v, 1) },
  { sql: 't.k', value: ([k]) => k },
  { sql: 'NULL', value: () => null },
  { sql: '1.5', value: () => 2 },
  { sql: '(SELECT max(x) FROM two WHERE x <= t.k)', value: ([k]) => (k === null || k < 1 ? null : Math.min(k, 2)) },
]
const expressionsOfBoth: readonly Expression[] = [
  { sql: 's.v', value: (_, [, v]) => v },
  { sql: 't.v + s.v', value: ([, a], [, b]) => plus(a, b) },
  { sql: 's.k', value: (_, [k]) => k },
  { sql: 'NULL', value: () => null },
]

/** The rows after a statement and its update count, or the name of the error. */
type Outcome = { readonly rows: readonly Row[]; readonly count: number } | string

interface Statement {
  readonly sql: string
  apply(t: readonly Row[], s: readonly Row[]): Outcome
}

const NONE: Row = [null, null]

const where = fc.option(fc.constantFrom(...conditionsOfT), { nil: undefined })
const whereSql = (condition: Condition | undefined): string => (condition ? ` WHERE ${condition.sql}` : '')
const taken = (condition: Condition | undefined, t: Row, s: Row = NONE): boolean =>
  condition?.test(t, s) !== false && condition?.test(t, s) !== null

const deletes = where.map((condition): Statement => ({
  sql: `DELETE FROM t${whereSql(condition)}`,
  apply(t) {
    const rows = t.filter((row) => !taken(condition, row))
    return { rows, count: t.length - rows.length }
  },
}))

const updates = fc
  .record({ where, k: fc.option(fc.constantFrom(...expressionsOfT)), v: fc.constantFrom(...expressionsOfT) })
  .map(({ where: condition, k, v }): Statement => ({
    sql: `UPDATE t SET v = ${v.sql}${k ? `, k = ${k.sql}` : ''}${whereSql(condition)}`,
    apply(t) {
      const changed = t.filter((row) => taken(condition, row))
      const rows = t.map((row): Row =>
        changed.includes(row) ? [k ? k.value(row, NONE) : row[0], v.value(row, NONE)] : row,
      )
      return { rows, count: changed.length }
    },
  }))

interface Case {
  readonly kind: 'update' | 'delete' | 'insert'
  readonly condition: Condition | undefined
  readonly value: Expression
}

const mergeCase: fc.Arbitrary<Case> = fc.record({
  kind: fc.constantFrom('update', 'delete', 'insert'),
  condition: fc.option(fc.constantFrom(...conditionsOfBoth), { nil: undefined }),
  value: fc.constantFrom(...expressionsOfBoth),
})

function caseSql({ kind, condition, value }: Case): string {
  const and = condition ? ` AND ${condition.sql}` : ''
  switch (kind) {
    case 'update':
      return `WHEN MATCHED${and} THEN UPDATE SET v = ${value.sql}`
    case 'delete':
      return `WHEN MATCHED${and} THEN DELETE`
    case 'insert':
      return `WHEN NOT MATCHED${and} THEN INSERT (v, k) VALUES (${value.sql}, s.k)`
  }
}

/** Two source rows that take the same row of the target in the same case, or in none, fail the statement. */
function merge(on: Condition, cases: readonly Case[], t: readonly Row[], s: readonly Row[]): Outcome {
  const removed = new Set<Row>()
  const added: Row[] = []
  const seen = new Set<string>()
  let count = 0
  for (const source of s) {
    const matches = t.filter((row) => on.test(row, source) === true)
    for (const target of matches) {
      const number = cases.findIndex(({ kind, condition }) => kind !== 'insert' && taken(condition, target, source))
      const key = `${t.indexOf(target)} ${number}`
      if (seen.has(key)) return 'MERGE_TARGET_ROW_MULTIPLE_MATCHES'
      seen.add(key)
      const one = cases[number]
      if (one === undefined) continue
      count++
      removed.add(target)
      if (one.kind === 'update') added.push([target[0], one.value.value(target, source)])
    }
    if (matches.length > 0) continue
    const one = cases.find(({ kind, condition }) => kind === 'insert' && taken(condition, NONE, source))
    if (one === undefined) continue
    count++
    added.push([source[0], one.value.value(NONE, source)])
  }
  return { rows: [...t.filter((row) => !removed.has(row)), ...added], count }
}

const merges = fc
  .record({ on: fc.constantFrom(...conditionsOfBoth), cases: fc.array(mergeCase, { minLength: 1, maxLength: 3 }) })
  .map(({ on, cases }): Statement => ({
    sql: `MERGE INTO t USING s ON ${on.sql} ${cases.map(caseSql).join(' ')}`,
    apply: (t, s) => merge(on, cases, t, s),
  }))

const value = fc.option(fc.integer({ min: 0, max: 3 }))
const rowsOf = fc.array(fc.tuple(value, value), { maxLength: 5 })
const drawn = fc.record({
  t: rowsOf,
  s: rowsOf,
  statement: fc.oneof(deletes, updates, { arbitrary: merges, weight: 3 }),
})

describe('DELETE, UPDATE and MERGE', () => {
  let runner: TableRunner
  beforeAll(async () => {
    runner = await openTableRunner()
    await runner.createTable('two', 'SELECT x FROM (VALUES 1, 2) v(x)')
  })
  afterAll(() => runner.close())

  async function fill(name: string, rows: readonly Row[]): Promise<void> {
    const values = [...rows, [0, 0]].map((row) => `(${row.map((one) => (one === null ? 'NULL' : one)).join(', ')})`)
    await runner.createTable(name, `SELECT k, v FROM (VALUES ${values.join(', ')}) x(k, v) LIMIT ${rows.length}`)
  }

  /** The table after the written rows are applied as a connector does. */
  async function outcome(sql: string, t: readonly Row[]): Promise<Outcome> {
    const written = await runner.written(sql)
    if (!Array.isArray(written)) return String(written).split(':')[0]!
    const changes = written as [number | null, number | null, boolean | null, number | null, Value, Value][]
    const matched = changes.flatMap(([, row, , number]) =>
      row === null || number === null ? [] : [`${row} ${number}`],
    )
    if (new Set(matched).size < matched.length) return 'MERGE_TARGET_ROW_MULTIPLE_MATCHES'
    const acting = changes.filter(([, , live]) => live !== null)
    const removed = new Set(acting.map(([, row]) => row))
    return {
      rows: [
        ...t.filter((_, i) => !removed.has(i)),
        ...acting.flatMap(([, , live, , k, v]): Row[] => (live ? [[k, v]] : [])),
      ],
      count: acting.length,
    }
  }

  it('change a table as a model of them does', async () => {
    await fc.assert(
      fc.asyncProperty(drawn, async ({ t, s, statement }) => {
        await fill('t', t)
        await fill('s', s)
        const found = await outcome(statement.sql, t)
        expect(sorted(found), statement.sql).toEqual(sorted(statement.apply(t, s)))
      }),
      { numRuns: FULL_TESTS ? 3000 : 100, seed: 3 },
    )
  })

  it('refuse NULL for a NOT NULL column of each row that they write', async () => {
    await runner.createTable('n', 'SELECT a, b FROM (VALUES (1, 2), (3, CAST(NULL AS integer))) x(a, b)', {
      notNull: ['a'],
    })
    const refusal = (name: string): string => `${name}: NULL value not allowed for NOT NULL column: a`
    const outcomes = {
      'UPDATE n SET a = b': refusal('INVALID_ARGUMENTS'),
      'UPDATE n SET a = NULL': refusal('INVALID_ARGUMENTS'),
      'UPDATE n SET a = NULL WHERE false': [],
      'UPDATE n SET a = b WHERE b = 2': [[0, 0, true, null, 2, 2]],
      'INSERT INTO n (b) VALUES 1': refusal('CONSTRAINT_VIOLATION'),
      'INSERT INTO n SELECT b, a FROM n': refusal('CONSTRAINT_VIOLATION'),
      'INSERT INTO n SELECT b, a FROM n WHERE b > 1': [[2, 1]],
      'MERGE INTO n USING (VALUES 3) s(k) ON a = k WHEN MATCHED THEN UPDATE SET a = b': refusal('CONSTRAINT_VIOLATION'),
      'MERGE INTO n USING (VALUES 9) s(k) ON a = k WHEN NOT MATCHED THEN INSERT (b) VALUES (k)':
        refusal('CONSTRAINT_VIOLATION'),
      'MERGE INTO n USING (VALUES 3) s(k) ON a = k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (b) VALUES (k)':
        [[0, 1, false, 0, null, null]],
    }
    for (const [sql, expected] of Object.entries(outcomes)) expect(await runner.written(sql), sql).toEqual(expected)
  })

  it.each([
    [
      "UPDATE t SET v = 'x'",
      "TYPE_MISMATCH: line 1:1: UPDATE table column types don't match SET expressions: Table: [integer], Expressions: [varchar(1)]",
    ],
    ['UPDATE t SET x = 1', "COLUMN_NOT_FOUND: line 1:14: The UPDATE SET target column x doesn't exist"],
    ['UPDATE t SET v = x', "COLUMN_NOT_FOUND: line 1:18: Column 'x' cannot be resolved"],
    ['UPDATE t SET v = max(k)', 'EXPRESSION_NOT_SCALAR: '],
    ['UPDATE t SET v = 3000000000', 'NUMERIC_VALUE_OUT_OF_RANGE: '],
    ['DELETE FROM t WHERE v', 'TYPE_MISMATCH: line 1:21: WHERE clause must evaluate to a boolean: actual type integer'],
    [
      'MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET x = 1',
      'COLUMN_NOT_FOUND: line 1:1: Merge column name does not exist in target table: x',
    ],
    [
      'MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 1, v = 2',
      'DUPLICATE_COLUMN_NAME: line 1:1: Merge column name is specified more than once: v',
    ],
    [
      "MERGE INTO t USING s ON t.k = s.k WHEN NOT MATCHED THEN INSERT VALUES (1, 'x')",
      "TYPE_MISMATCH: line 1:35: MERGE table column types don't match for MERGE case 0, SET expressions: Table: [integer, integer], Expressions: [integer, varchar(1)]",
    ],
    [
      'MERGE INTO t USING s ON t.k WHEN MATCHED THEN DELETE',
      'TYPE_MISMATCH: line 1:25: The MERGE predicate must evaluate to a boolean: actual type integer',
    ],
  ])('are refused: %s', async (sql, refusal) => {
    await fill('t', [[1, 1]])
    await fill('s', [[1, 1]])
    expect(String(await runner.written(sql)).slice(0, refusal.length)).toBe(refusal)
  })

  it('swap columns, and know the target by its alias in MERGE', async () => {
    await fill('t', [[1, 2]])
    await fill('s', [[1, 3]])
    expect(await runner.written('UPDATE t SET k = v, v = k')).toEqual([[0, 0, true, null, 2, 1]])
    const aliased = 'MERGE INTO t AS x USING t AS y ON x.k = y.k WHEN MATCHED THEN UPDATE SET v = x.v + y.v'
    expect(await runner.written(aliased)).toEqual([[0, 0, true, 0, 1, 4]])
  })
})

function sorted(outcome: Outcome): unknown {
  if (typeof outcome === 'string') return outcome
  return { count: outcome.count, rows: outcome.rows.map((row) => JSON.stringify(row)).toSorted() }
}
