import { expect, it } from 'vitest'
import { createDiskRoom } from '../../../src/coordinator/dispatch/disk-room.ts'

it('the disk room check fails below the minimum, asks once a second and keeps its answer after an error', async () => {
  let now = 0
  let free: number | Error = 50
  let asked = 0
  const ask = async () => {
    asked++
    if (free instanceof Error) throw free
    return { freeBytes: free }
  }
  const room = createDiskRoom(100, ask, { monotonicMs: () => now })
  const answerOfNextSecond = async () => {
    now += 1_000
    room.enough()
    await Promise.resolve()
    await Promise.resolve()
    return room.enough()
  }
  expect(room.enough()).toBe(true) // the free space is unknown yet
  expect(await answerOfNextSecond()).toBe(false)
  free = new Error('no such folder')
  expect(await answerOfNextSecond()).toBe(false)
  free = 100
  expect(await answerOfNextSecond()).toBe(true)
  expect(asked).toBe(4)
})
