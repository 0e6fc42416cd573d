import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MirrorQueue, SHADOW_BEGINNING, type FinishedQuery } from '../../../src/replay/shadow/mirror-queue.ts'
import { RateLimit } from '../../../src/replay/shadow/rate-limit.ts'

const { signal } = new AbortController()
const query = (number: number): FinishedQuery => ({ queryId: `q${number}`, elapsedMs: number })

describe('The queue of a shadow', () => {
  it('drops and counts queries that find it full, and never waits', async () => {
    const queue = new MirrorQueue(SHADOW_BEGINNING, 2)
    for (let i = 0; i < 5; i++) queue.offer(query(i), `0-${i}`)
    expect(queue.position).toEqual({
      after: '0-4',
      counts: { finished: 5, writes: 0, notSampled: 0, dropped: 3, ignored: 0 },
      open: [query(0), query(1)],
    })
    queue.settle((await queue.take(signal))!)
    queue.offer(query(5), '0-5')
    expect(queue.position.open).toEqual([query(1), query(5)])
  })

  it('wakes all callers that wait, and gives nothing once their signal aborts', async () => {
    const stopping = new AbortController()
    const queue = new MirrorQueue(SHADOW_BEGINNING, 10)
    const taken = [1, 2, 3].map(() => queue.take(stopping.signal))
    queue.offer(query(1), '0-1')
    queue.offer(query(2), '0-2')
    expect((await Promise.all(taken.slice(0, 2))).toSorted()).toEqual([query(1), query(2)])
    stopping.abort()
    expect(await taken[2]).toBeUndefined()
    expect(await queue.take(stopping.signal)).toBeUndefined()
  })

  it('gives each query one verdict or counts it once, whenever the shadow is killed', async () => {
    const step = fc.record({
      act: fc.constantFrom('offer', 'offer', 'write', 'take', 'settle', 'ignore', 'save', 'kill'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 5 }), async (steps, size) => {
        let saved = SHADOW_BEGINNING
        const verdicts: string[] = []
        let queue = new MirrorQueue(saved, size)
        let running: FinishedQuery[] = []
        let next = 0
        const begin = async (): Promise<void> => {
          const waits = queue.position.open.length > running.length
          if (!waits) return
          const taken = (await queue.take(signal))!
          saved = queue.position
          running.push(taken)
        }
        const kill = (): void => {
          const open = saved.open.filter(({ queryId }) => !verdicts.includes(queryId))
          queue = new MirrorQueue({ ...saved, open }, size)
          running = []
          next = saved.after === undefined ? 0 : Number(saved.after) + 1
        }
        for (const { act } of steps) {
          if (act === 'offer') queue.offer(query(next), String(next++))
          if (act === 'write') queue.offer(query(next), String(next++), 'writes')
          if (act === 'take') await begin()
          const ended = act === 'settle' || act === 'ignore' ? running.shift() : undefined
          if (ended) {
            if (act === 'settle') verdicts.push(ended.queryId)
            queue.settle(ended, act === 'ignore')
          }
          if (act === 'save') saved = queue.position
          if (act === 'kill') kill()
        }
        kill()
        expect(new Set(verdicts).size).toBe(verdicts.length)
        const { counts, open } = queue.position
        const { finished, writes, notSampled, dropped, ignored } = counts
        expect(writes + notSampled + dropped + ignored + open.length + verdicts.length).toBe(finished)
        expect(finished).toBe(next)
      }),
      { numRuns: 300 },
    )
  })
})

describe('The rate of a shadow', () => {
  it('is bounded in every span of time, and a single statement never waits longer than needed', () => {
    const pause = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(pause, fc.constantFrom(0.5, 1, 3, 20), (pauses, perSecond) => {
        const limit = new RateLimit(perSecond)
        const burst = Math.max(1, Math.floor(perSecond))
        let now = 0
        const starts = pauses.map((ms) => {
          now += ms
          now += limit.reserve(now)
          return now
        })
        for (const [from, first] of starts.entries())
          for (let to = from; to < starts.length; to++) {
            const seconds = (starts[to]! - first) / 1000
            expect(to - from + 1).toBeLessThanOrEqual(seconds * perSecond + burst + 1e-6)
          }
      }),
      { numRuns: 50 },
    )
    expect(new RateLimit(0.5).reserve(0)).toBe(0)
  })

  it('refuses to take a token that is not there, and keeps it for later', () => {
    const limit = new RateLimit(2)
    expect([limit.tryTake(0), limit.tryTake(0), limit.tryTake(0), limit.tryTake(499), limit.tryTake(500)]).toEqual([
      true,
      true,
      false,
      false,
      true,
    ])
  })
})
