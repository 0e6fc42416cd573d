import { describe, expect, it } from 'vitest'
import { LogUnavailable, MisconfiguredLog } from '../../../src/events/event-log.ts'
import { createStartNeeds } from '../../../src/processes/coordinator/start-needs.ts'
import { untilUsable, type Patience } from '../../../src/processes/coordinator/until-usable.ts'
import { exitCodes } from '../../../src/shared/exit-codes.ts'

/** A need that fails so often before it is there. */
function bed(failures: readonly Error[], waits: boolean) {
  const left = [...failures]
  const pauses: number[] = []
  const waited: string[] = []
  const needs = createStartNeeds(false)
  const patience: Patience = {
    waits,
    needs,
    onWait: (need, error) => waited.push(`${need}: ${error.message}`),
    onThere: (need) => waited.push(`${need} is there`),
    pause: async (milliseconds) => void pauses.push(milliseconds),
  }
  return {
    patience,
    pauses,
    waited,
    needs,
    open: async () => {
      const failure = left.shift()
      if (failure) throw failure
    },
  }
}

const away = new LogUnavailable('nobody listens')

describe('a start', () => {
  it('says in one line what is missing, when nothing ran before', async () => {
    const { open, patience, pauses } = bed([away], false)
    await expect(untilUsable('log', open, patience)).rejects.toMatchObject({
      exitCode: exitCodes.dependency,
      message: 'Cannot use the event log: nobody listens',
    })
    expect(pauses).toEqual([])
  })

  it('waits for what a coordinator before it had, told of once', async () => {
    const { open, patience, pauses, waited, needs } = bed([away, away, away, away, away, away, away], true)
    expect(await untilUsable('log', open, patience)).toBe(true)
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1000, 1000])
    expect(waited).toEqual(['log: nobody listens', 'log is there'])
    expect(needs.log).toBe('up')
  })

  it('never waits for what is wrong', async () => {
    const { open, patience } = bed([new MisconfiguredLog('the topic is compacted')], true)
    await expect(untilUsable('log', open, patience)).rejects.toMatchObject({
      exitCode: exitCodes.configuration,
      message: 'Cannot use the event log: the topic is compacted',
    })
  })

  it('goes on without what it can do without', async () => {
    const { open, patience, pauses, needs } = bed([away], true)
    expect(await untilUsable('database', open, patience, { without: true })).toBe(false)
    expect([pauses, needs.database]).toEqual([[], 'down'])
  })
})
