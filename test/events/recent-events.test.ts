import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { memoryOf } from '../../src/events/envelope.ts'
import { beginning, type Recorded } from '../../src/events/event-log.ts'
import { RecentEvents } from '../../src/events/recent-events.ts'
import type { LogPosition } from '../../src/events/record-store.ts'

const MB = 1 << 20
const [{ state }] = beginning().at as [LogPosition]
const positionAt = (offset: number): LogPosition => ({ offset: BigInt(offset), state: { ...state, count: offset } })

/** An event whose data compresses well. */
function packed(bytes: number): Pick<Recorded, 'enc' | 'stored'> {
  return { enc: 'gzip', stored: gzipSync(JSON.stringify('x'.repeat(bytes - 2))).toString('base64') }
}

describe('The memory size of an event', () => {
  it.each([10_000, 123_457, MB])('is about its uncompressed data of %i bytes', (bytes) => {
    const event = packed(bytes)
    expect(event.stored.length).toBeLessThan(bytes / 50)
    expect(memoryOf(event)).toBeGreaterThanOrEqual(bytes)
    expect(memoryOf(event)).toBeLessThan(1.1 * bytes + 1000)
  })

  it('is small for small uncompressed data and for a forgotten event', () => {
    expect(memoryOf({ enc: 'none', stored: '{}' })).toBeLessThan(1000)
    expect(memoryOf({ enc: 'gzip', stored: '' })).toBeLessThan(1000)
  })
})

it('RecentEvents keeps the last events up to its memory limit', () => {
  const recent = new RecentEvents(10 * MB)
  for (let offset = 0; offset < 50; offset++)
    recent.add(positionAt(offset), positionAt(offset + 1), [packed(MB) as Recorded])
  const kept = Array.from({ length: 50 }, (_, offset) => offset).filter((offset) =>
    recent.after(positionAt(offset), 100),
  )
  expect(kept[0]).toBeGreaterThanOrEqual(40)
  expect(kept.at(-1)).toBe(49)
})

it('RecentEvents returns large events in small steps, and all of them in order', () => {
  const recent = new RecentEvents(20 * MB)
  for (let offset = 0; offset < 10; offset++)
    recent.add(positionAt(offset), positionAt(offset + 1), [packed(MB) as Recorded])
  const steps: number[] = []
  for (let position = positionAt(0); ;) {
    const step = recent.after(position, 1000)
    if (!step) break
    steps.push(step.events.length)
    position = step.position
  }
  expect(Math.max(...steps)).toBeLessThanOrEqual(4)
  expect(steps.reduce((sum, count) => sum + count, 0)).toBe(10)
})
