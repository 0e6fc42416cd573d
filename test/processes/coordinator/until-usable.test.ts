import { describe, expect, it } from 'vitest'
import { LogUnavailable, MisconfiguredLog } from '../../../src/events/event-log.ts'
import { createStartNeeds } from '../../../src/processes/coordinator/start-needs.ts'
import { untilUsable, type Patience } from '../../../src/processes/coordinator/until-usable.ts'
import { exitCodes } from '../../../src/shared/exit-codes.ts'

/** A need that fails with these errors before it is available. */
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

describe('The start of a coordinator', () => {
  it('fails at once with the missing dependency when no coordinator ran before', async () => {
    const { open, patience, pauses } = bed([away], false)
    await expect(untilUsable('log', open, patience)).rejects.toMatchObject({
      exitCode: exitCodes.dependency,
      message: 'Cannot use the event log: nobody listens',
    })
    expect(pauses).toEqual([])
  })

  it('waits for a dependency that an earlier coordinator used, and reports this once', async () => {
    const { open, patience, pauses, waited, needs } = bed([away, away, away, away, away, away, away], true)
    expect(await untilUsable('log', open, patience)).toBe(true)
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1000, 1000])
    expect(waited).toEqual(['log: nobody listens', 'log is there'])
    expect(needs.log).toBe('up')
  })

  it('does not wait when the dependency is misconfigured', async () => {
    const { open, patience } = bed([new MisconfiguredLog('the topic is compacted')], true)
    await expect(untilUsable('log', open, patience)).rejects.toMatchObject({
      exitCode: exitCodes.configuration,
      message: 'Cannot use the event log: the topic is compacted',
    })
  })

  it('continues without an optional dependency', async () => {
    const { open, patience, pauses, needs } = bed([away], true)
    expect(await untilUsable('database', open, patience, { without: true })).toBe(false)
    expect([pauses, needs.database]).toEqual([[], 'down'])
  })
})
