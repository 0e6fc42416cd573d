import { describe, expect, it } from 'vitest'
import { Tenure } from '../../../src/coordinator/recovery/tenure.ts'
import { beginning, Fenced, LogUnavailable, LogWentBackwards } from '../../../src/events/event-log.ts'

const EPOCH = 3

/** A tenure of epoch 3 and its effects. */
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
        const [position] = beginning().at
        return { logId: 'l', at: [{ ...position!, state: { ...position!.state, epoch: world.epochOfLog } }] }
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

describe('The tenure of a writer', () => {
  it('is open until it drains; then it suspends running queries for the next coordinator', () => {
    const { tenure, reported, world } = bed()
    expect(tenure.open).toBe(true)
    tenure.drain()
    expect([tenure.open, world.suspended, reported]).toEqual([false, 2, []])
  })

  it('suspends queries and stands aside before it ends when another coordinator claims the log', async () => {
    const { tenure, reported, world, fence, end } = bed()
    fence(new Fenced('another claimed'))
    await end
    expect(reported).toEqual(['lost: another claimed', 'stands aside', 'end: another claimed'])
    expect([tenure.open, world.suspended]).toEqual([false, 2])
  })

  it('ends as broken when the log went backwards', async () => {
    const { reported, fence, end } = bed()
    fence(new LogWentBackwards('the log was recreated'))
    await end
    expect(reported.at(-1)).toBe('broken: the log was recreated')
  })

  it('ends once, even when it is draining and several workers report a higher epoch', async () => {
    const { tenure, reported, world, fence, end } = bed()
    tenure.drain()
    world.epochOfLog = EPOCH + 1
    expect(await Promise.all([tenure.refusedBy('http://w1'), tenure.refusedBy('http://w2')])).toEqual([true, true])
    fence(new Fenced('another claimed'))
    await end
    expect(reported.filter((one) => one.startsWith('lost'))).toEqual(['lost: A worker has seen a higher epoch'])
    expect(reported.filter((one) => one.startsWith('end'))).toHaveLength(1)
    // A draining tenure serves no clients any more.
    expect(reported).not.toContain('stands aside')
  })

  it('stays open when a worker reports an epoch that the log does not have, and logs each worker once', async () => {
    const { tenure, reported } = bed()
    expect(await tenure.refusedBy('http://w1')).toBe(false)
    expect(await tenure.refusedBy('http://w1')).toBe(false)
    expect(await tenure.refusedBy('http://w2')).toBe(false)
    expect(reported).toEqual(['disbelieved: http://w1', 'disbelieved: http://w2'])
    expect(tenure.open).toBe(true)
  })

  it('stays open while the log does not answer', async () => {
    const { tenure, reported, world } = bed()
    world.epochOfLog = undefined
    await expect(tenure.refusedBy('http://w1')).rejects.toThrow(LogUnavailable)
    expect([tenure.open, reported]).toEqual([true, []])
  })
})
