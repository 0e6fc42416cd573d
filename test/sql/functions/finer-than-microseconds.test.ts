import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { functionFamilies, nameOf } from '../../../src/sql/functions/function-table.ts'
import { parseSignature, type TypePattern } from '../../../src/sql/functions/signature.ts'
import { openLibraryRunner, type LibraryRunner } from '../../support/library-runner.ts'

const columns: Readonly<Record<string, string>> = {
  time: `TIME '12:34:56.123456789'`,
  'time with time zone': `TIME '12:34:56.1234567+08:35'`,
  timestamp: `TIMESTAMP '2020-02-03 12:34:56.1234567'`,
  'timestamp with time zone': `TIMESTAMP '2020-02-03 12:34:56.123456789 Asia/Tokyo'`,
}
const nameOfColumn = (kind: string): string => kind.replaceAll(' ', '_')
const from = `FROM (SELECT ${Object.entries(columns)
  .map(([kind, literal]) => `if(nationkey < 1, ${literal}) AS ${nameOfColumn(kind)}`)
  .join(', ')} FROM tpch.tiny.nation WHERE nationkey < 2)`

/** Returns an argument for a parameter, with `variable` for any type, or undefined if this test has none. */
function argument(pattern: TypePattern, variable: string): string | undefined {
  switch (pattern.kind) {
    case 'variable':
    case 'any':
      return variable
    case 'array': {
      const item = argument(pattern.element, variable)
      return item && `array[${item}]`
    }
    case 'map': {
      const [key, value] = [argument(pattern.key, variable), argument(pattern.value, variable)]
      return key && value && `map(array[coalesce(${key}, ${key})], array[${value}])`
    }
    case 'sized':
      if (pattern.base in columns) return nameOfColumn(pattern.base)
      return pattern.base === 'varchar' ? `'second'` : undefined
    case 'plain':
      return {
        bigint: `bigint '1'`,
        integer: '1',
        double: '1e0',
        varchar: `'second'`,
        boolean: 'true',
        'interval day to second': `interval '1' day`,
        'interval year to month': `interval '1' month`,
      }[pattern.type.kind as string]
    default:
      return undefined
  }
}

const calls = Object.values(functionFamilies())
  .flat()
  .filter(({ hidden, kind }) => !hidden && kind !== 'window')
  .flatMap((definition) => {
    const { parameters } = parseSignature(definition.signature)
    const generic = /\b(?:T|E|K|V|any)\b/.test(definition.signature)
    if (!generic && !/\(p\)/.test(definition.signature)) return []
    return (generic ? Object.keys(columns) : ['time']).flatMap((kind) => {
      const args = parameters.map((pattern) => argument(pattern, nameOfColumn(kind)))
      return args.includes(undefined) ? [] : [`${nameOf(definition)}(${args.join(', ')})`]
    })
  })

const kinds = Object.keys(columns).map(nameOfColumn)
const operations = [
  ...kinds.flatMap((a) => kinds.flatMap((b) => [`${a} - ${b}`, `${a} = ${b}`, `${a} IS DISTINCT FROM ${b}`])),
  ...kinds.flatMap((a) =>
    [`interval '1' day`, `interval '1' month`, 'cast(null as interval day to second)'].flatMap((b) => [
      `${a} + ${b}`,
      `${a} - ${b}`,
    ]),
  ),
  ...kinds.flatMap((a) => [
    ...kinds.flatMap((b) =>
      [6, 9].map((p) => `CAST(${a} AS ${b.replace(/^(\w+?)(_|$)/, `$1(${p}) `).replaceAll('_', ' ')})`),
    ),
    `CAST(${a} AS varchar)`,
    `CAST(${a} AS date)`,
    `CAST(${a} AS json)`,
    `${a} AT TIME ZONE 'Asia/Kathmandu'`,
    `extract(second FROM ${a})`,
    `format('%s', ${a})`,
    `typeof(${a})`,
  ]),
]

/**
 * These values have a special representation. Functions that do not support it must refuse it by name, so that the
 * engine never gets it.
 */
describe('Times with fractions finer than microseconds', { timeout: 900_000 }, () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  it.each([
    ['functions', [...new Set(calls)]],
    ['operators and casts', operations],
  ])("get a value in %s, or an error with Trino's name", async (_what, expressions) => {
    expect(expressions.length).toBeGreaterThan(60)
    const faults: string[] = []
    for (const expression of expressions) {
      try {
        const { rows } = await runner.run(`SELECT ${expression}, (${expression}) IS NULL ${from}`)
        // The second row is NULL for each of these expressions.
        if (/^(?:CAST\(\w+ AS|\w+ [-+] )/.test(expression) && (rows[1]?.[0] !== null || rows[1]?.[1] !== true)) {
          faults.push(`${expression}: ${JSON.stringify(rows)}`)
        }
      } catch (error) {
        if (!(error instanceof EngineError) || error.errorName === 'GENERIC_INTERNAL_ERROR') {
          faults.push(
            `${expression}: ${String(error)} ${String(error instanceof Error ? error.cause : '').slice(0, 200)}`,
          )
        }
      }
    }
    expect(faults).toEqual([])
  })
})
