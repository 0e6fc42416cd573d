import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { EngineBeats } from '../../../src/execution/engine/engine-beats.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('of several lines the last counts', () => {
  const beats = new EngineBeats()
  beats.take(Buffer.from('100 held\n200 free\n'))
  expect([beats.bytes(), beats.isHeld()]).toEqual([200, false])
  beats.take(Buffer.from('300 held 70\n400 held 90\n'))
  expect([beats.bytes(), beats.isHeld(), beats.cpuMs()]).toEqual([400, true, 90])
})

it('what is no number leaves the bytes as they were, and is a beat', () => {
  const beats = new EngineBeats()
  beats.take(Buffer.from('100 free\n'))
  const before = beats.last()
  vi.advanceTimersByTime(250)
  beats.take(Buffer.from('nonsense\n'))
  expect(beats.bytes()).toBe(100)
  expect(beats.last()).toBe(before + 250)
})

it('a process that waits for a processor is not silent', () => {
  let waited = 5_000
  const beats = new EngineBeats(() => waited)
  beats.take(Buffer.from('100 free\n'))
  const before = beats.last()
  vi.advanceTimersByTime(10_000)
  expect(beats.last()).toBe(before)
  waited += 9_500
  expect(beats.last()).toBe(before + 9_500)
  beats.take(Buffer.from('100 free\n'))
  expect(beats.last()).toBe(before + 10_000)
})
