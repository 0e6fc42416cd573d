import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionContext } from '../../../src/sql/front-end.ts'
import { openTableRunner, type TableRunner } from '../../support/table-runner.ts'
import { rightsUnder } from '../../support/rights-under.ts'

/** The number of statements. `POLICY_FUZZ=5000` makes a full run. */
const numRuns = Number(process.env['POLICY_FUZZ'] ?? 150)

const FILTER = 'd <> 0 AND abs(d) < 6'
const MASK = `'*' || substr(name, 1, 1)`

/** Nearly every generated expression fails on the rows that the filter removes, and none fails on the other rows. */
const ROWS = `SELECT id, id % 7 AS d, IF(id % 7 IN (0, 6), 'x', '') || CAST(id AS varchar) AS s,
    CAST(chr(CAST(97 + id % 5 AS integer)) || CAST(id AS varchar) AS varchar) AS name, IF(id % 7 IN (0, 6), 0, id % 4 + 1) AS pay,
    IF(id % 7 IN (0, 6), '{', '{"a": 1}') AS j, repeat(id, CAST(id % 7 AS integer)) AS l
  FROM (SELECT a * 20 + b AS id FROM UNNEST(sequence(0, 2)) x(a), UNNEST(sequence(1, 20)) y(b))`

interface Policy {
  readonly filter: string
  readonly masks: Readonly<Record<string, string>>
  readonly hidden: readonly string[]
}

/** Rules for the table. No expression fails on the rows that they leave. */
const POLICIES: readonly Policy[] = [
  { filter: FILTER, masks: { name: MASK }, hidden: [] },
  { filter: FILTER, masks: { d: 'd + 1', j: `'{"a": 2}'` }, hidden: ['pay'] },
  {
    filter: `${FILTER} AND id IN (SELECT uid FROM u)`,
    masks: { l: 'reverse(l)', s: `CAST(id AS varchar)` },
    hidden: [],
  },
  { filter: FILTER, masks: { pay: 'IF(pay = 0, NULL, -pay)', name: 'NULL' }, hidden: [] },
  { filter: FILTER, masks: {}, hidden: ['name', 'l'] },
]

const COLUMNS = ['id', 'd', 's', 'name', 'pay', 'j', 'l'] as const

/** The table as a query with the policy written into it. It runs once and alone, so no statement can affect it. */
function applied({ filter, masks }: Policy, from: string): string {
  const columns = COLUMNS.map((name) =>
    masks[name] === undefined ? name : `CAST(${masks[name]} AS ${TYPES[name]}) AS ${name}`,
  )
  return `SELECT ${columns.join(', ')} FROM ${from} WHERE ${filter}`
}

const TYPES: Readonly<Record<string, string>> = {
  id: 'bigint',
  d: 'bigint',
  s: 'varchar',
  name: 'varchar',
  pay: 'integer',
  j: 'varchar',
  l: 'array(bigint)',
}

/**
 * The relations that `ana` reads: the table, and views that run with the rules of `ana`, or with those of their owner
 * below the rules of `ana`.
 */
const relations = ['t', 'invoked', 'owned', 'both'] as const
type RelationName = (typeof relations)[number]

function ruleOf(user: string, table: string, { filter, masks, hidden }: Policy): object {
  const columns = COLUMNS.flatMap((name) => {
    const mask = masks[name]
    const allow = !hidden.includes(name)
    return mask === undefined && allow ? [] : [{ name, allow, ...(mask !== undefined && { mask }) }]
  })
  const environment = { filter_environment: { user: 'root' } }
  const privileges = ['SELECT', 'INSERT', 'GRANT_SELECT']
  return { user, table, privileges, columns, filter, ...environment }
}

const number = fc.letrec<{ number: string }>((tie) => ({
  number: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('T.id', 'T.d', 'T.pay', 'length(T.name)', 'cardinality(T.l)', '3', '0'),
    fc.constantFrom(
      '10 / T.d',
      '100 % T.pay',
      'CAST(T.s AS bigint)',
      "CAST(json_extract_scalar(json_parse(T.j), '$.a') AS bigint)",
    ),
    fc.constantFrom('T.l[1]', 'element_at(T.l, 6)', 'TRY(10 / (T.d - 1))'),
    fc.tuple(tie('number'), fc.constantFrom('+', '-', '*'), tie('number')).map(([a, op, b]) => `(${a} ${op} ${b})`),
    tie('number').map((a) => `coalesce(nullif(${a}, 3), 1)`),
    fc.tuple(tie('number'), tie('number')).map(([a, b]) => `CASE WHEN ${a} > 2 THEN ${b} END`),
  ),
})).number

const condition = fc.letrec<{ condition: string }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 2 },
    fc.tuple(number, fc.constantFrom('=', '<>', '<', '>='), number).map(([a, op, b]) => `${a} ${op} ${b}`),
    number.map((a) => `${a} IS NOT NULL`),
    number.map((a) => `${a} IN (1, 2, 3)`),
    number.map((a) => `${a} BETWEEN 0 AND 9`),
    fc.constantFrom(
      `T.name LIKE '*a%'`,
      `T.name = 'a5'`,
      `T.name < 'b'`,
      `regexp_like(T.s, '^[0-9]+$')`,
      'T.id IN (SELECT uid FROM u)',
    ),
    fc.tuple(tie('condition'), fc.constantFrom('AND', 'OR'), tie('condition')).map(([a, op, b]) => `(${a} ${op} ${b})`),
    tie('condition').map((a) => `NOT (${a})`),
  ),
})).condition

const on = (alias: string, text: string): string => text.replaceAll('T.', `${alias}.`)

const statement = fc.oneof(
  fc.tuple(number, condition).map(([e, c]) => `SELECT T.id, T.name, ${e} FROM TABLE T WHERE ${c}`),
  fc.tuple(number, condition).map(([e, c]) => `SELECT count(*), sum(${e}), max(T.name) FROM TABLE T WHERE ${c}`),
  fc
    .tuple(number, number, condition)
    .map(([e, f, c]) => `SELECT ${f}, count(${e}) FILTER (WHERE ${c}) FROM TABLE T GROUP BY 1 HAVING count(*) > 1`),
  fc
    .tuple(number, condition)
    .map(
      ([e, c]) => `SELECT x, name FROM (SELECT ${e} AS x, T.name FROM TABLE T) WHERE x > 0 AND name <> '${c.length}'`,
    ),
  fc
    .tuple(condition, condition)
    .map(
      ([c, d]) => `SELECT a.id, b.name FROM TABLE a JOIN TABLE b ON a.id = b.id AND ${on('a', c)} AND ${on('b', d)}`,
    ),
  fc
    .tuple(condition, condition)
    .map(
      ([c, d]) =>
        `SELECT u.uid, b.name FROM u LEFT JOIN TABLE b ON u.uid = b.id AND ${on('b', c)} WHERE ${on('b', d)} OR b.id IS NULL`,
    ),
  fc
    .tuple(number, condition)
    .map(
      ([e, c]) =>
        `SELECT uid FROM u WHERE EXISTS (SELECT 1 FROM TABLE T WHERE T.id = uid AND ${c}) AND uid < (SELECT max(${e}) FROM TABLE T)`,
    ),
  fc
    .tuple(number, condition)
    .map(([e, c]) => `SELECT T.id, row_number() OVER (ORDER BY ${e}, T.id) FROM TABLE T WHERE ${c}`),
  fc.tuple(number, condition).map(([e, c]) => `SELECT T.id FROM TABLE T WHERE ${c} ORDER BY ${e}, T.id LIMIT 5`),
  fc
    .tuple(condition, condition)
    .map(([c, d]) => `SELECT T.id FROM TABLE T WHERE ${c} UNION ALL SELECT T.id FROM TABLE T WHERE ${d}`),
  fc
    .tuple(number, condition)
    .map(([e, c]) => `WITH q AS (SELECT *, ${e} AS e FROM TABLE T) SELECT q.id, q.e FROM q WHERE ${on('q', c)}`),
  condition.map((c) => `SELECT T.id, k FROM TABLE T CROSS JOIN UNNEST(T.l) x(k) WHERE ${c}`),
  // DuckDB materialises a common table that is read twice, and pushes common conditions into it.
  fc
    .tuple(number, condition)
    .map(
      ([e, c]) =>
        `WITH q AS (SELECT T.id, ${e} AS e FROM TABLE T WHERE ${c}) SELECT q.id, r.e FROM q JOIN q r ON q.id = r.id + 5 WHERE q.e > 1 AND r.e > 1`,
    ),
  fc
    .tuple(number, number, condition)
    .map(
      ([e, f, c]) =>
        `SELECT T.id, x.v FROM TABLE T CROSS JOIN LATERAL (SELECT max(${e} + uid) AS v FROM u WHERE uid < ${f}) x WHERE ${c}`,
    ),
  fc
    .tuple(number, condition)
    .map(
      ([e, c]) =>
        `SELECT T.id, (SELECT max(uid) FROM u WHERE uid <= ${e}) FROM TABLE T WHERE CASE WHEN ${c} THEN ${e} END IN (1, 2, 3, 4, 5, 6)`,
    ),
  fc
    .tuple(number, condition)
    .map(
      ([e, c]) =>
        `SELECT uid FROM u WHERE uid IN (SELECT ${e} FROM TABLE T WHERE ${c}) AND uid NOT IN (SELECT T.id FROM TABLE T WHERE T.d = 2)`,
    ),
  fc
    .tuple(number, number)
    .map(
      ([e, f]) =>
        `SELECT ${e} FROM TABLE T INTERSECT SELECT ${f} FROM TABLE T EXCEPT SELECT T.d FROM TABLE T WHERE T.name > 'c'`,
    ),
  fc
    .tuple(number, condition)
    .map(
      ([e, c]) =>
        `SELECT T.d, sum(${e}) FILTER (WHERE ${c}), max(T.name) FROM TABLE T GROUP BY GROUPING SETS ((T.d), ()) HAVING count(*) > 2`,
    ),
  fc
    .tuple(number, condition)
    .map(
      ([e, c]) =>
        `SELECT id, s FROM (SELECT T.id, sum(${e}) OVER (PARTITION BY T.d ORDER BY T.id ROWS 2 PRECEDING) AS s, T.d FROM TABLE T WHERE ${c}) WHERE d = 1`,
    ),
)

interface Drawn {
  readonly relation: RelationName
  /** The rules of ana and of the view's owner, as indexes into `POLICIES`. */
  readonly readerPolicy: number
  readonly ownerPolicy: number
  readonly text: string
}

const policy = fc.nat({ max: POLICIES.length - 1 })
const drawn: fc.Arbitrary<Drawn> = fc.record({
  relation: fc.constantFrom(...relations),
  readerPolicy: policy,
  ownerPolicy: policy,
  text: statement,
})

/** The columns of the table that a statement names. A query with `*` reads all of them. */
function namedIn(text: string): readonly string[] {
  return text.includes('*,') ? COLUMNS : COLUMNS.filter((name) => new RegExp(`\\b[Tabq]\\.${name}\\b`).test(text))
}

const DENIED = 'PERMISSION_DENIED'
const WRONG: ReadonlySet<string> = new Set(['INVALID_COLUMN_REFERENCE'])

describe('Tables and views under row filters, column masks and forbidden columns', { timeout: 900_000 }, () => {
  let runner: TableRunner
  beforeAll(async () => {
    runner = await openTableRunner()
    await runner.createTable('t', ROWS)
    await runner.createTable('u', 'SELECT id AS uid FROM t WHERE id % 3 <> 0')
    for (const [i, inner] of POLICIES.entries()) {
      await runner.createTable(`seen_${i}`, applied(inner, 't'))
      for (const [j, outer] of POLICIES.entries())
        await runner.createTable(`seen_${i}_${j}`, applied(outer, `seen_${i}`))
    }
    const all = `SELECT ${COLUMNS.join(', ')} FROM t`
    await runner.createView('invoked', all, { runAsInvoker: true, owner: 'olga' })
    await runner.createView('owned', all, { owner: 'olga' })
    await runner.createView('both', 'SELECT * FROM owned', { runAsInvoker: true, owner: 'olga' })
    await runner.createTable('w', 'SELECT id, d FROM t WHERE false')
  })
  afterAll(() => runner.close())

  function ana({
    relation,
    readerPolicy,
    ownerPolicy,
  }: Pick<Drawn, 'relation' | 'readerPolicy' | 'ownerPolicy'>): Partial<SessionContext> {
    const rules = {
      tables: [
        ruleOf('ana', relation === 't' || relation === 'invoked' ? 't' : 'owned', POLICIES[readerPolicy]!),
        ruleOf('olga', 't', POLICIES[ownerPolicy]!),
        { privileges: ['SELECT', 'GRANT_SELECT'] },
      ],
    }
    return { user: 'ana', rightsOf: rightsUnder(rules) }
  }

  /** The name of the prepared table that ana must see, or undefined if ana may not read the columns. */
  function model({ relation, readerPolicy, ownerPolicy, text }: Drawn): string | undefined {
    const own = relation === 't' || relation === 'invoked'
    // A view reads all columns of the relation below it.
    const asked = relation === 't' || relation === 'owned' ? namedIn(text) : COLUMNS
    if (asked.some((name) => POLICIES[readerPolicy]!.hidden.includes(name))) return undefined
    if (own) return `seen_${readerPolicy}`
    return POLICIES[ownerPolicy]!.hidden.length > 0 ? undefined : `seen_${ownerPolicy}_${readerPolicy}`
  }

  async function answer(sql: string, as?: Partial<SessionContext>): Promise<string> {
    return reported(await runner.outcome(sql, as))
  }

  const under = ({ text, relation }: Drawn): string => text.replaceAll('TABLE ', `${relation} `)

  it('give the same answers as a table with only what the rules leave', async () => {
    await fc.assert(
      fc.asyncProperty(drawn, async (one) => {
        const seen = model(one)
        const plain = await answer(one.text.replaceAll('TABLE ', `${seen ?? 'seen_0'} `))
        // An error in the statement comes before the check of rights.
        const expected = seen === undefined && !WRONG.has(plain) ? DENIED : plain
        expect(await answer(under(one), ana(one)), under(one)).toBe(expected)
      }),
      { numRuns, seed: 7 },
    )
  })

  it('accept inserted rows only if all of them pass the filter', async () => {
    const filters = ['d < 3', 'id + d <> 17 AND d IS NOT NULL', 'd IN (SELECT uid FROM u)', '6 / (d + 1) > 0'] as const
    const written = fc.record({ one: drawn, filter: fc.constantFrom(...filters), value: number, where: condition })
    await fc.assert(
      fc.asyncProperty(written, async ({ one, filter, value, where }) => {
        const text = `SELECT T.id, CAST(${value} AS bigint) FROM TABLE T WHERE ${where}`
        const seen = model({ ...one, text })
        const plain = seen === undefined ? DENIED : await runner.outcome(text.replaceAll('TABLE ', `${seen} `))
        const as = ana(one)
        const rules = { tables: [{ user: 'ana', table: 'w', privileges: ['INSERT', 'SELECT'], filter }] }
        const target = rightsUnder(rules)('ana')
        const rightsOf = (user: string) => {
          const rights = as.rightsOf!(user)
          const table: typeof rights.table = (...name) =>
            (user === 'ana' && name[2] === 'w' ? target : rights).table(...name)
          return { ...rights, table }
        }
        const sql = `INSERT INTO w ${under({ ...one, text })}`
        const outcome = reported(await runner.written(sql, { ...as, rightsOf }))
        // Either of two errors may come first.
        if (!Array.isArray(plain)) {
          expect([reported(plain), DENIED, 'DIVISION_BY_ZERO'], sql).toContain(outcome)
          return
        }
        const passing = plain.length === 0 ? [] : await passed(plain as [number, number | null][], filter)
        expect(outcome, `${sql}; ${filter}`).toBe(
          passing === 'DIVISION_BY_ZERO' ? passing : passing.length === plain.length ? reported(plain) : DENIED,
        )
      }),
      { numRuns: Math.ceil(numRuns / 2), seed: 11 },
    )
  })

  /** Returns the rows for which a filter holds, tested over a list of values. */
  async function passed(rows: readonly [number, number | null][], filter: string): Promise<unknown[] | string> {
    const values = rows.map(([id, d]) => `(BIGINT '${id}', CAST(${d === null ? 'NULL' : `'${d}'`} AS bigint))`)
    const outcome = await runner.outcome(`SELECT id FROM (VALUES ${values.join(', ')}) v(id, d) WHERE ${filter}`)
    return Array.isArray(outcome) ? outcome : reported(outcome)
  }
})

/** Returns the rows as sorted text, or the name of the error. */
function reported(outcome: unknown): string {
  if (!Array.isArray(outcome)) return String(outcome).split(':')[0]!
  return outcome
    .map((row) => JSON.stringify(row))
    .sort()
    .join('\n')
}
