import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { SlotOwner } from '../../src/shared/fair-queue.ts'
import { eventLoopSlice } from '../../src/shared/event-loop-slice.ts'

const LONG = 1_000_000
const ANA = { user: 'ana', address: '127.0.0.2' }
const FLOOD = { user: 'mallory', address: '127.0.0.1' }

/** Blocks for `ms` milliseconds. */
function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

interface Piece {
  readonly name: string
  readonly characters: number
  readonly ms: number
  readonly owner?: SlotOwner
}

/** Returns the order of events until all is done: pieces of work and passes of the event loop. */
async function happenings(pieces: readonly Piece[]): Promise<string[]> {
  const reported: string[] = []
  let done = false
  const otherWork = (async () => {
    while (!done) {
      await nextLoopPass()
      reported.push('turn')
    }
  })()
  await Promise.all(
    pieces.map(async ({ name, characters, ms, owner = FLOOD }) => {
      const slice = eventLoopSlice(characters, owner)
      if (slice) await slice
      work(ms)
      reported.push(name)
    }),
  )
  done = true
  await otherWork
  return reported
}

it('`eventLoopSlice` lets the event loop pass between long pieces of work that are ready at once', async () => {
  const pieces = Array.from({ length: 10 }, () => ({ name: 'long', characters: LONG, ms: 40 }))
  const reported = await happenings(pieces)
  expect(reported.filter((one) => one === 'long')).toHaveLength(10)
  expect(reported.join(' ')).not.toContain('long long')
})

it('`eventLoopSlice` limits the time of a pass, however short the texts are', async () => {
  const pieces = Array.from({ length: 10 }, () => ({ name: 'short', characters: 10, ms: 40 }))
  expect((await happenings(pieces)).join(' ')).not.toContain('short short')
})

it('`eventLoopSlice` rests after a long piece for half of its time', async () => {
  const began: number[] = []
  const ended: number[] = []
  await Promise.all(
    [1_200, 1].map(async (ms) => {
      const slice = eventLoopSlice(LONG, FLOOD)
      if (slice) await slice
      began.push(performance.now())
      work(ms)
      ended.push(performance.now())
    }),
  )
  expect(began[1]! - ended[0]!).toBeGreaterThan(590)
})

it('`eventLoopSlice` does not make a short piece wait behind long pieces', async () => {
  const reported = await happenings([
    ...Array.from({ length: 10 }, () => ({ name: 'long', characters: LONG, ms: 40 })),
    { name: 'short', characters: 10, ms: 1 },
  ])
  expect(reported.slice(0, reported.indexOf('short')).filter((one) => one === 'long').length).toBeLessThanOrEqual(2)
})

it('`eventLoopSlice` lets at most two pieces of a busy owner run before the piece of another owner', async () => {
  for (const characters of [10, LONG]) {
    const reported = await happenings([
      ...Array.from({ length: 20 }, () => ({ name: 'flood', characters, ms: 15 })),
      { name: 'ana', characters, ms: 1, owner: ANA },
    ])
    const before = reported.slice(0, reported.indexOf('ana')).filter((one) => one === 'flood')
    expect(before.length).toBeLessThanOrEqual(2)
  }
})

it('`eventLoopSlice` runs many short pieces in one pass of the event loop', async () => {
  // The first piece takes the pass. The others wait for the next pass.
  const pieces = Array.from({ length: 51 }, (_, index) => ({
    name: `${index}`,
    characters: 10,
    ms: index === 0 ? 15 : 0,
  }))
  const reported = await happenings(pieces)
  expect(reported.filter((one) => one === 'turn').length).toBeLessThan(25)
})

it('`eventLoopSlice` returns undefined, without a wait, while there is room', async () => {
  await nextLoopPass()
  await nextLoopPass()
  expect(Array.from({ length: 5 }, () => eventLoopSlice(10, ANA))).toEqual(Array(5).fill(undefined))
})
