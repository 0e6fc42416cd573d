import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { loopTurn } from '../../src/shared/loop-turn.ts'

const LONG = 1_000_000

/** Works for so long, in one go. */
function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

/** What happens until all is done: pieces of work and turns of the event loop. */
async function happenings(pieces: readonly { name: string; characters: number; ms: number }[]): Promise<string[]> {
  const told: string[] = []
  let done = false
  const turns = (async () => {
    while (!done) {
      await nextTurn()
      told.push('turn')
    }
  })()
  await Promise.all(
    pieces.map(async ({ name, characters, ms }) => {
      const turn = loopTurn(characters)
      if (turn) await turn
      work(ms)
      told.push(name)
    }),
  )
  done = true
  await turns
  return told
}

it('lets all else have turns between long pieces of work that are ready at once', async () => {
  const pieces = Array.from({ length: 10 }, () => ({ name: 'long', characters: LONG, ms: 40 }))
  const told = await happenings(pieces)
  expect(told.filter((one) => one === 'long')).toHaveLength(10)
  expect(told.join(' ')).not.toContain('long long')
})

it('lets no turn take more than its time, however short the texts are', async () => {
  const pieces = Array.from({ length: 10 }, () => ({ name: 'short', characters: 10, ms: 40 }))
  expect((await happenings(pieces)).join(' ')).not.toContain('short short')
})

it('does not let short ones wait behind long ones', async () => {
  const told = await happenings([
    ...Array.from({ length: 10 }, () => ({ name: 'long', characters: LONG, ms: 40 })),
    { name: 'short', characters: 10, ms: 1 },
  ])
  expect(told.slice(0, told.indexOf('short')).filter((one) => one === 'long').length).toBeLessThanOrEqual(2)
})

it('costs what has room no turn at all', async () => {
  await nextTurn()
  await nextTurn()
  expect(Array.from({ length: 5 }, () => loopTurn(10))).toEqual(Array(5).fill(undefined))
})
