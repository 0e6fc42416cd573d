import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { SlotOwner } from '../../src/shared/fair-queue.ts'
import { eventLoopSlice } from '../../src/shared/event-loop-slice.ts'

const LONG = 1_000_000
const ANA = { user: 'ana', address: '127.0.0.2' }
const FLOOD = { user: 'mallory', address: '127.0.0.1' }

/** Works for so long, in one go. */
function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

interface Piece {
  readonly name: string
  readonly characters: number
  readonly ms: number
  readonly owner?: SlotOwner
}

/** What happens until all is done: pieces of work and turns of the event loop. */
async function happenings(pieces: readonly Piece[]): Promise<string[]> {
  const reported: string[] = []
  let done = false
  const turns = (async () => {
    while (!done) {
      await nextLoopPass()
      reported.push('turn')
    }
  })()
  await Promise.all(
    pieces.map(async ({ name, characters, ms, owner = FLOOD }) => {
      const turn = eventLoopSlice(characters, owner)
      if (turn) await turn
      work(ms)
      reported.push(name)
    }),
  )
  done = true
  await turns
  return reported
}

it('lets all else have turns between long pieces of work that are ready at once', async () => {
  const pieces = Array.from({ length: 10 }, () => ({ name: 'long', characters: LONG, ms: 40 }))
  const reported = await happenings(pieces)
  expect(reported.filter((one) => one === 'long')).toHaveLength(10)
  expect(reported.join(' ')).not.toContain('long long')
})

it('lets no turn take more than its time, however short the texts are', async () => {
  const pieces = Array.from({ length: 10 }, () => ({ name: 'short', characters: 10, ms: 40 }))
  expect((await happenings(pieces)).join(' ')).not.toContain('short short')
})

it('rests for half of the time that a long one took, however long', async () => {
  const began: number[] = []
  const ended: number[] = []
  await Promise.all(
    [1_200, 1].map(async (ms) => {
      const turn = eventLoopSlice(LONG, FLOOD)
      if (turn) await turn
      began.push(performance.now())
      work(ms)
      ended.push(performance.now())
    }),
  )
  expect(began[1]! - ended[0]!).toBeGreaterThan(590)
})

it('does not let short ones wait behind long ones', async () => {
  const reported = await happenings([
    ...Array.from({ length: 10 }, () => ({ name: 'long', characters: LONG, ms: 40 })),
    { name: 'short', characters: 10, ms: 1 },
  ])
  expect(reported.slice(0, reported.indexOf('short')).filter((one) => one === 'long').length).toBeLessThanOrEqual(2)
})

it('lets what is of somebody else not wait for all of whoever has many, short or long', async () => {
  for (const characters of [10, LONG]) {
    const reported = await happenings([
      ...Array.from({ length: 20 }, () => ({ name: 'flood', characters, ms: 15 })),
      { name: 'ana', characters, ms: 1, owner: ANA },
    ])
    const before = reported.slice(0, reported.indexOf('ana')).filter((one) => one === 'flood')
    expect(before.length).toBeLessThanOrEqual(2)
  }
})

it('has many short ones in a turn', async () => {
  // The first takes the turn, the others wait for the next.
  const pieces = Array.from({ length: 51 }, (_, index) => ({
    name: `${index}`,
    characters: 10,
    ms: index === 0 ? 15 : 0,
  }))
  const reported = await happenings(pieces)
  expect(reported.filter((one) => one === 'turn').length).toBeLessThan(25)
})

it('costs what has room no turn at all', async () => {
  await nextLoopPass()
  await nextLoopPass()
  expect(Array.from({ length: 5 }, () => eventLoopSlice(10, ANA))).toEqual(Array(5).fill(undefined))
})
