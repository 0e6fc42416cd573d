import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decideAct,
  evolveAct,
  MOST_PROBLEMS,
  type ActCommand,
  type BulkActState,
  type TargetResult,
} from '../../../src/coordinator/acts/act-state.ts'
import { actOutcomes, type ActOutcome } from '../../../src/coordinator/system/events.ts'

const time = '2026-03-02T00:00:00.000Z'

function startedWith(queries: number): Extract<ActCommand, { type: 'StartAct' }> {
  const ids = Array.from({ length: queries }, (_, number) => `q${number}`)
  const asked = { filter: { user: 'ana' }, before: time, matched: queries, queries: ids }
  return { type: 'StartAct', data: { actId: 'a1', act: 'kill', by: 'root', reason: 'too many', ...asked } }
}

function after(state: BulkActState, ...commands: readonly ActCommand[]): BulkActState {
  for (const command of commands) for (const event of decideAct(state, command, time)) state = evolveAct(state, event)
  return state
}

const result: fc.Arbitrary<TargetResult> = fc
  .constantFrom<ActOutcome>(...actOutcomes)
  .map((outcome) => ({ outcome, ...(outcome === 'refused' || outcome === 'failed' ? { why: 'no' } : {}) }))

/** Reports of a coordinator, some of them late, repeated or too long. */
const advance: fc.Arbitrary<ActCommand> = fc.record({
  type: fc.constant('AdvanceAct' as const),
  from: fc.nat(12),
  results: fc.array(result, { maxLength: 8 }),
})
const command: fc.Arbitrary<ActCommand> = fc.oneof(
  { weight: 6, arbitrary: advance },
  { weight: 1, arbitrary: fc.constant({ type: 'EndAct' as const }) },
  { weight: 1, arbitrary: fc.nat(12).map(startedWith) },
)

describe('An act on many queries', () => {
  it('counts each query once, whatever is reported', () => {
    fc.assert(
      fc.property(fc.nat(12), fc.array(command, { maxLength: 30 }), (queries, commands) => {
        const state = after({ kind: 'NONE' }, startedWith(queries), ...commands)
        if (state.kind === 'NONE') throw new Error('the act has begun')
        const counted = Object.values(state.outcomes).reduce((sum, count) => sum + count, 0)
        expect(counted).toBe(state.through)
        expect(state.started.queries).toHaveLength(queries)
        expect(state.through).toBeLessThanOrEqual(queries)
        if (state.kind === 'ENDED') expect(state.through).toBe(queries)
      }),
    )
  })

  it('gives the same state when a later coordinator folds its events', () => {
    fc.assert(
      fc.property(fc.nat(12), fc.array(command, { maxLength: 30 }), (queries, commands) => {
        let state: BulkActState = { kind: 'NONE' }
        const events = [startedWith(queries), ...commands].flatMap((one) => {
          const decided = decideAct(state, one, time)
          for (const event of decided) state = evolveAct(state, event)
          return decided
        })
        const [first, ...rest] = events
        const last = rest.at(-1)
        // The read models keep the first event and the last one.
        const folded = [first!, ...(last ? [last] : [])].reduce<BulkActState>(evolveAct, { kind: 'NONE' })
        expect(folded).toEqual(state)
      }),
    )
  })

  it('ignores events of another act, and everything after its end', () => {
    const ended = after(
      { kind: 'NONE' },
      startedWith(1),
      { type: 'AdvanceAct', from: 0, results: [{ outcome: 'done' }] },
      { type: 'EndAct' },
    )
    expect(ended).toMatchObject({ kind: 'ENDED', through: 1, outcomes: { done: 1 } })
    expect(after(ended, { type: 'AdvanceAct', from: 1, results: [{ outcome: 'done' }] }, { type: 'EndAct' })).toBe(
      ended,
    )
    const running = after({ kind: 'NONE' }, startedWith(2))
    const foreign = { actId: 'a2', outcomes: {}, problems: [] }
    expect(evolveAct(running, { type: 'ActEnded', time, data: foreign })).toBe(running)
    expect(evolveAct(running, { type: 'ActProgressed', time, data: { ...foreign, through: 1 } })).toBe(running)
  })

  it('does not end before its last query', () => {
    const running = after({ kind: 'NONE' }, startedWith(2), {
      type: 'AdvanceAct',
      from: 0,
      results: [{ outcome: 'done' }],
    })
    expect(decideAct(running, { type: 'EndAct' }, time)).toEqual([])
  })

  it(`keeps the first ${MOST_PROBLEMS} queries with which nothing could be done`, () => {
    const results = Array.from({ length: MOST_PROBLEMS + 50 }, () => ({ outcome: 'failed' as const, why: 'no' }))
    const state = after({ kind: 'NONE' }, startedWith(results.length), { type: 'AdvanceAct', from: 0, results })
    if (state.kind === 'NONE') throw new Error('the act has begun')
    expect(state.problems).toHaveLength(MOST_PROBLEMS)
    expect(state.problems.at(-1)).toEqual({ queryId: `q${MOST_PROBLEMS - 1}`, outcome: 'failed', why: 'no' })
    expect(state.outcomes).toEqual({ failed: results.length })
  })
})
