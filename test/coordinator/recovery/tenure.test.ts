import { describe, expect, it } from 'vitest'
import { Tenure } from '../../../src/coordinator/recovery/tenure.ts'
import { beginning, Fenced, LogUnavailable, LogWentBackwards } from '../../../src/events/event-log.ts'

const EPOCH = 3

/** A tenure of epoch 3, and what it does to the world around it. */
function bed() {
  const reported: string[] = []
  const world = { epochOfLog: EPOCH as number | undefined, suspended: 0 }
  let fence = (_reason: Fenced | LogWentBackwards): void => {}
  let ended = (): void => {}
  const end = new Promise<void>((resolve) => (ended = resolve))
  const tenure = new Tenure({
    log: {
      async tip() {
        if (world.epochOfLog === undefined) throw new LogUnavailable('away')
        const [place] = beginning().at
        return { logId: 'l', at: [{ ...place!, state: { ...place!.state, epoch: world.epochOfLog } }] }
      },
      fenced: new Promise((resolve) => (fence = resolve)),
    },
    epoch: EPOCH,
    queries: () => [{ suspend: () => void world.suspended++ }, { suspend: () => void world.suspended++ }],
    standAside: () => reported.push('stands aside'),
    resignMs: 1,
    onLost: (reason) => reported.push(`lost: ${reason}`),
    onDisbelieved: (url) => reported.push(`disbelieved: ${url}`),
    end: (reason, broken) => {
      reported.push(`${broken ? 'broken' : 'end'}: ${reason}`)
      ended()
    },
  })
  return { tenure, reported, world, fence, end }
}

describe('the tenure of a writer', () => {
  it('takes statements until it drains, and leaves what runs to the next coordinator', () => {
    const { tenure, reported, world } = bed()
    expect(tenure.open).toBe(true)
    tenure.drain()
    expect([tenure.open, world.suspended, reported]).toEqual([false, 2, []])
  })

  it('ends when the log is another one’s: queries are suspended and polls answered first', async () => {
    const { tenure, reported, world, fence, end } = bed()
    fence(new Fenced('another claimed'))
    await end
    expect(reported).toEqual(['lost: another claimed', 'stands aside', 'end: another claimed'])
    expect([tenure.open, world.suspended]).toEqual([false, 2])
  })

  it('ends as broken when the log is not what it was', async () => {
    const { reported, fence, end } = bed()
    fence(new LogWentBackwards('the log was recreated'))
    await end
    expect(reported.at(-1)).toBe('broken: the log was recreated')
  })

  it('ends once, also when it drains already, however often it is told', async () => {
    const { tenure, reported, world, fence, end } = bed()
    tenure.drain()
    world.epochOfLog = EPOCH + 1
    expect(await Promise.all([tenure.refusedBy('http://w1'), tenure.refusedBy('http://w2')])).toEqual([true, true])
    fence(new Fenced('another claimed'))
    await end
    expect(reported.filter((one) => one.startsWith('lost'))).toEqual(['lost: A worker has seen a higher epoch'])
    expect(reported.filter((one) => one.startsWith('end'))).toHaveLength(1)
    // It drains: nobody is served here any more.
    expect(reported).not.toContain('stands aside')
  })

  it('does not believe a worker what the log does not say, and tells of each such worker once', async () => {
    const { tenure, reported } = bed()
    expect(await tenure.refusedBy('http://w1')).toBe(false)
    expect(await tenure.refusedBy('http://w1')).toBe(false)
    expect(await tenure.refusedBy('http://w2')).toBe(false)
    expect(reported).toEqual(['disbelieved: http://w1', 'disbelieved: http://w2'])
    expect(tenure.open).toBe(true)
  })

  it('goes on while the log cannot be asked', async () => {
    const { tenure, reported, world } = bed()
    world.epochOfLog = undefined
    await expect(tenure.refusedBy('http://w1')).rejects.toThrow(LogUnavailable)
    expect([tenure.open, reported]).toEqual([true, []])
  })
})
