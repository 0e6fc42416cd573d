import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import type { ArgumentType } from '../../../src/sql/functions/bind-signature.ts'
import { renderCast, renderInsertCast, renderTryCast } from '../../../src/sql/functions/casts.ts'
import { sortItems } from '../../../src/sql/functions/comparison.ts'
import { functionFamilies } from '../../../src/sql/functions/function-table.ts'
import {
  renderBetween,
  renderComparison,
  renderIn,
  resolveArithmetic,
  resolveNegation,
  resolveSubscript,
} from '../../../src/sql/functions/operators.ts'
import type { CallClauses, Names, RenderArgument } from '../../../src/sql/functions/rendering.ts'
import { resolveDefinition, type ResolvedFunction } from '../../../src/sql/functions/resolve-function.ts'
import { parseSignature, type TypePattern } from '../../../src/sql/functions/signature.ts'
import { joined, literal, plainName, sql, tokensOfSql, toText, type Sql } from '../../../src/duckdb/text/sql.ts'
import { canCast } from '../../../src/sql/types/coercion.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import type { SqlType } from '../../../src/sql/types/sql-type.ts'
import { hostileTexts } from '../../support/hostile-texts.ts'
import { typeOf } from '../../support/sql-samples.ts'
import { leaks, marked, plainLike, swapped } from '../../support/swapped-texts.ts'

// A literal never changes the SQL around it: the rendering of a hostile text is the rendering of a plain text with
// the text replaced. A literal with NUL becomes an expression, so it has tests of its own.

const texts = hostileTexts.filter((text) => !text.includes('\0'))
/** The texts for tests of all pairs of types. */
const fewTexts = ['$F$E$D$O$N$R$1$T1 $F(', `it's ''x'' -- /* ; $$ @x@z@o "`, 'q_x(1) CASE t_a( CASE', '𝒜 ']
const anyText = fc.string({ unit: 'binary' }).filter((text) => !text.includes('\0'))
const seed = 14

const session = { timeZone: 'America/New_York', startTimeMillis: Date.UTC(2024, 5, 1), user: 'somebody', groups: [] }

function freshNames(): Names {
  let count = 0
  return { fresh: () => plainName(`v${count++}`) }
}

/** Returns the rendered SQL, or undefined if it is refused with one of Trino's errors. */
function outcome(render: () => Sql): string | undefined {
  try {
    return checked(render())
  } catch (error) {
    if (error instanceof EngineError) return undefined
    throw error
  }
}

/** Checks that each leaf is a whole token: no literal, name or number stands inside quotes of the code. */
function checked(piece: Sql): string {
  for (const token of tokensOfSql(piece)) {
    if (token.kind === 'code' && token.text.split("'").length % 2 === 0) throw new Error(`Open quote: ${token.text}`)
  }
  return toText(piece)
}

function expectSwapped(text: string, render: (text: string) => Sql): void {
  const [hostile, plain] = [marked(text), marked(plainLike(text))]
  const expected = outcome(() => render(plain))
  const actual = outcome(() => render(hostile))
  // Calls `expect` only for differences, because an assertion for each of a million texts takes minutes.
  if (actual === (expected && swapped(expected, plain, hostile))) return
  expect(actual).toBe(expected && swapped(expected, plain, hostile))
}

/** Operands with a text: the literal itself, or an expression that is named before it is repeated. */
const operands: readonly ((text: string) => Sql)[] = [
  literal,
  (text) => sql`q_some(q_other(${literal(text)}, 'x'), CASE WHEN ${literal(text)} THEN 1 END)`,
]

const clauseSets: readonly ((text: string) => CallClauses)[] = [
  () => ({}),
  () => ({ distinct: true }),
  (text) => ({ orderBy: sql`${literal(text)} ASC NULLS LAST` }),
  (text) => ({ filter: sql`(x1 = ${literal(text)})` }),
  (text) => ({ over: sql`PARTITION BY ${literal(text)} ORDER BY x1` }),
  () => ({ over: sql`ORDER BY x1`, ignoreNulls: true }),
  (text) => ({
    distinct: true,
    orderBy: sql`${literal(text)} DESC`,
    filter: sql`(x1 <> ${literal(text)})`,
    over: sql`PARTITION BY ${literal(text)}`,
    ignoreNulls: true,
  }),
]

const variables = [
  'bigint',
  'varchar',
  'double',
  'timestamp(3) with time zone',
  'timestamp(9)',
  'time(3) with time zone',
  'array(double)',
  'map(varchar,timestamp(3) with time zone)',
  'row(bigint,timestamp(3) with time zone)',
]

interface Overload {
  readonly text: string
  readonly isScalar: boolean
  /** One call for each type that a type variable may stand for. */
  readonly calls: readonly { readonly resolved: ResolvedFunction; readonly parameters: readonly TypePattern[] }[]
}

const overloads: readonly Overload[] = Object.values(functionFamilies())
  .flat()
  .map((definition) => {
    const { parameters, variables: bound } = parseSignature(definition.signature)
    const calls = (bound.length === 0 ? ['bigint'] : variables).flatMap((variable) => {
      const type = parseTypeText(variable)
      const args = parameters.map((pattern): ArgumentType => {
        if (pattern.kind !== 'function') return { kind: 'value', type: typeOf(pattern, type) }
        const { result, parameters: given } = pattern
        return { kind: 'lambda', parameterCount: given.length, bodyType: () => typeOf(result, type) }
      })
      const resolved = resolveDefinition(definition, args)
      return resolved === undefined ? [] : [{ resolved, parameters }]
    })
    return { text: definition.signature, isScalar: definition.kind === 'scalar', calls }
  })

type Argument = (text: string, index: number) => RenderArgument

function renderCall(
  { resolved, parameters }: Overload['calls'][number],
  text: string,
  argument: Argument,
  clauses: (text: string) => CallClauses,
): Sql {
  const args = parameters.map((pattern, i): RenderArgument =>
    pattern.kind === 'function'
      ? { kind: 'lambda', apply: (...names) => sql`body(${joined([...names, literal(text)], ', ')})` }
      : argument(text, i),
  )
  return resolved.render({ args, session, names: freshNames(), clauses: clauses(text) })
}

describe('Every overload', () => {
  it('has at least one call in this test', () => {
    expect(overloads.filter(({ calls }) => calls.length === 0).map(({ text }) => text)).toEqual([])
  })

  it.each(overloads)('$text: a literal changes only its own place in the SQL', ({ calls, isScalar }) => {
    const clauses = isScalar ? clauseSets.slice(0, 1) : clauseSets
    const check = (text: string, call: Overload['calls'][number]): void => {
      for (const clause of clauses) {
        for (const operand of operands) {
          const argument: Argument = (given) => ({ kind: 'value', sql: operand(given) })
          expectSwapped(text, (given) => renderCall(call, given, argument, clause))
        }
      }
    }
    for (const text of texts) check(text, calls[0]!)
    for (const call of calls) check('$E$F$1 $R $T1 $D$O$N @x @z @o', call)
    fc.assert(
      fc.property(anyText, fc.constantFrom(...calls), (text, call) => check(text, call)),
      { seed, numRuns: 5 },
    )
  })

  it.each(overloads)('$text: a literal that decides about the rendering stays data', ({ calls, isScalar }) => {
    const clauses = isScalar ? clauseSets.slice(0, 1) : clauseSets
    const check = (text: string, call: Overload['calls'][number]): void => {
      const hostile = marked(text)
      const argument: Argument = (given) => ({ kind: 'value', sql: literal(given), constant: given })
      for (const clause of clauses) {
        const rendered = outcome(() => renderCall(call, hostile, argument, clause))
        if (rendered !== undefined && leaks(rendered)) expect(rendered).toBe('SQL with the text as data')
      }
    }
    for (const text of hostileTexts) check(text, calls[0]!)
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.constantFrom(...calls), (text, call) => check(text, call)),
      { seed, numRuns: 5 },
    )
  })
})

const types = [
  ...new Set([
    ...readFileSync(new URL('../types/coercions.tsv', import.meta.url), 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .flatMap((line) => line.split('\t').slice(0, 2)),
    'map(varchar,row(x double))',
    'map(timestamp(3) with time zone,time(9))',
    'array(array(char(3)))',
  ]),
].map((text) => ({ text, type: parseTypeText(text) }))

describe('Every type', () => {
  it.each(types)('$text: a literal changes only its own place in casts', ({ type }) => {
    for (const { type: to } of types.filter((each) => canCast(type, each.type))) {
      for (const cast of [renderCast, renderTryCast, renderInsertCast]) {
        for (const operand of operands) {
          for (const text of fewTexts) {
            expectSwapped(text, (given) => cast(operand(given), type, to, { names: freshNames(), session }))
          }
        }
      }
    }
  })

  it.each(types)('$text: the name of a row field stays data in casts', ({ type }) => {
    for (const name of hostileTexts.map(marked)) {
      const row: SqlType = { kind: 'row', fields: [{ name, type }] }
      for (const { type: to } of [...types, { type: row }]) {
        for (const [from, target] of [
          [row, to],
          [to, row],
        ] as const) {
          if (!canCast(from, target)) continue
          const rendered = outcome(() => renderCast(sql`x1`, from, target, { names: freshNames(), session }))
          if (rendered !== undefined && leaks(rendered)) expect(rendered).toBe('SQL with the name as data')
        }
      }
    }
  })

  it.each(types)('$text: a literal changes only its own place in operators', ({ type }) => {
    const render: ((x: Sql, names: Names) => Sql | readonly Sql[])[] = [
      ...(['=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM'] as const).map(
        (operator) => (x: Sql, names: Names) => renderComparison(operator, type, x, x, names),
      ),
      (x, names) => renderIn(type, x, [x, x], names),
      (x, names) => renderBetween(type, x, x, x, names),
      (x, names) => sortItems(type, x, true, true, names),
      (x) => resolveNegation(type).render(x),
      (x, names) => resolveSubscript(type, parseTypeText('bigint')).render(x, x, { names, session }),
      ...types.flatMap(({ type: other }) =>
        (['+', '-', '*', '/', '%'] as const).map(
          (operator) => (x: Sql, names: Names) =>
            resolveArithmetic(operator, type, other).render(x, x, { names, session }),
        ),
      ),
    ]
    for (const each of render) {
      for (const operand of operands) {
        for (const text of fewTexts) {
          expectSwapped(text, (given) => {
            const made = each(operand(given), freshNames())
            return Array.isArray(made) ? joined(made as readonly Sql[], ', ') : (made as Sql)
          })
        }
      }
    }
  })
})
