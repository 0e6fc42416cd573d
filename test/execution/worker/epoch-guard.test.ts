import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HIGHEST_EPOCH } from '../../../src/execution/api/task.ts'
import { createEpochGuard } from '../../../src/execution/worker/epoch-guard.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'quipu-epochs-'))
  file = join(folder, 'worker', 'epoch')
})

afterEach(() => rmSync(folder, { recursive: true }))

/** Makes a guard over a file with this text. */
function over(text: string): ReturnType<typeof createEpochGuard> {
  createEpochGuard(file)
  writeFileSync(file, text)
  return createEpochGuard(file)
}

describe('The epoch guard of a worker', () => {
  it('keeps the epochs of each log over restarts', () => {
    let guard = createEpochGuard(file)
    expect(guard.seen()).toBe(0)
    expect([guard.accept(7, 'a'), guard.accept(7, 'a'), guard.accept(6, 'a')]).toEqual([
      'accepted',
      'accepted',
      'stale',
    ])
    // The worker moves to another log, which has a lower epoch.
    expect([guard.accept(2, 'b'), guard.accept(1, 'b'), guard.seen()]).toEqual(['accepted', 'stale', 2])
    guard = createEpochGuard(file)
    expect([guard.seen(), guard.accept(1, 'b'), guard.accept(6, 'a'), guard.accept(7, 'a'), guard.seen()]).toEqual([
      2,
      'stale',
      'stale',
      'accepted',
      7,
    ])
  })

  it('accepts an old file without a log id, and coordinators that send no log id', () => {
    let guard = over('12\n')
    expect([guard.accept(11), guard.accept(11, 'a'), guard.accept(12), guard.accept(13, 'a')]).toEqual([
      'stale',
      'stale',
      'accepted',
      'accepted',
    ])
    // A coordinator of the previous version runs beside a new one.
    expect([guard.accept(12), guard.accept(14), guard.accept(13, 'a')]).toEqual(['stale', 'accepted', 'stale'])
    guard = createEpochGuard(file)
    expect([guard.accept(1, 'b'), guard.accept(13, 'a')]).toEqual(['accepted', 'stale'])
  })

  it('refuses implausibly high epochs', () => {
    const guard = createEpochGuard(file)
    for (const epoch of [HIGHEST_EPOCH + 1, 999_999_999_999_999, Number.MAX_SAFE_INTEGER])
      expect(guard.accept(epoch, 'a')).toBe('implausible')
    expect([guard.accept(3_000_000, 'a'), guard.accept(4_000_000, 'a'), guard.accept(5_000_001, 'a')]).toEqual([
      'accepted',
      'accepted',
      'implausible',
    ])
    expect(createEpochGuard(file).seen()).toBe(4_000_000)
  })

  it('ignores an implausible epoch in its file, and an empty file', () => {
    expect(over('999999999999999').accept(1, 'a')).toBe('accepted')
    expect(over('').accept(1, 'a')).toBe('accepted')
  })

  it('makes the start fail with one line if its file cannot be parsed', () => {
    for (const text of ['nonsense', '{"logs":[{"logId":1}]}', '{"logs":[{"logId":"a","epoch":-1}]}', '[]'])
      expect(() => over(text)).toThrow(/holds no readable epochs: see quipu reset-epoch/)
  })

  it('keeps the epochs of only 16 logs', () => {
    const guard = createEpochGuard(file)
    for (let log = 0; log < 100; log++) expect(guard.accept(log, `log-${log}`)).toBe('accepted')
    expect((JSON.parse(readFileSync(file, 'utf8')) as { logs: unknown[] }).logs).toHaveLength(16)
    expect([guard.seen(), guard.accept(98, 'log-99')]).toEqual([99, 'stale'])
  })
})
