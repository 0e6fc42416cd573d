import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { macros } from '../../../src/duckdb/engine-setup.ts'
import type { FunctionDefinition } from '../../../src/sql/functions/function-definition.ts'
import { functionFamilies, nameOf } from '../../../src/sql/functions/function-table.ts'
import { resolveDefinition, resolveFunction } from '../../../src/sql/functions/resolve-function.ts'
import { parseSignature } from '../../../src/sql/functions/signature.ts'
import { plainName, toText } from '../../../src/duckdb/text/sql.ts'
import { typeText } from '../../../src/sql/types/type-text.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { typeOf } from '../../support/sql-samples.ts'

// The planner and the analysis take what they know of a function from its definition, and from no other list of
// names. These tests compare the definitions with their renderings.

const definitions = Object.values(functionFamilies()).flat()
const names = new Set(definitions.map(nameOf))
const session = { timeZone: 'America/New_York', startTimeMillis: Date.UTC(2024, 5, 1), user: 'somebody', groups: [] }

const bodies = new Map(
  macros.map((statement) => {
    const [, name, body] = /MACRO (\w+)\([^)]*\) AS (.*)$/s.exec(statement)!
    return [name!, body!]
  }),
)

/**
 * The JavaScript functions that a text calls, also through macros. Such a function may throw, as u_raise always does.
 */
function throwing(text: string, seen = new Set<string>()): string[] {
  return [...text.matchAll(/\b([qtu]_\w+)\(/g)].flatMap(([, called]) => {
    if (called!.startsWith('u_')) return [called!]
    if (seen.has(called!)) return []
    seen.add(called!)
    return throwing(bodies.get(called!)!, seen)
  })
}

/** The rendering of a call over arguments of its types. */
function renderedOver(definition: FunctionDefinition, variable: string): string | undefined {
  const { parameters } = parseSignature(definition.signature)
  if (parameters.some((pattern) => pattern.kind === 'function')) return undefined
  const types = parameters.map((pattern) => typeOf(pattern, parseTypeText(variable)))
  const resolved = resolveDefinition(
    definition,
    types.map((type) => ({ kind: 'value', type })),
  )
  if (resolved === undefined) return undefined
  let fresh = 0
  const text = toText(
    resolved.render({
      args: types.map((_, i) => ({ kind: 'value', sql: plainName(`x${i}`) })),
      session,
      names: { fresh: () => plainName(`v${fresh++}`) },
    }),
  )
  return `${types.map(typeText).join(', ')} -> ${typeText(resolved.resultType)}: ${text}`
}

function factsOf(definition: FunctionDefinition): string {
  const { risk, deterministic, calledOnNull, orderSensitive } = { risk: undefined, ...definition }
  return JSON.stringify({ risk, deterministic, calledOnNull, orderSensitive })
}

describe('The facts in the definition of a function', () => {
  it('say that a function never fails only if its rendering calls nothing that may throw', () => {
    const total = definitions.filter((definition) => definition.kind === 'scalar' && !definition.risk.mayRaise)
    const wrong = total.flatMap((definition) => {
      const { parameters } = parseSignature(definition.signature)
      return ['bigint', 'double', 'timestamp(3) with time zone', 'array(double)'].flatMap((variable) => {
        const types = parameters.map((pattern) => typeOf(pattern, parseTypeText(variable)))
        const resolved = resolveDefinition(
          definition,
          types.map((type) => ({ kind: 'value', type })),
        )
        if (resolved === undefined) return []
        let fresh = 0
        const text = toText(
          resolved.render({
            args: types.map((_, i) => ({ kind: 'value', sql: plainName(`x${i}`) })),
            session,
            names: { fresh: () => plainName(`v${fresh++}`) },
          }),
        )
        return throwing(text).map((called) => `${definition.signature} calls ${called}`)
      })
    })
    expect(total.length).toBeGreaterThan(30)
    expect([...new Set(wrong)]).toEqual([])
  })

  it('are the same for functions with the same rendering', () => {
    const alike = new Map<string, FunctionDefinition[]>()
    for (const definition of definitions.filter(({ kind }) => kind === 'scalar')) {
      const text = renderedOver(definition, 'bigint')
      // Two functions that return their argument are not aliases.
      if (text === undefined || text.endsWith(' x0')) continue
      alike.set(text, [...(alike.get(text) ?? []), definition])
    }
    const aliases = [...alike.values()].filter((list) => list.length > 1)
    const wrong = aliases.filter((list) => new Set(list.map(factsOf)).size > 1)
    expect(aliases.length).toBeGreaterThan(10)
    expect(wrong.map((list) => list.map(({ signature }) => signature))).toEqual([])
  })

  it('are part of a resolved call', () => {
    const bigint = { kind: 'value', type: { kind: 'bigint' } } as const
    expect(resolveFunction('abs', [bigint])).toMatchObject({ kind: 'scalar', risk: { mayRaise: false, grows: false } })
    expect(resolveFunction('mod', [bigint, bigint])).toMatchObject({ risk: { mayRaise: true, grows: false } })
    expect(resolveFunction('repeat', [bigint, bigint])).toMatchObject({ risk: { mayRaise: true, grows: true } })
    expect(resolveFunction('lag', [bigint])).toMatchObject({
      kind: 'window',
      clauses: { frame: false, nullTreatment: true, order: 'required' },
    })
    expect(resolveFunction('last_value', [bigint])).toMatchObject({
      clauses: { frame: true, nullTreatment: true, order: 'optional' },
    })
    expect(resolveFunction('rank', [])).toMatchObject({
      clauses: { frame: false, nullTreatment: false, order: 'optional' },
    })
  })
})

describe('Names of functions', () => {
  it('are listed nowhere outside the function table and the engine', () => {
    const root = new URL('../../../src/', import.meta.url).pathname
    const files = ['sql', 'planner'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
    )
    const lists = files
      .filter((file) => file.endsWith('.ts') && !file.startsWith('sql/functions/'))
      .flatMap((file) =>
        [...readFileSync(join(root, file), 'utf8').matchAll(/\[\s*(?:'[^'\n]*',?\s*){2,}\]/g)]
          .map(([list]) => [...list.matchAll(/'([^'\n]*)'/g)].map(([, word]) => word!))
          .filter((words) => words.every((word) => names.has(word)))
          .map((words) => `${file}: ${words.join(' ')}`),
      )
    expect(files.length).toBeGreaterThan(50)
    expect(lists).toEqual([])
  })
})
