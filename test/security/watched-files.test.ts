import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createAllowance, watchFiles, type WatchedFiles } from '../../src/security/watched-files.ts'
import { temporaryFolder } from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
let path: string
let file: WatchedFiles<number> | undefined
let reported: string[]
beforeEach(() => {
  folder = temporaryFolder()
  path = join(folder.path, 'file')
  reported = []
})
afterEach(async () => {
  file?.stop()
  await folder.remove()
})

const watched = (): WatchedFiles<number> =>
  (file = watchFiles(
    [path],
    ([text]) => {
      if (!/^\d+\n$/.test(text)) throw new Error('no number')
      return Number(text)
    },
    { onReloaded: () => reported.push('reloaded'), onBroken: (error) => reported.push(error.message) },
  ))
const becomes = (value: number): Promise<void> => expect.poll(() => file!.value).toBe(value)
const isReported = (what: string | RegExp): Promise<void> => expect.poll(() => reported.join()).toMatch(what)

it('a watched file is read again when it is written, replaced, or its symbolic link changes', async () => {
  writeFileSync(path, '1\n')
  expect(watched().value).toBe(1)
  writeFileSync(path, '2\n')
  await becomes(2)
  writeFileSync(`${path}.new`, '3\n')
  renameSync(`${path}.new`, path)
  await becomes(3)
  for (const value of [4, 5]) {
    mkdirSync(join(folder.path, `v${value}`))
    writeFileSync(join(folder.path, `v${value}`, 'file'), `${value}\n`)
    symlinkSync(join(folder.path, `v${value}`, 'file'), `${path}.new`)
    renameSync(`${path}.new`, path)
    await becomes(value)
  }
})

it('a watched file that breaks keeps its last value, is reported once, and is read when it is repaired', async () => {
  writeFileSync(path, '1\n')
  watched()
  writeFileSync(path, 'broken')
  await isReported('no number')
  expect(file!.value).toBe(1)
  rmSync(path)
  await isReported(/ENOENT/)
  expect(file!.value).toBe(1)
  writeFileSync(path, '2\n')
  await becomes(2)
  expect(reported.filter((what) => what === 'no number').length).toBe(1)
  expect(reported.at(-1)).toBe('reloaded')
})

it('a watched file that is still being written is not read yet', async () => {
  writeFileSync(path, '1\n')
  watched()
  const seen = new Set<number>()
  // The intermediate contents are valid too.
  for (let part = 0; part < 15; part++) {
    writeFileSync(path, `${'2'.repeat(part + 1)}\n`)
    await new Promise((resolve) => setTimeout(resolve, 150))
    seen.add(file!.value)
  }
  await becomes(Number('2'.repeat(15)))
  expect(seen).toEqual(new Set([1]))
})

it('watching throws at the start if the file is missing or invalid', () => {
  expect(watched).toThrow('ENOENT')
  writeFileSync(path, 'broken')
  expect(watched).toThrow('no number')
})

it('an allowance grants ten reloads at once, then one every ten seconds', () => {
  const { take } = createAllowance(10, 10_000)
  const taken = (from: number, seconds: number): number =>
    Array.from({ length: seconds }, (_, second) => take(from + second * 1_000)).filter(Boolean).length
  const first = taken(50_000, 60)
  expect(first).toBeGreaterThanOrEqual(15)
  expect(first).toBeLessThanOrEqual(16)
  expect(taken(110_000, 3_600)).toBeLessThanOrEqual(361)
  expect(taken(10_000_000, 10)).toBe(10)
})
