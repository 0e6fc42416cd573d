import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { overloadsOf } from '../../../src/sql/functions/function-table.ts'
import { nativePattern } from '../../../src/duckdb/regexp/native-pattern.ts'
import type { RenderArgument } from '../../../src/sql/functions/rendering.ts'
import { resolveDefinition } from '../../../src/sql/functions/resolve-function.ts'
import { integer, literal, plainName, toText } from '../../../src/duckdb/text/sql.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { analyzeQuery } from '../../support/front-end.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { propertyRuns } from '../../support/full-tests.ts'

let db: InProcessDuckDB
beforeAll(async () => {
  db = await openDuckDB()
})
afterAll(() => db.close())

const texts = [
  '',
  'a',
  'ab',
  'aab\n',
  '\n',
  'a\nb',
  'abc ABC 123',
  ' a\u000bb\tc ',
  'ba,ab,,a',
  'éa É ſ K k',
  '日本 a1 b22',
  '😀a😀b',
  'a\0b',
  '\ufeffa',
  'aaaaaab',
  'x_1-y.2/z',
  '\r\n\u2028\u0085 ',
  'AbAb\n\n',
  '$1 \\1 a$',
]

/** Calls one function for all texts, with a constant pattern and with a pattern from a column. */
async function bothResults(
  name: string,
  pattern: string,
  rest: readonly (string | number)[],
): Promise<readonly unknown[]> {
  const definition = overloadsOf(name).find(({ signature }) => {
    const parameters = signature.slice(name.length + 1, -1).split(', ')
    return parameters.length === 2 + rest.length && !signature.includes('function(')
  })!
  const value = (text: string | number): RenderArgument => ({
    kind: 'value',
    sql: typeof text === 'number' ? integer(text) : literal(text),
    constant: text,
  })
  const types = ['varchar', 'JoniRegExp', ...rest.map((each) => (typeof each === 'number' ? 'bigint' : 'varchar'))]
  const { render } = resolveDefinition(
    definition,
    types.map((type) => ({ kind: 'value', type: parseTypeText(type) })),
  )!
  let next = 0
  const session = { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody', groups: [] }
  const names = { fresh: () => plainName(`n${next++}`) }
  const x: RenderArgument = { kind: 'value', sql: plainName('x') }
  const native = render({ args: [x, value(pattern), ...rest.map(value)], session, names })
  const general = render({ args: [x, { kind: 'value', sql: plainName('p') }, ...rest.map(value)], session, names })
  const rows = texts.map((text, i) => `(${i}, ${toText(literal(text))})`).join(', ')
  const answers: unknown[] = []
  for (const call of [native, general]) {
    const sql = `SELECT to_json(list(v ORDER BY i)) FROM (SELECT i, ${toText(call)} AS v FROM (VALUES ${rows}) t(i, x), (VALUES (${toText(literal(pattern))})) u(p))`
    try {
      const reader = await db.connection.runAndReadAll(sql)
      answers.push(reader.getRowsJson()[0]![0])
    } catch (error) {
      answers.push((error as Error).message.replace(/^[^\u0001]*\u0001/, ''))
    }
  }
  return answers
}

const calls: readonly (readonly [string, ...(string | number)[]])[] = [
  ['regexp_like'],
  ['regexp_extract'],
  ['regexp_extract', 1],
  ['regexp_extract', 2],
  ['regexp_extract_all'],
  ['regexp_extract_all', 1],
  ['regexp_count'],
  ['regexp_position'],
  ['regexp_replace'],
  ['regexp_replace', '<$0>'],
  ['regexp_replace', '[$1\\$\\\\$12]'],
  ['regexp_replace', '${n}!'],
  ['regexp_split'],
]

const atom = fc.constantFrom(
  ...String.raw`a b ab A . \. \d \w \s \S \W \D [ab] [^a] [a-c] [^\s] [\d_] [A-Z] \p{L} \p{Lu} é 日 😀 k s , \\ \$ \n 1 _ \_ - [.-] [^^] \/`.split(
    ' ',
  ),
)
const repeat = fc.constantFrom('', '', '', '*', '+', '?', '*?', '+?', '??', '{2}', '{1,2}', '{0,1}', '{2,}', '{1,3}?')
const piece = fc.tuple(atom, repeat).map((parts) => parts.join(''))
const edge = fc.constantFrom('^', '$', '\\b', '\\A', '\\z')
/**
 * A repeated group contains no repeated group: the general engine tries every division of a text among repetitions,
 * and three nested repetitions take minutes for ten letters, as in Trino.
 */
const { pattern } = fc.letrec<Record<'pattern' | 'branch' | 'part' | 'once' | 'onceBranch' | 'oncePart', string>>(
  (tie) => {
    const group = (inner: fc.Arbitrary<string>, times: fc.Arbitrary<string>): fc.Arbitrary<string> =>
      fc
        .tuple(fc.constantFrom('(', '(?:', '(?<n>'), inner, times)
        .map(([open, body, repeated]) => `${open}${body})${repeated}`)
    const branch = (part: fc.Arbitrary<string>): fc.Arbitrary<string> =>
      fc.array(part, { maxLength: 4 }).map((parts) => parts.join(''))
    const either = (branches: fc.Arbitrary<string>): fc.Arbitrary<string> =>
      fc.array(branches, { minLength: 1, maxLength: 2 }).map((parts) => parts.join('|'))
    const leaves = [
      { weight: 6, arbitrary: piece },
      { weight: 1, arbitrary: edge },
    ]
    return {
      oncePart: fc.oneof({ maxDepth: 2 }, ...leaves, { weight: 1, arbitrary: group(tie('once'), fc.constant('')) }),
      onceBranch: branch(tie('oncePart')),
      once: either(tie('onceBranch')),
      part: fc.oneof(
        { maxDepth: 3 },
        ...leaves,
        { weight: 1, arbitrary: group(tie('pattern'), fc.constant('')) },
        { weight: 1, arbitrary: group(tie('once'), repeat) },
      ),
      branch: branch(tie('part')),
      pattern: either(tie('branch')),
    }
  },
)
const flagged = fc
  .tuple(fc.constantFrom('', '', '', '(?i)', '(?s)', '(?m)', '(?is)'), pattern)
  .map((parts) => parts.join(''))

describe('A native pattern', () => {
  it.each(calls.map((call) => ({ call })))(
    'gives the same answer as the general engine for random patterns: $call',
    async ({ call: [name, ...rest] }) => {
      const runs = propertyRuns(120)
      let native = 0
      await fc.assert(
        fc.asyncProperty(flagged, async (written) => {
          if (nativePattern(written) !== undefined) native++
          const [fast, general] = await bothResults(name, written, rest)
          expect(fast).toEqual(general)
        }),
        { numRuns: runs },
      )
      expect(native).toBeGreaterThan(runs / 5)
    },
  )

  it.each([
    ['(?:a*)*', 'a repetition of a part that may be empty'],
    ['(a|b*)+', 'a repetition of a part that may be empty'],
    ['(a{100}){100}', 'more repetitions than RE2 accepts'],
    ['a{2}*', 'a repetition of a repetition'],
    ['^^', 'more than one beginning'],
    ['^(a|^b)', 'more than one beginning'],
    ['a$b', 'text after the end'],
    ['(?:\\z)a', 'text after the end'],
    ['(?:(?:b|c$))a', 'text after the end'],
    ['^*', 'a repetition of an edge'],
    ['(?i)\\p{Lu}', 'a property without regard to case'],
    ['(?i)É', 'other text than ASCII without regard to case'],
    ['\ud800', 'a lone surrogate'],
    ['a++', 'a possessive repetition'],
    ['(?=a)', 'a look-ahead'],
    ['(a)\\1', 'a back reference'],
    ['(?:)A', 'a pattern that DuckDB converts to LIKE'],
    ['A(?:(?:))', 'a pattern that DuckDB converts to LIKE'],
    ['(', 'an invalid pattern'],
  ])('is undefined for %s: %s', (written) => {
    expect(nativePattern(written)).toBeUndefined()
  })

  it.each([String.raw`^\s*(\d+)-(?<n>\w+)$`, 'sp[e-i]c.*ly [0-9]+7', '(?i)special|regular', String.raw`\p{L}+\.`])(
    'is defined for %s',
    (written) => {
      expect(nativePattern(written)).toBeDefined()
    },
  )

  it('gives the same answer as the general engine for large programs', async () => {
    for (const part of ['.', '[^a]', '\\p{L}', '\\S', '(?:ab|cd)', '[^\\p{L}]']) {
      for (const times of [10, 40, 49, 50, 100, 249, 333, 499, 500, 999]) {
        const [fast, general] = await bothResults('regexp_like', `${part}{${times}}b`, [])
        expect(fast, `${part}{${times}}`).toEqual(general)
      }
    }
  })

  it('is used for a pattern literal in a statement', async () => {
    const { query } = await analyzeQuery(
      `SELECT regexp_like(name, 'a+'), regexp_replace(name, '(a)(b)', '$2$1') FROM customers`,
    )
    expect(query.sql).toContain('regexp_matches(')
    expect(query.sql).not.toContain('u_rx_')
  })
})
