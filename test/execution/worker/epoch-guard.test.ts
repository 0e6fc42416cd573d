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

/** A guard over a file with this text. */
function over(text: string): ReturnType<typeof createEpochGuard> {
  createEpochGuard(file)
  writeFileSync(file, text)
  return createEpochGuard(file)
}

describe('the epochs that a worker has heard of', () => {
  it('are kept by log, over restarts', () => {
    let guard = createEpochGuard(file)
    expect(guard.seen()).toBe(0)
    expect([guard.accept(7, 'a'), guard.accept(7, 'a'), guard.accept(6, 'a')]).toEqual([
      'accepted',
      'accepted',
      'stale',
    ])
    // Moved to another log, whose coordinators have claimed it less often.
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

  it('go on from a file of before, which names no log, and from coordinators that name none', () => {
    let guard = over('12\n')
    expect([guard.accept(11), guard.accept(11, 'a'), guard.accept(12), guard.accept(13, 'a')]).toEqual([
      'stale',
      'stale',
      'accepted',
      'accepted',
    ])
    // One of the version before, while both run.
    expect([guard.accept(12), guard.accept(14), guard.accept(13, 'a')]).toEqual(['stale', 'accepted', 'stale'])
    guard = createEpochGuard(file)
    expect([guard.accept(1, 'b'), guard.accept(13, 'a')]).toEqual(['accepted', 'stale'])
  })

  it('are plausible', () => {
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

  it('of a file that no coordinator can have brought about are none', () => {
    expect(over('999999999999999').accept(1, 'a')).toBe('accepted')
    expect(over('').accept(1, 'a')).toBe('accepted')
  })

  it('of a file that cannot be read end the start with one line', () => {
    for (const text of ['nonsense', '{"logs":[{"logId":1}]}', '{"logs":[{"logId":"a","epoch":-1}]}', '[]'])
      expect(() => over(text)).toThrow(/holds no epochs: see quipu reset-epoch/)
  })

  it('are few, however many logs the worker is moved to', () => {
    const guard = createEpochGuard(file)
    for (let log = 0; log < 100; log++) expect(guard.accept(log, `log-${log}`)).toBe('accepted')
    expect((JSON.parse(readFileSync(file, 'utf8')) as { logs: unknown[] }).logs).toHaveLength(16)
    expect([guard.seen(), guard.accept(98, 'log-99')]).toEqual([99, 'stale'])
  })
})
