import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import type { ArgumentType } from '../../../src/sql/functions/bind-signature.ts'
import { functionFamilies, nameOf } from '../../../src/sql/functions/function-table.ts'
import type { RenderArgument } from '../../../src/sql/functions/rendering.ts'
import { resolveDefinition } from '../../../src/sql/functions/resolve-function.ts'
import { translateError } from '../../../src/sql/functions/runtime-errors.ts'
import { parseSignature, type TypePattern } from '../../../src/sql/functions/signature.ts'
import { codeOfModule, literal, plainName, sql as code, toText } from '../../../src/duckdb/text/sql.ts'
import { duckdbTypeText, typedNull } from '../../../src/sql/types/duckdb-representation.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import type { SqlType } from '../../../src/sql/types/sql-type.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { typeOf as usualTypeOf } from '../../support/sql-samples.ts'

/** A value of each plain type, in its representation in DuckDB. */
const samples: Readonly<Record<string, string>> = {
  boolean: 'true',
  tinyint: 'CAST(3 AS TINYINT)',
  smallint: 'CAST(3 AS SMALLINT)',
  integer: 'CAST(3 AS INTEGER)',
  bigint: 'CAST(3 AS BIGINT)',
  real: 'CAST(0.5 AS FLOAT)',
  double: 'CAST(0.5 AS DOUBLE)',
  'decimal(9,2)': 'CAST(1.25 AS DECIMAL(9,2))',
  varchar: `'abc'`,
  'varchar(3)': `'abc'`,
  'varchar(1)': `'a'`,
  'varchar(2)': `'en'`,
  'char(4)': `'ab  '`,
  varbinary: `encode('abcd')`,
  json: `'[1,2]'`,
  date: `DATE '2024-02-29'`,
  'time(3)': `TIME '10:20:30.5'`,
  'timestamp(3)': `TIMESTAMP '2024-02-29 10:20:30.5'`,
  'time(3) with time zone': `{'t': TIME '10:20:30.5', 'o': 60}`,
  'timestamp(3) with time zone': `{'t': TIMESTAMP '2024-02-29 10:20:30.5', 'z': 'Europe/Paris'}`,
  'interval day to second': 'CAST(86400000 AS BIGINT)',
  'interval year to month': 'CAST(3 AS INTEGER)',
  uuid: `CAST('12151fd2-7586-11e9-8f9e-2a86e4085a59' AS UUID)`,
  ipaddress: `u_ip_parse('10.0.0.1')`,
  HyperLogLog: `{'b': CAST(12 AS INTEGER), 'd': false, 'c': CAST([1] AS INTEGER[])}`,
  SetDigest: 'CAST(MAP {1: 1} AS MAP(INTEGER, BIGINT))',
  tdigest: `[{'v': CAST(1 AS DOUBLE), 'w': CAST(1 AS DOUBLE)}]`,
  color: 'CAST(255 AS INTEGER)',
  JsonPath: `'$[0]'`,
  JoniRegExp: `'b(c)'`,
  CodePoints: `'a'`,
}

const typeOf = (pattern: TypePattern, variable = parseTypeText('bigint')): SqlType =>
  usualTypeOf(pattern, variable, { varchar: 3, char: 4 })

function sample(type: SqlType): string {
  switch (type.kind) {
    case 'array':
      return `[${sample(type.element)}]`
    case 'map':
      return `MAP {${sample(type.key)}: ${sample(type.value)}}`
    case 'row':
      return `{${type.fields.map((field, i) => `'f${i}': ${sample(field.type)}`).join(', ')}}`
    case 'qdigest':
      return `[{'v': ${sample(type.element)}, 'w': CAST(1 AS DOUBLE)}]`
    case 'decimal':
      return samples['decimal(9,2)']!
    case 'varchar':
      return samples[type.length === undefined ? 'varchar' : `varchar(${type.length})`]!
    case 'char':
      return samples['char(4)']!
    case 'time':
    case 'timestamp':
      return samples[`${type.kind}(3)`]!
    case 'time with time zone':
    case 'timestamp with time zone':
      return samples[type.kind.replace(' ', '(3) ')]!
    default: {
      const found = samples[type.kind]
      if (found === undefined) throw new Error(`No sample of ${type.kind}`)
      return found
    }
  }
}

const session = { timeZone: 'America/New_York', startTimeMillis: Date.UTC(2024, 5, 1), user: 'somebody', groups: [] }
const names = { count: 0, fresh: () => plainName(`v${names.count++}`) }
const definitions = Object.values(functionFamilies())
  .flat()
  .map((definition) => ({ definition, text: definition.signature }))

/** Types with a special representation or comparison. */
const variables = [
  'bigint',
  'varchar',
  'char(4)',
  'double',
  'decimal(9,2)',
  'timestamp(3) with time zone',
  'time(3) with time zone',
  'array(double)',
  'array(timestamp(3) with time zone)',
  'map(varchar,double)',
  'row(bigint,timestamp(3) with time zone)',
  'ipaddress',
]

const calls = definitions.flatMap(({ definition, text }) => {
  const signature = parseSignature(definition.signature)
  return (signature.variables.length === 0 ? ['bigint'] : variables).flatMap((variable) => {
    const type = parseTypeText(variable)
    const args = signature.parameters.map((pattern): ArgumentType => {
      if (pattern.kind !== 'function') return { kind: 'value', type: typeOf(pattern, type) }
      const { result, parameters } = pattern
      return { kind: 'lambda', parameterCount: parameters.length, bodyType: () => typeOf(result, type) }
    })
    const resolved = resolveDefinition(definition, args)
    // Not every type is orderable or has a text.
    return resolved === undefined && variable !== 'bigint'
      ? []
      : [{ definition, text, variable, type, parameters: signature.parameters, resolved }]
  })
})

describe('Every rendering of the function table', () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
    await duckdb.connection.run('CREATE MACRO q_same(x) AS x')
  })
  afterAll(() => duckdb.close())

  /** Trino's errors are valid answers. Any other error means that the rendering does not run. */
  const causeOf = (error: unknown, text: string): string | undefined =>
    translateError(error instanceof Error ? error.message : String(error)).cause === undefined
      ? undefined
      : `${String(error)}\n${text}`

  it.each(calls)(
    '$text with $variable is SQL that DuckDB runs, and has the declared type',
    async ({ definition, type: variable, parameters, resolved }) => {
      expect(resolved).toBeDefined()
      const columns: string[] = []
      const args = parameters.map((pattern, i): RenderArgument => {
        if (pattern.kind === 'function') {
          const body = sample(typeOf(pattern.result, variable))
          return { kind: 'lambda', apply: () => codeOfModule(body) }
        }
        const type = resolved!.argumentTypes[i]!
        const constant = constantOf(nameOf(definition), i, type)
        if (constant !== undefined) return { kind: 'value', sql: codeOfModule(constant) }
        columns.push(`${sample(type)} AS c${i}`)
        return { kind: 'value', sql: plainName(`c${i}`) }
      })
      const clauses = definition.kind === 'window' ? { over: code`ORDER BY one` } : {}
      const called = args.map((arg, i): RenderArgument =>
        arg.kind === 'value' && columns.some((column) => column.endsWith(` AS c${i}`))
          ? { kind: 'value', sql: codeOfModule(`q_same(c${i})`) }
          : arg,
      )
      let sql: string
      let ofCalls: string
      try {
        sql = toText(resolved!.render({ args, session, names, clauses }))
        ofCalls = toText(resolved!.render({ args: called, session, names, clauses }))
      } catch (error) {
        // A refusal with Trino's error name is a valid answer too.
        expect(error).toBeInstanceOf(EngineError)
        return
      }
      const from = `FROM (SELECT ${[...columns, '1 AS one'].join(', ')})`
      const wanted = duckdbTypeText(resolved!.resultType)
      const text = `SELECT typeof(x) FROM (SELECT ${sql} AS x ${from})`
      // Tests the call in a subquery over outer columns. DuckDB binds these columns twice, and has expanded macros by
      // then.
      if (definition.kind === 'scalar') {
        const within = `SELECT (SELECT ${ofCalls} FROM (SELECT 1 AS two) i WHERE two = one) ${from}`
        const failure = await duckdb.connection.run(within).then(
          () => undefined,
          (error: unknown) => causeOf(error, within),
        )
        expect(failure).toBeUndefined()
      }
      const failure = await duckdb.rows(text).then(
        ([row]) =>
          row?.[0] === undefined || sameType(String(row[0]), wanted)
            ? undefined
            : `type ${String(row[0])}, not ${wanted}`,
        (error: unknown) => causeOf(error, text),
      )
      expect(failure).toBeUndefined()
    },
  )
})

const scalars = definitions.filter(
  ({ definition }) =>
    definition.kind === 'scalar' &&
    !definition.calledOnNull &&
    !definition.signature.includes('function(') &&
    !definition.signature.includes('()'),
)

describe('Scalar functions', () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
  })
  afterAll(() => duckdb.close())

  it.each(scalars)('$text returns NULL for NULLs, as literals and as columns', async ({ definition }) => {
    const types = parseSignature(definition.signature).parameters.map((pattern): ArgumentType => ({
      kind: 'value',
      type: typeOf(pattern),
    }))
    const resolved = resolveDefinition(definition, types)!
    const nulls = resolved.argumentTypes.map(typedNull)
    const literals = nulls.map((sql): RenderArgument => ({ kind: 'value', sql, constant: null }))
    const columns = nulls.map((_, i): RenderArgument => ({ kind: 'value', sql: plainName(`c${i}`) }))
    const over = nulls.map((sql, i) => `${toText(sql)} AS c${i}`).join(', ')
    const isNull = (args: RenderArgument[]): string => `${toText(resolved.render({ args, session, names }))} IS NULL`
    const [row] = await duckdb.rows(`SELECT ${isNull(literals)}, ${isNull(columns)} FROM (SELECT ${over})`)
    expect(row).toEqual([true, true])
  })
})

/** Arguments that depend on each other, and arguments that must be literals for DuckDB. */
function constantOf(name: string, index: number, type: SqlType): string | undefined {
  if (/^date_(trunc|add|diff)$/.test(name) && index === 0) return `'hour'`
  if (
    /^(date_format|format_datetime|date_parse|parse_datetime|to_char|to_date|to_timestamp)$/.test(name) &&
    index === 1
  )
    return `'%Y'`
  if (name === 'listagg' && index === 1) return `', '`
  if (/timezone|from_unixtime/.test(name) && type.kind === 'varchar') return `'Asia/Tokyo'`
  return undefined
}

/** Compares types without DuckDB's quotes and extra blanks. */
function sameType(given: string, wanted: string): boolean {
  const plain = (text: string): string => text.replaceAll('"', '').replaceAll(/\s+/g, ' ').toUpperCase()
  return plain(given) === plain(wanted)
}

it('date_trunc of time(9) throws an error instead of cutting digits', () => {
  const definition = definitions.find(({ text }) => text === 'date_trunc(varchar(x), time(p))')!.definition
  const resolved = resolveDefinition(definition, [
    { kind: 'value', type: parseTypeText('varchar(3)') },
    { kind: 'value', type: parseTypeText('time(9)') },
  ])!
  const args: RenderArgument[] = [
    { kind: 'value', sql: literal('hour'), constant: 'hour' },
    { kind: 'value', sql: plainName('x') },
  ]
  expect(() => resolved.render({ args, session, names })).toThrow(EngineError)
})
