import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { EngineBeats } from '../../../src/execution/engine/engine-beats.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('EngineBeats uses the last of several lines', () => {
  const beats = new EngineBeats()
  beats.take(Buffer.from('100 held\n200 free\n'))
  expect([beats.bytes(), beats.isHeld()]).toEqual([200, false])
  beats.take(Buffer.from('300 held 70\n400 held 90\n'))
  expect([beats.bytes(), beats.isHeld(), beats.cpuMs()]).toEqual([400, true, 90])
})

it('EngineBeats counts a line that is not a number as a beat, and keeps the previous bytes', () => {
  const beats = new EngineBeats()
  beats.take(Buffer.from('100 free\n'))
  const before = beats.last()
  vi.advanceTimersByTime(250)
  beats.take(Buffer.from('nonsense\n'))
  expect(beats.bytes()).toBe(100)
  expect(beats.last()).toBe(before + 250)
})

it('EngineBeats counts the time in which the process waits for a CPU as not silent', () => {
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
