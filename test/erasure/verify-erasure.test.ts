import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { verifyErasure, type VerifyDeps } from '../../src/erasure/verify-erasure.ts'

const VALUE = 'eva.lund@example.com'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'quipu-verify-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('the proof finds a value in an archive whose files are replaced during the search', async () => {
  mkdirSync(join(folder, '1'))
  writeFileSync(join(folder, '1', 'queries.parquet'), '')
  let searches = 0
  const engine = {
    run: async () => {},
    close: async () => {},
    async *rows(): AsyncGenerator<readonly (readonly unknown[])[]> {
      searches++
      if (searches > 1) yield [[`SELECT '${VALUE}'`]]
      else {
        renameSync(join(folder, '1'), join(folder, '2'))
        throw new Error('IO Error: no such file')
      }
    },
  }
  const log = { tip: async () => ({ logId: 'log', at: [] }), read: async () => ({ events: [], next: [] }) }
  const deps = {
    logs: { log, before: async () => [], selectForgettable: async (events: readonly unknown[]) => events },
    tables: async () => [],
    archives: [{ folder, engine }],
    files: [],
    topics: [],
  } as unknown as VerifyDeps
  const { locations } = await verifyErasure(deps, { value: VALUE })
  expect(locations.filter(({ found }) => found > 0)).toEqual([{ location: `archive ${folder}`, found: 1 }])
})
