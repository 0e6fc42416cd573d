import { describe, expect, it, vi } from 'vitest'
import { Acts, type ActOnQuery, type StartedAct } from '../../../src/coordinator/acts/acts.ts'
import { evolveAct, type ActEvent, type BulkActState, type KnownAct } from '../../../src/coordinator/acts/act-state.ts'
import { LogUnavailable } from '../../../src/events/event-log.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { deferred } from '../../../src/shared/deferred.ts'
import { testQueryId } from '../../support/query-life.ts'

/** More than an act works on at the same time. */
const MANY = 120

/** An act of the kind `release` on many queries, with the state that its recorded events give. */
function bed(actOn: ActOnQuery) {
  const ended = deferred<KnownAct>()
  const stops: unknown[] = []
  let recorded: BulkActState = { kind: 'NONE' }
  const acts = new Acts({
    journal: {
      record(type: string, data: unknown) {
        recorded = evolveAct(recorded, { type, time: '2026-03-02T00:00:00.000Z', data } as ActEvent)
        return Promise.resolve()
      },
    } as never,
    clock: systemClock,
    actOn: { kill: actOn, hold: actOn, release: actOn, rerun: actOn, forget: actOn },
    onOutcome() {},
    onStarted() {},
    onEnded: ended.resolve,
    onStopped: ({ actId }, by) => stops.push([actId, by]),
    onError() {},
  })
  return { acts, stops, ended: ended.promise, recorded: () => recorded }
}

const started: StartedAct = {
  actId: 'a1',
  act: 'release',
  by: 'root',
  reason: 'outage',
  filter: {},
  before: '2026-03-02T00:00:00.000Z',
  matched: MANY,
  queries: Array.from({ length: MANY }, (_, number) => testQueryId(number)),
}

describe('Acts on many queries', () => {
  it('stop for good: queries in work get their outcome, and all others are unchanged', async () => {
    const inWork = deferred<void>()
    const begun: string[] = []
    const { acts, stops, ended, recorded } = bed(async (queryId) => {
      begun.push(queryId)
      await inWork.promise
      return { outcome: 'done' }
    })
    await acts.start(started)
    const notEnded = await acts.stopAct('a1', 'ana', 0)
    expect(notEnded).toMatchObject({ kind: 'RUNNING', through: 0 })
    inWork.resolve()
    const { outcomes, problems } = await ended
    expect(outcomes).toEqual({ done: begun.length, unchanged: MANY - begun.length })
    expect(begun.length).toBeLessThan(MANY)
    expect(problems).toEqual([
      { queryId: started.queries[begun.length], outcome: 'unchanged', why: 'The act was stopped before this query' },
    ])
    expect(recorded()).toMatchObject({ kind: 'ENDED', through: MANY, outcomes })
    // A second stop does nothing.
    expect(await acts.stopAct('a1', 'ana', 0)).toMatchObject({ kind: 'ENDED', outcomes })
    expect(await acts.stopAct('a2', 'ana', 0)).toBeUndefined()
    expect(stops).toEqual([['a1', 'ana']])
  })

  it('stop although the log does not answer an act on a query', async () => {
    let calls = 0
    const { acts, ended } = bed(() => {
      calls++
      return Promise.reject(new LogUnavailable('the log does not answer'))
    })
    await acts.start(started)
    await vi.waitFor(() => expect(calls).toBeGreaterThan(0))
    await acts.stopAct('a1', 'ana', 0)
    const { outcomes, problems } = await ended
    expect((outcomes.failed ?? 0) + (outcomes.unchanged ?? 0)).toBe(MANY)
    expect(problems[0]).toMatchObject({ why: 'The act was stopped while it tried to act on this query' })
  })
})
