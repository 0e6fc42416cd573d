import { describe, expect, it } from 'vitest'
import { waitToClaim, lookCaughtUp } from '../../../src/coordinator/recovery/wait-to-claim.ts'
import type { ClaimCheck } from '../../../src/coordinator/recovery/writer-liveness.ts'
import { LOOK_EVERY_MS } from '../../../src/coordinator/recovery/writer-pulse.ts'

/** A liveness check that returns these results one after the other, and a record of the pauses between them. */
function bed(...looks: ClaimCheck[]) {
  const pauses: number[] = []
  const stopping = new AbortController()
  return {
    pauses,
    stopping,
    left: looks,
    liveness: { check: async () => looks.shift() ?? 'claim' },
    pause: async (milliseconds: number) => void pauses.push(milliseconds),
  }
}

describe('`waitToClaim` and `lookCaughtUp`', () => {
  it('`waitToClaim` checks again after 10 or 20 ms at first, and at the normal interval while another writes', async () => {
    const { liveness, pauses, stopping, pause } = bed('behind', 'behind', 'writes', 'waiting', 'behind', 'claim')
    await waitToClaim(liveness, stopping.signal, pause)
    expect(pauses).toEqual([10, 20, LOOK_EVERY_MS, LOOK_EVERY_MS, LOOK_EVERY_MS])
  })

  it('`waitToClaim` ends when the process stops', async () => {
    const { liveness, pauses, stopping, left, pause } = bed('writes', 'writes', 'claim')
    await waitToClaim(liveness, stopping.signal, async (milliseconds) => {
      await pause(milliseconds)
      stopping.abort()
    })
    expect([pauses, left]).toEqual([[LOOK_EVERY_MS], ['claim']])
  })

  it('`lookCaughtUp` returns the first result after the log is read to its end', async () => {
    const { liveness, pauses, pause } = bed('behind', 'behind', 'behind', 'writes')
    expect(await lookCaughtUp(liveness, undefined, pause)).toBe('writes')
    expect(pauses).toEqual([5, 10, 20])
  })

  it('`lookCaughtUp` returns "waiting" when the process stops', async () => {
    const stopping = new AbortController()
    const pause = async (): Promise<void> => stopping.abort()
    expect(await lookCaughtUp({ check: async () => 'behind' }, stopping.signal, pause)).toBe('waiting')
  })
})
