import { describe, expect, it } from 'vitest'
import { waitToClaim, lookCaughtUp } from '../../../src/coordinator/recovery/wait-to-claim.ts'
import type { ClaimCheck } from '../../../src/coordinator/recovery/writer-liveness.ts'
import { LOOK_EVERY_MS } from '../../../src/coordinator/recovery/writer-pulse.ts'

/** Looks that say one after the other what is given, and the pauses between them. */
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

describe('waiting for the turn', () => {
  it('looks again soon while this process reads on, and at the pace of looks while another writes', async () => {
    const { liveness, pauses, stopping, pause } = bed('behind', 'behind', 'writes', 'waiting', 'behind', 'claim')
    await waitToClaim(liveness, stopping.signal, pause)
    expect(pauses).toEqual([10, 20, LOOK_EVERY_MS, LOOK_EVERY_MS, LOOK_EVERY_MS])
  })

  it('ends when the process stops', async () => {
    const { liveness, pauses, stopping, left, pause } = bed('writes', 'writes', 'claim')
    await waitToClaim(liveness, stopping.signal, async (milliseconds) => {
      await pause(milliseconds)
      stopping.abort()
    })
    expect([pauses, left]).toEqual([[LOOK_EVERY_MS], ['claim']])
  })

  it('says what it looks like once the log is read to its end', async () => {
    const { liveness, pauses, pause } = bed('behind', 'behind', 'behind', 'writes')
    expect(await lookCaughtUp(liveness, undefined, pause)).toBe('writes')
    expect(pauses).toEqual([5, 10, 20])
  })

  it('ends when the process stops, and claims nothing then', async () => {
    const stopping = new AbortController()
    const pause = async (): Promise<void> => stopping.abort()
    expect(await lookCaughtUp({ check: async () => 'behind' }, stopping.signal, pause)).toBe('waiting')
  })
})
