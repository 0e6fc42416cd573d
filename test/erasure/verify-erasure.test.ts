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

it('the proof finds a value in a packed file whose end is missing', async () => {
  const lines = Array.from({ length: 200 }, (_, index) => `${index} ${'x'.repeat(index)} SELECT '${VALUE}'\n`).join('')
  const packed = gzipSync(lines)
  writeFileSync(join(folder, '0-0.jsonl.gz'), packed.subarray(0, packed.length >> 1))
  writeFileSync(join(folder, '1-0.jsonl.gz'), '')
  const { locations } = await verifyErasure(depsOf(NO_ROWS), { value: VALUE })
  const found = locations.find(({ location }) => location === `archive ${folder}`)!.found
  expect(found).toBeGreaterThan(10)
  expect(found).toBeLessThan(200)
})

it('the proof searches again while a process writes a file of rows', async () => {
  mkdirSync(join(folder, '.copy-a'))
  writeFileSync(join(folder, '.copy-a', 'queries.parquet'), '')
  let searches = 0
  const engine = {
    ...NO_ROWS,
    async *rows(): AsyncGenerator<readonly (readonly unknown[])[]> {
      if (++searches === 1) throw new Error('No magic bytes found at end of file')
      yield [[`SELECT '${VALUE}'`]]
    },
  }
  const { locations } = await verifyErasure(depsOf(engine), { value: VALUE })
  expect(locations.filter(({ found }) => found > 0)).toEqual([{ location: `archive ${folder}`, found: 1 }])
})

it('the proof names a file that cannot be read', async () => {
  writeFileSync(join(folder, '0-0.jsonl.gz'), 'no packed data')
  await expect(verifyErasure(depsOf(NO_ROWS), { value: VALUE })).rejects.toThrow(
    `${join(folder, '0-0.jsonl.gz')} cannot be searched: incorrect header check`,
  )
})

it('the proof lets other work of the process run between two long lines', async () => {
  const packed = gzipSync('x'.repeat(8 << 20), { level: 9 }).toString('base64')
  writeFileSync(join(folder, '0-0.jsonl'), `{"sql":"${packed}"}\n`.repeat(20))
  let passes = 0
  const count = (): void => {
    passes++
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  await verifyErasure(depsOf(NO_ROWS), { value: VALUE })
  clearImmediate(next)
  expect(passes).toBeGreaterThanOrEqual(20)
})
