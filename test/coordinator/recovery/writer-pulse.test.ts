import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  gaveAnswer,
  beginPulse,
  begunAnew,
  isSilent,
  looked,
  LOOK_EVERY_MS,
  silenceLimit,
  silenceOf,
  wrote,
  type Pulse,
} from '../../../src/coordinator/recovery/writer-pulse.ts'

const limits = { silentMs: 2000, jitterMs: 300 }

/** Applies these looks one after the other; `late` is the delay of the follower before each. */
function follow(pulse: Pulse, looks: readonly { readonly late: number; readonly answersIn?: number }[]): Pulse {
  return looks.reduce((at, { late, answersIn }) => {
    const next = looked(at, at.lookedAt + LOOK_EVERY_MS + late, late)
    return answersIn === undefined ? next : gaveAnswer(next, answersIn)
  }, pulse)
}

const late = fc.integer({ min: 0, max: 3000 })
const takeOvers = fc.integer({ min: 0, max: 20 })

describe('The silence of a writer', () => {
  it('is never reached while the writer answers each check, however slow both are', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ late, answersIn: fc.integer({ min: 0, max: 5000 }) })),
        takeOvers,
        (looks, n) => {
          expect(isSilent(follow(beginPulse(0), looks), limits, n)).toBe(false)
        },
      ),
    )
  })

  it('is not reached while answers arrive at intervals like the earlier ones', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 1500 }), late, (gap, answersIn, lag) => {
        const tookMs = Math.max(answersIn, gap * (LOOK_EVERY_MS + lag))
        const answer = { late: lag, answersIn: tookMs }
        const silent = Array.from({ length: gap }, () => ({ late: lag }))
        let pulse = follow(beginPulse(0), [answer])
        for (let times = 0; times < 5; times++) {
          for (const look of silent) {
            pulse = follow(pulse, [look])
            expect(isSilent(pulse, limits, 0)).toBe(false)
          }
          pulse = follow(pulse, [answer])
        }
      }),
    )
  })

  it('is reached within 31 s after the last answer, for any earlier looks', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ late, answersIn: late }), { maxLength: 20 }),
        takeOvers,
        late,
        (before, n, lag) => {
          let pulse = follow(beginPulse(0), before)
          const looks = Math.ceil(31_000 / LOOK_EVERY_MS)
          for (let look = 0; look < looks; look++) pulse = follow(pulse, [{ late: lag }])
          expect(isSilent(pulse, limits, n)).toBe(true)
        },
      ),
    )
  })

  it('has a limit that never falls with more changes of the writer, more lag or slower answers', () => {
    fc.assert(
      fc.property(late, late, takeOvers, takeOvers, (lagMs, answerMs, fewer, more) => {
        const pulse = { ...beginPulse(0), lagMs, answerMs }
        const [few, many] = [Math.min(fewer, more), Math.max(fewer, more)]
        const limit = silenceLimit(pulse, limits, few)
        expect(limit).toBeGreaterThanOrEqual(limits.silentMs)
        expect(limit).toBeLessThanOrEqual(30_300)
        expect(silenceLimit(pulse, limits, many)).toBeGreaterThanOrEqual(limit)
        expect(silenceLimit({ ...pulse, lagMs: lagMs + 100 }, limits, few)).toBeGreaterThanOrEqual(limit)
        expect(silenceLimit({ ...pulse, answerMs: answerMs + 100 }, limits, few)).toBeGreaterThanOrEqual(limit)
      }),
    )
  })

  it('has a limit of two seconds on an idle machine', () => {
    const pulse = follow(
      beginPulse(0),
      Array.from({ length: 50 }, () => ({ late: 5, answersIn: 20 })),
    )
    expect(silenceLimit(pulse, { ...limits, jitterMs: 0 }, 0)).toBe(2000)
  })

  it('does not count the time in which the follower did not run', () => {
    const pulse = looked(beginPulse(0), 60_000, 0)
    expect(silenceOf(pulse)).toBeLessThan(1000)
  })

  it('ends at the time of a record of the writer, but counts again when the writer never answers', () => {
    const silent = follow(
      beginPulse(0),
      Array.from({ length: 100 }, () => ({ late: 0 })),
    )
    expect(silenceOf(silent)).toBe(20_000)
    expect(silenceOf(wrote(silent, 500))).toBe(500)
    expect(silenceOf(wrote(silent, 50_000))).toBe(20_000)
    // The clock of the writer is ahead of this one.
    expect(silenceOf(wrote(silent, -5000))).toBe(0)
    const longer = follow(
      silent,
      Array.from({ length: 300 }, () => ({ late: 0 })),
    )
    expect(silenceOf(wrote(longer, 0))).toBe(50_000)
    expect(silenceOf(begunAnew(longer))).toBe(0)
  })
})
