import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { differenceOf, type CorpusEntry } from '../support/corpus.ts'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'

const corpus = readFileSync(new URL('../conformance/columns/columns.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as CorpusEntry)

/** What is not answered as Trino does, and why. */
const differences: Readonly<Record<string, string>> = {
  'columns/if/strings/052': 'word_stem knows English alone',
}

/** Statements of the corpus whose literals are columns: what an engine calculates ahead of time it cannot here. */
describe('conformance of columns with Trino', { timeout: 900_000 }, () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  it('gives what Trino gave, but for differences with a reason', async () => {
    const differing = new Map<string, string>()
    for (const entry of corpus) {
      const difference = await differenceOf(entry, runner.run)
      if (difference !== undefined) differing.set(entry.id, `${entry.id} ${entry.sql}\n    ${difference}`)
    }
    expect([...differing].filter(([id]) => differences[id] === undefined).map(([, text]) => text)).toEqual([])
    // What differs no longer needs no reason.
    expect(Object.keys(differences).filter((id) => !differing.has(id))).toEqual([])
  })
})
