import { describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import type { CallExpr, Expr, LambdaArgumentExpr } from '../../../src/sql/analyzer/tree.ts'
import type { ArgumentType } from '../../../src/sql/functions/bind-signature.ts'
import { requireCast } from '../../../src/sql/functions/casts.ts'
import { macros } from '../../../src/duckdb/engine-setup.ts'
import { functionFamilies, nameOf } from '../../../src/sql/functions/function-table.ts'
import { resolveArithmetic, resolveComparison } from '../../../src/sql/functions/operators.ts'
import { resolveDefinition, resolveFunction } from '../../../src/sql/functions/resolve-function.ts'
import { parseSignature } from '../../../src/sql/functions/signature.ts'
import { costOfSql } from '../../../src/sql/renderer/macro-cost.ts'
import { renderExpr } from '../../../src/sql/renderer/render-expression.ts'
import { newRenderState, type RenderState } from '../../../src/sql/renderer/render-state.ts'
import { codeOfModule, plainName, sql, toText, type Sql } from '../../../src/duckdb/text/sql.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { BIGINT, BOOLEAN, type SqlType } from '../../../src/sql/types/sql-type.ts'
import { typeName } from '../../../src/sql/types/type-text.ts'
import { typeOf } from '../../support/sql-samples.ts'
import { openTableRunner } from '../../support/table-runner.ts'

// An argument like random() gives another value each time, so it must be calculated once. A rendering or a macro must
// not repeat it, and a lambda must not repeat it for each item of a list.

const newState = (): RenderState =>
  newRenderState({
    session: { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody', groups: [] },
    needed: new Set(),
    renderQuery: () => {
      throw new Error('There is no query')
    },
  })

const random = resolveFunction('random', [])

/** An expression with a changing value. Its piece is easy to find in the rendered SQL. */
function changing(type: SqlType, piece: Sql): Expr {
  return { kind: 'call', type, arguments: [], function: { ...random, resultType: type, render: () => piece } }
}

/** Lists the arguments of the expression that are calculated more than once. */
function repeatedIn(expr: Expr, pieces: readonly Sql[]): string[] {
  let rendered: Sql
  try {
    rendered = renderExpr(newState(), expr)
  } catch (error) {
    // This call needs literals, such as formats and units.
    if (error instanceof EngineError) return []
    throw error
  }
  const { uses, loops } = costOfSql(rendered, pieces)
  return pieces.flatMap((_, i) => (uses[i]! > 1 || loops[i]! ? [`argument ${i} in ${toText(rendered)}`] : []))
}

function castOf(value: Expr, type: SqlType, safe: boolean): Expr {
  requireCast(value.type, type)
  return { kind: 'cast', type, value, safe }
}

/** The names of macros as code, which cannot be made from text while statements run. */
const macroNames = new Map(
  macros.map((statement) => {
    const name = /MACRO (\w+)\(/.exec(statement)![1]!
    return [name, codeOfModule(name)] as const
  }),
)

const pieceOf = (i: number): Sql => plainName(`changing${i}`)

describe('The calculation of a changing argument', () => {
  const variables = [
    'bigint',
    'double',
    'varchar',
    'timestamp(3) with time zone',
    'array(double)',
    'map(varchar,bigint)',
  ]
  const overloads = Object.values(functionFamilies())
    .flat()
    .filter(({ kind }) => kind === 'scalar')

  it.each(overloads.map((each) => [each.signature, each] as const))('%s', (signature, definition) => {
    const { parameters, variables: own } = parseSignature(signature)
    const repeated = (own.length === 0 ? ['bigint'] : variables).flatMap((variable) => {
      const type = parseTypeText(variable)
      const given = parameters.map((pattern): ArgumentType => {
        if (pattern.kind !== 'function') return { kind: 'value', type: typeOf(pattern, type) }
        return {
          kind: 'lambda',
          parameterCount: pattern.parameters.length,
          bodyType: () => typeOf(pattern.result, type),
        }
      })
      const resolved = resolveDefinition(definition, given)
      if (resolved === undefined) return []
      const pieces: Sql[] = []
      const args = parameters.map((pattern, i): Expr => {
        if (pattern.kind !== 'function') {
          pieces.push(pieceOf(i))
          return changing(resolved.argumentTypes[i]!, pieces.at(-1)!)
        }
        const result = typeOf(pattern.result, type)
        const names = pattern.parameters.map((parameter, at): LambdaArgumentExpr => {
          return { kind: 'lambdaArgument', type: typeOf(parameter, type), id: 100 + 10 * i + at }
        })
        return {
          kind: 'lambda',
          type: result,
          parameters: names,
          body: { kind: 'constant', type: result, value: null },
        }
      })
      const call: CallExpr = { kind: 'call', type: resolved.resultType, function: resolved, arguments: args }
      return repeatedIn(call, pieces)
    })
    expect(repeated).toEqual([])
  })

  it.each([
    ['over groups', ''],
    ['over windows', ' OVER ()'],
  ])('happens once in aggregates %s', async (_, over) => {
    const runner = await openTableRunner()
    await runner.createTable('n', 'SELECT 1 AS id')
    const repeated: string[] = []
    const aggregates = Object.values(functionFamilies())
      .flat()
      // LISTAGG has a syntax of its own.
      .filter((each) => each.kind === 'aggregate' && each.hidden !== true && nameOf(each) !== 'listagg')
    for (const definition of aggregates) {
      const { parameters } = parseSignature(definition.signature)
      for (const variable of ['bigint', 'double', 'timestamp(3) with time zone', 'array(double)']) {
        const values = parameters.map((pattern, i) =>
          pattern.kind === 'function'
            ? `(${pattern.parameters.map((_parameter, at) => `p${at}`).join(', ')}) -> p0`
            : `if(random() < ${2 + i}e0, CAST(NULL AS ${typeName(typeOf(pattern, parseTypeText(variable)))}))`,
        )
        const expected = values.filter((value) => value.startsWith('if')).length
        let text: string
        try {
          text = await runner.rendered(`SELECT ${nameOf(definition)}(${values.join(', ')})${over} FROM n`)
        } catch (error) {
          if (error instanceof EngineError) continue
          throw error
        }
        const found = text.split('random()').length - 1
        if (found !== expected) repeated.push(`${definition.signature} of ${variable}: ${found} in ${text}`)
        // If a macro puts the result of a JavaScript function into a lambda, it is calculated for each item.
        for (const [call, macro] of text.matchAll(/(q_\w+)\(u_\w+/g)) {
          const piece = pieceOf(0)
          if (costOfSql(sql`${macroNames.get(macro!)!}(${piece})`, [piece]).loops[0])
            repeated.push(`${call} in ${text}`)
        }
      }
    }
    expect(repeated).toEqual([])
    runner.close()
  })

  const operands = ['bigint', 'integer', 'double', 'real', 'decimal(20,2)', 'decimal(38,10)', 'date', 'time(3)', 'char(5)', 'json', 'boolean', 'varbinary', 'time(3) with time zone', 'interval day to second', 'timestamp(9)', 'varchar', 'timestamp(3) with time zone', 'array(double)', 'row(bigint,double)', 'map(varchar,bigint)'] // prettier-ignore
  it.each(operands)('happens once in operators and predicates over %s', (name) => {
    const type = parseTypeText(name)
    const pieces = [0, 1, 2, 3].map(pieceOf)
    const [a, b, c, d] = pieces.map((piece) => changing(type, piece)) as [Expr, Expr, Expr, Expr]
    const found: string[] = []
    const check = (make: () => Expr): void => {
      try {
        found.push(...repeatedIn(make(), pieces))
      } catch (error) {
        if (!(error instanceof EngineError)) throw error
      }
    }
    for (const operator of ['=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM'] as const) {
      check(() => {
        resolveComparison(operator, type, type)
        return { kind: 'compare', type: BOOLEAN, operator, left: a, right: b }
      })
    }
    for (const operator of ['+', '-', '*', '/', '%'] as const) {
      check(() => {
        const resolved = resolveArithmetic(operator, type, type)
        return { kind: 'operator', name: operator, type: resolved.result, operator: resolved, left: a, right: b }
      })
    }
    check(() => ({ kind: 'between', type: BOOLEAN, value: a, min: b, max: c }))
    check(() => ({ kind: 'inList', type: BOOLEAN, value: a, values: [b, c, d] }))
    check(() => ({ kind: 'not', type: BOOLEAN, value: { kind: 'inList', type: BOOLEAN, value: a, values: [b, c] } }))
    check(() => ({ kind: 'coalesce', type, operands: [a, b, c] }))
    for (const to of [
      'varchar',
      'varchar(3)',
      'bigint',
      'double',
      'real',
      'decimal(5,1)',
      'json',
      'date',
      'timestamp(3)',
      'timestamp(9)',
      'timestamp(3) with time zone',
      'time(3)',
      'time(3) with time zone',
      'boolean',
      'tinyint',
      'char(4)',
      'varbinary',
      'uuid',
      'ipaddress',
      'array(varchar)',
      'map(varchar,varchar)',
      'row(varchar,varchar)',
    ]) {
      check(() => castOf(a, parseTypeText(to), false))
      check(() => castOf(a, parseTypeText(to), true))
    }
    expect(found).toEqual([])
  })

  it('happens once in AND and OR with later terms that may fail', () => {
    const pieces = [0, 1, 2].map(pieceOf)
    const division = resolveArithmetic('/', BIGINT, BIGINT)
    const one: Expr = { kind: 'constant', type: BIGINT, value: 1n }
    const failing: Expr = {
      kind: 'isNull',
      type: BOOLEAN,
      value: {
        kind: 'operator',
        name: '/',
        type: BIGINT,
        operator: division,
        left: one,
        right: changing(BIGINT, pieces[2]!),
      },
    }
    for (const kind of ['and', 'or'] as const) {
      const terms = [changing(BOOLEAN, pieces[0]!), changing(BOOLEAN, pieces[1]!), failing]
      expect(repeatedIn({ kind, type: BOOLEAN, terms }, pieces)).toEqual([])
    }
  })

  it('happens once when the engine runs the SQL', async () => {
    const runner = await openTableRunner()
    await runner.createTable(
      'n',
      'SELECT a * 1000 + b AS id FROM UNNEST(sequence(0, 3)) x(a), UNNEST(sequence(1, 1000)) y(b)',
    )
    const none = [
      'greatest(random(), 0.5e0) < 0.5e0',
      'least(random(), 0.5e0) > 0.5e0',
      'random(3) NOT IN (0, 1, 2)',
      '1e0 NOT BETWEEN random() AND 1e0',
      'nullif(random(2), 1) = 1',
      'CASE random(2) WHEN 0 THEN false WHEN 1 THEN false ELSE true END',
      'cardinality(array_distinct(repeat(random(), 5))) > 1',
    ]
    for (const condition of none) {
      expect(await runner.outcome(`SELECT count_if(${condition}) FROM n`)).toEqual([[0]])
      expect(await runner.outcome(`SELECT count(*) FROM n WHERE ${condition}`)).toEqual([[0]])
    }
    // A FILTER that changes, over an argument that may fail.
    expect(
      await runner.outcome(
        'SELECT count(*) FROM (SELECT count(10 / id) FILTER (WHERE random() < 5e-1) a, count_if(b) c FROM (SELECT id, random() < 5e-1 b FROM n)) WHERE a BETWEEN 1800 AND 2200',
      ),
    ).toEqual([[1]])
    const same =
      'UNNEST(transform_values(MAP(ARRAY[id], ARRAY[0e0]), (k, v) -> random()), ARRAY[1]) WITH ORDINALITY t(k, v, w, o)'
    const spread = 'UNNEST(map_from_entries(ARRAY[ROW(random(id), random(id))])) t(k, v)'
    expect(await runner.outcome(`SELECT count(*), count(o) FROM n CROSS JOIN ${same}`)).toEqual([[4000, 4000]])
    expect(await runner.outcome(`SELECT count_if(k = v) < 100 FROM n CROSS JOIN ${spread} WHERE id > 500`)).toEqual([
      [true],
    ])
    const keyed =
      'UNNEST(transform_values(MAP(ARRAY[random(id), random(id) + 10000], ARRAY[0, 0]), (k, v) -> k)) t(k, v)'
    expect(await runner.outcome(`SELECT count_if(k <> v) FROM n CROSS JOIN ${keyed}`)).toEqual([[0]])
    runner.close()
  })
})
