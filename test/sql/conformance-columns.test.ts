import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import { compareAnswers, differenceOf, type CorpusEntry } from '../support/corpus.ts'
import { FULL_TESTS } from '../support/full-tests.ts'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'
import { literalsToColumns } from '../support/literals-to-columns.ts'

const folder = new URL('../conformance/', import.meta.url)
const entriesOf = (file: string): CorpusEntry[] =>
  readFileSync(new URL(file, folder), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as CorpusEntry)

const corpus = entriesOf('columns/columns.jsonl')
const whole = readdirSync(folder)
  .filter((file) => file.endsWith('.jsonl'))
  .flatMap(entriesOf)

/** The statements whose answers differ from Trino's, with reasons. */
const differences: Readonly<Record<string, string>> = {
  'columns/if/strings/052': 'word_stem knows English alone',
}

/**
 * The statements of the corpus without a table whose literals cannot all become columns, or whose meaning changes
 * then.
 */
const turnedDifferently: Readonly<Record<string, string>> = {
  'extra-decimals/006': 'an aggregate beside columns',
  'extra-errors/009': 'an alias that is a text, which is no expression',
  'extra-errors/030': 'an interval of a unit that there is not, which is no expression',
  'extra-errors/042': 'a literal of a type that there is not',
  'extra-literals/012': 'a literal of a type with a precision',
  'json/061': 'an arrow between texts, a lambda of a column',
  'literals/007': 'a number that begins with a point',
  'strings/052': 'word_stem knows English alone',
}

/** Statements of the corpus with columns instead of literals, so that the engine cannot calculate ahead of time. */
describe('Conformance of columns with Trino', { timeout: 900_000 }, () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  it('gives the answers of Trino, except for differences with a reason', async () => {
    const differing = new Map<string, string>()
    for (const entry of corpus) {
      const difference = await differenceOf(entry, runner.run)
      if (difference !== undefined) differing.set(entry.id, `${entry.id} ${entry.sql}\n    ${difference}`)
    }
    expect([...differing].filter(([id]) => differences[id] === undefined).map(([, text]) => text)).toEqual([])
    // A difference that is gone must leave the list.
    expect(Object.keys(differences).filter((id) => !differing.has(id))).toEqual([])
  })

  it("gives Trino's answers for literals when the literals of the whole corpus become columns", async () => {
    const differing = new Map<string, string>()
    let turned = 0
    // In CI every second statement, and all with a reason.
    for (const [index, entry] of whole.entries()) {
      if (!FULL_TESTS && index % 2 === 1 && turnedDifferently[entry.id] === undefined) continue
      const sql = literalsToColumns(entry.sql)
      if (sql === undefined) continue
      turned++
      const difference = await rowsDifference(entry, sql)
      if (difference !== undefined) differing.set(entry.id, `${entry.id} ${sql}\n    ${difference}`)
    }
    expect(turned).toBeGreaterThan(FULL_TESTS ? 1200 : 600)
    expect([...differing].filter(([id]) => turnedDifferently[id] === undefined).map(([, text]) => text)).toEqual([])
    expect(Object.keys(turnedDifferently).filter((id) => !differing.has(id))).toEqual([])
  })

  /** Compares rows only: columns have other names, and types of literals may be narrower. */
  async function rowsDifference({ id, columns, rows, error }: CorpusEntry, sql: string): Promise<string | undefined> {
    try {
      const answer = await runner.run(sql)
      if (error !== undefined) return `succeeded, expected ${error.errorName}`
      const shown = answer.columns.map(({ name, type }) => ({ name, type }))
      if (shown.length !== columns?.length) return `${shown.length} columns`
      return compareAnswers({ id, sql, columns: shown, ...(rows && { rows }) }, answer)
    } catch (caught) {
      const name = caught instanceof EngineError ? caught.errorName : 'not an EngineError'
      return name === error?.errorName ? undefined : `${name}: ${String(caught)}`
    }
  }
})
