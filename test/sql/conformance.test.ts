import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'
import { differenceOf, type CorpusEntry } from '../support/corpus.ts'

const folder = new URL('../conformance/', import.meta.url)

const recorded = readdirSync(folder)
  .filter((file) => file.endsWith('.jsonl'))
  .map((file) => file.replace('.jsonl', ''))

const topics = recorded.filter((topic) => !topic.startsWith('extra-'))

/** Statements that once differed, and similar ones. None may differ now, including the locations of errors. */
const extras = recorded.filter((topic) => topic.startsWith('extra-'))

const entriesOf = (topic: string): CorpusEntry[] =>
  readFileSync(new URL(`${topic}.jsonl`, folder), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as CorpusEntry)

/**
 * The minimum percentages: of all statements, and of those that fail in Trino. They rise as the front end gets
 * better.
 */
const floors = { all: 99, errors: 99 }

describe('Conformance of the library with Trino', { timeout: 900_000 }, () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  it('gives the rows, types and errors of the corpus', async () => {
    const table: string[] = []
    let [all, passed, errors, named] = [0, 0, 0, 0]
    for (const topic of topics) {
      const entries = entriesOf(topic)
      let good = 0
      for (const entry of entries) {
        const difference = await differenceOf(entry, runner.run)
        if (difference === undefined) good++
        else if (process.env['CONFORMANCE_DETAILS'] !== undefined)
          table.push(`${entry.id} ${entry.sql}\n    ${difference}`)
        if (entry.error !== undefined) {
          errors++
          if (difference === undefined) named++
        }
      }
      table.push(`${topic.padEnd(20)} ${String(good).padStart(4)} of ${String(entries.length).padStart(4)}`)
      all += entries.length
      passed += good
    }
    table.push(`${'all'.padEnd(20)} ${passed} of ${all}; errors ${named} of ${errors}`)
    console.log(table.join('\n'))
    expect((100 * passed) / all).toBeGreaterThanOrEqual(floors.all)
    expect((100 * named) / errors).toBeGreaterThanOrEqual(floors.errors)
  })

  it("gives Trino's answers for all further statements", async () => {
    const differing: string[] = []
    for (const entry of extras.flatMap(entriesOf)) {
      const difference = await differenceOf(entry, runner.run)
      if (difference !== undefined) differing.push(`${entry.id} ${entry.sql}\n    ${difference}`)
    }
    expect(differing).toEqual([])
  })
})
