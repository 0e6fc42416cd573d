import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FULL_TESTS } from '../support/full-tests.ts'
import { verifyErasure, type VerifyDeps } from '../../src/erasure/verify-erasure.ts'

const VALUE = 'eva.lund@example.com'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'quipu-verify-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const NO_ROWS = {
  run: async () => {},
  close: async () => {},
  async *rows(): AsyncGenerator<readonly (readonly unknown[])[]> {},
}

function depsOf(engine: object): VerifyDeps {
  const log = { tip: async () => ({ logId: 'log', at: [] }), read: async () => ({ events: [], next: [] }) }
  return {
    logs: { log, before: async () => [], selectForgettable: async (events: readonly unknown[]) => events },
    tables: async () => [],
    archives: [{ folder, engine }],
    files: [],
    topics: [],
  } as unknown as VerifyDeps
}

it.runIf(FULL_TESTS)('the proof finds a value in a packed file that is longer than the longest string', async () => {
  const lines = gzipSync(`${'x'.repeat(1 << 20)}\n`.repeat(16))
  const parts = Array.from({ length: 33 }, () => lines)
  writeFileSync(join(folder, '0-0.jsonl.gz'), Buffer.concat([...parts, gzipSync(`SELECT '${VALUE}'\n`)]))
  const { locations } = await verifyErasure(depsOf(NO_ROWS), { value: VALUE })
  expect(locations.filter(({ found }) => found > 0)).toEqual([{ location: `archive ${folder}`, found: 1 }])
})

it('the proof finds a value in an archive whose files are replaced during the search', async () => {
  mkdirSync(join(folder, '1'))
  writeFileSync(join(folder, '1', 'queries.parquet'), '')
  let searches = 0
  const engine = {
    ...NO_ROWS,
    async *rows(): AsyncGenerator<readonly (readonly unknown[])[]> {
      searches++
      if (searches > 1) yield [[`SELECT '${VALUE}'`]]
      else {
        renameSync(join(folder, '1'), join(folder, '2'))
        throw new Error('IO Error: no such file')
      }
    },
  }
  const { locations } = await verifyErasure(depsOf(engine), { value: VALUE })
  expect(locations.filter(({ found }) => found > 0)).toEqual([{ location: `archive ${folder}`, found: 1 }])
})
