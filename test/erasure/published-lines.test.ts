import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verifyErasure, type VerifyDeps } from '../../src/erasure/verify-erasure.ts'
import { beginning } from '../../src/events/event-log.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'quipu-published-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Everything is empty except the published lines. */
const depsOf = (file: string): VerifyDeps => ({
  logs: {
    log: {
      tip: async () => beginning(),
      read: async () => ({ events: [], next: beginning() }),
      readPage: async () => undefined,
    },
    before: async () => [],
    selectForgettable: async (events) => events,
  },
  tables: (work) => work(async () => []),
  archives: [],
  files: [file],
  topics: [],
})

it('the proof counts published lines in the file of OpenLineage and in its older files', async () => {
  const file = join(folder, 'lineage.jsonl')
  writeFileSync(file, '{"user":"eva"}\n{"user":"bob"}\n')
  writeFileSync(`${file}.1`, '{"user":"eva"}\n{"user":"evaluate"}\n{"user":"eva"}')
  writeFileSync(join(folder, 'other.jsonl'), '{"user":"eva"}\n')
  const { locations } = await verifyErasure(depsOf(file), { user: 'eva' })
  expect(locations.at(-1)).toEqual({
    location: `file ${file}`,
    found: 3,
    why: 'published lines stay until their file is deleted',
  })
})

it.each(['\u2028', '\u2029', '\u0085', '\ud800', '\u0000'])(
  'the proof finds a value with the character %j in published lines',
  async (character) => {
    const value = `eva${character}lund`
    const file = join(folder, 'characters.jsonl')
    writeFileSync(file, `${JSON.stringify({ value })}\n${JSON.stringify({ value: 'eva lund' })}\n`)
    const { locations } = await verifyErasure(depsOf(file), { value })
    expect(locations.at(-1)).toMatchObject({ found: 1 })
  },
)

it('the proof finds nothing in a file of OpenLineage that does not exist', async () => {
  const { locations } = await verifyErasure(depsOf(join(folder, 'missing', 'lineage.jsonl')), { user: 'eva' })
  expect(locations.at(-1)).toMatchObject({ found: 0 })
})
