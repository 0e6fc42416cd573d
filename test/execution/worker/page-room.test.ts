import { describe, expect, it } from 'vitest'
import { PageRoom } from '../../../src/execution/worker/page-room.ts'
import { parseQueryId } from '../../../src/shared/ids.ts'

const A = parseQueryId('20260101_000000_00000_00001')
const B = parseQueryId('20260101_000000_00001_00001')

/** Returns whether a wait is over after one turn of the event loop. */
async function isOver(wait: void | Promise<void>): Promise<boolean> {
  let over = false
  void Promise.resolve(wait).then(() => (over = true))
  await new Promise((resolve) => setImmediate(resolve))
  return over
}

describe('The room for pages', () => {
  it('is free below both limits', () => {
    const room = new PageRoom({ queryBytes: 10, totalBytes: 15 })
    room.count(A, 9)
    expect(room.wait(A)).toBeUndefined()
    expect(room.usage).toEqual({ bytes: 9, queries: 1 })
  })

  it('blocks a query above its limit, and no other query', async () => {
    const room = new PageRoom({ queryBytes: 10, totalBytes: 100 })
    room.count(A, 10)
    const waiting = room.wait(A)
    expect(room.wait(B)).toBeUndefined()
    expect(await isOver(waiting)).toBe(false)
    room.count(A, -1)
    expect(await isOver(waiting)).toBe(true)
  })

  it('blocks all queries above the total limit', async () => {
    const room = new PageRoom({ queryBytes: 10, totalBytes: 12 })
    room.count(A, 9)
    room.count(B, 9)
    const waits = [room.wait(A), room.wait(B)]
    room.count(A, -6)
    expect(await isOver(waits[0])).toBe(false)
    room.count(A, -3)
    expect(await isOver(waits[0])).toBe(true)
    expect(await isOver(waits[1])).toBe(true)
    expect(room.usage).toEqual({ bytes: 9, queries: 1 })
  })
})
