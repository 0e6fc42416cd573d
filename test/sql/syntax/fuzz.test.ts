import { describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { checkLimits } from '../../../src/sql/syntax/limits.ts'
import { parseStatement } from '../../../src/sql/syntax/parser.ts'
import { printStatement } from '../../../src/sql/syntax/printer.ts'
import { redactSecrets } from '../../../src/sql/syntax/redact-secrets.ts'
import { conformanceStatements, refusedStatements } from '../../support/sql/recorded-statements.ts'
import { withoutSpans } from '../../support/sql/without-spans.ts'

/** A small random generator with a seed, so that a failure can be repeated. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
    const mixed = Math.imul(state ^ (state >>> 12), 0x297a2d39)
    return ((mixed ^ (mixed >>> 15)) >>> 0) % below
  }
}

const corpus = [...conformanceStatements(), ...refusedStatements()].map(({ sql }) => sql)
const pieces = corpus.flatMap((sql) => sql.split(/(\s+|[(),.[\]'"]|->|\|\|)/)).filter((piece) => piece.trim() !== '')

function mutate(sql: string, random: (below: number) => number): string {
  const parts = sql.split(/(\s+|[(),.[\]'"])/)
  for (let count = 1 + random(4); count > 0; count--) {
    const at = random(parts.length + 1)
    switch (random(5)) {
      case 0:
        parts.splice(at, 1)
        break
      case 1:
        parts.splice(at, 0, ' ', pieces[random(pieces.length)]!, ' ')
        break
      case 2:
        parts.splice(at, 1, pieces[random(pieces.length)]!)
        break
      case 3:
        parts.splice(at, 0, ...parts.slice(random(parts.length + 1), random(parts.length + 1)))
        break
      default:
        parts.splice(at, random(6), corpus[random(corpus.length)]!.slice(random(40), 40 + random(60)))
    }
  }
  return parts.join('').slice(0, 4_000)
}

describe('Mutated statements', () => {
  it.each([1, 2, 3, 4])('parse and print, or fail with an error that has a location (seed %i)', (seed) => {
    const random = randomFrom(seed)
    let parsed = 0
    for (let run = 0; run < 3_000; run++) {
      const sql = mutate(corpus[random(corpus.length)]!, random)
      try {
        const statement = parseStatement(sql)
        parsed++
        const printed = printStatement(statement)
        expect(withoutSpans(parseStatement(printed)), sql).toEqual(withoutSpans(statement))
        checkLimits(sql, statement)
      } catch (error) {
        if (!(error instanceof EngineError)) throw new Error(`On ${sql}`, { cause: error })
        expect(error.location, sql).toBeDefined()
      }
      const redacted = redactSecrets(sql)
      expect(redactSecrets(redacted.sql).sql, sql).toBe(redacted.sql)
    }
    expect(parsed).toBeGreaterThan(100)
  })
})
