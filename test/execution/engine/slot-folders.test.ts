import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeEmpty, removeTree } from '../../../src/execution/engine/slot-folders.ts'
import { spilledBytes } from '../../../src/execution/engine/spilled-bytes.ts'

let home: string
let slot: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'quipu-slot-'))
  slot = join(home, 'engines', '0', '/')
  mkdirSync(slot, { recursive: true })
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

function fill(folder: string, files: number): void {
  for (let number = 0; number < files; number++) writeFileSync(join(folder, `f${number}`), 'x')
}

it('`removeTree` frees the name of the folder at once, and does not block the event loop', async () => {
  fill(slot, 2_000)
  let passes = 0
  const count = setInterval(() => passes++, 0)
  const removed = removeTree(slot)
  expect(existsSync(slot)).toBe(false)
  await removed
  clearInterval(count)
  expect(passes).toBeGreaterThan(0)
  expect(readdirSync(join(home, 'engines'))).toEqual([])
})

it('`makeEmpty` removes links without touching their targets', async () => {
  mkdirSync(join(home, 'others', 'folder'), { recursive: true })
  fill(join(home, 'others', 'folder'), 1)
  mkdirSync(join(slot, 'own'))
  symlinkSync(join(home, 'others'), join(slot, 'own', 'link'))
  symlinkSync(join(home, 'others', 'folder', 'f0'), join(slot, 'file'))
  await makeEmpty(join(home, 'engines'))
  expect(readdirSync(join(home, 'engines'))).toEqual([])
  expect(readdirSync(join(home, 'others', 'folder'))).toEqual(['f0'])
})

it('`makeEmpty` removes older leftovers too, but keeps a folder that is nested too deeply', async () => {
  mkdirSync(join(home, 'engines', 'left-1', 'a', 'b'), { recursive: true })
  mkdirSync(join(slot, ...Array<string>(200).fill('d')), { recursive: true })
  await makeEmpty(join(home, 'engines'))
  expect(readdirSync(join(home, 'engines'))).toEqual([expect.stringMatching(/^left-[0-9a-f-]+$/)])
})

it('`spilledBytes` reads at most 512 files of a folder', () => {
  expect(spilledBytes(join(home, 'none'))).toBe(0)
  fill(slot, 3)
  expect(spilledBytes(slot)).toBe(3)
  fill(slot, 600)
  expect(spilledBytes(slot)).toBe(512)
})
