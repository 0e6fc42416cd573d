import { unreachable } from '../../shared/unreachable.ts'
import { actOutcomes, type ActOutcome, type SystemEvent } from '../system/events.ts'

type DataOf<T extends SystemEvent['type']> = Extract<SystemEvent, { type: T }>['data']
export type ActEvent = Extract<SystemEvent, { type: 'ActStarted' | 'ActProgressed' | 'ActEnded' }>

export type OutcomeCounts = Partial<Readonly<Record<ActOutcome, number>>>

/** A query with which nothing could be done, and the reason. */
export interface ActProblem {
  readonly queryId: string
  readonly outcome: ActOutcome
  readonly why: string
}

/** An act on many queries, as its events say. The first `through` of its queries have an outcome. */
export type BulkActState =
  | { readonly kind: 'NONE' }
  | (ActCore & { readonly kind: 'RUNNING' })
  | (ActCore & { readonly kind: 'ENDED'; readonly endedAt: string })
export type KnownAct = Exclude<BulkActState, { kind: 'NONE' }>

interface ActCore {
  readonly started: DataOf<'ActStarted'>
  readonly startedAt: string
  readonly through: number
  readonly outcomes: OutcomeCounts
  /** At most `MOST_PROBLEMS`. */
  readonly problems: readonly ActProblem[]
}

/** The outcome for one query. */
export interface TargetResult {
  readonly outcome: ActOutcome
  /** Why the act could do nothing; absent if it did something, or had nothing to do. */
  readonly why?: string
}

export const MOST_PROBLEMS = 100

export type ActCommand =
  | { readonly type: 'StartAct'; readonly data: DataOf<'ActStarted'> }
  /** The outcomes of the next queries, from number `from` on. */
  | { readonly type: 'AdvanceAct'; readonly from: number; readonly results: readonly TargetResult[] }
  | { readonly type: 'EndAct' }

/** Decides a command on an act. A late, repeated or contradictory command gives no events. Never throws. */
export function decideAct(state: BulkActState, command: ActCommand, time: string): readonly ActEvent[] {
  switch (command.type) {
    case 'StartAct':
      return state.kind === 'NONE' ? [{ type: 'ActStarted', time, data: command.data }] : []
    case 'AdvanceAct': {
      const { from, results } = command
      if (state.kind !== 'RUNNING' || from !== state.through || results.length === 0) return []
      const { actId, queries } = state.started
      const through = from + results.length
      if (through > queries.length) return []
      const problems = results.flatMap(({ outcome, why }, index): ActProblem[] =>
        why === undefined ? [] : [{ queryId: queries[from + index]!, outcome, why }],
      )
      const data = {
        actId,
        through,
        outcomes: added(state.outcomes, results),
        problems: [...state.problems, ...problems].slice(0, MOST_PROBLEMS),
      }
      return [{ type: 'ActProgressed', time, data }]
    }
    case 'EndAct': {
      if (state.kind !== 'RUNNING' || state.through < state.started.queries.length) return []
      const { started, outcomes, problems } = state
      return [{ type: 'ActEnded', time, data: { actId: started.actId, outcomes, problems: [...problems] } }]
    }
    default:
      return unreachable(command)
  }
}

/** The fold of an act's events. Never throws; an event that does not fit the state changes nothing. */
export function evolveAct(state: BulkActState, event: ActEvent): BulkActState {
  if (event.type === 'ActStarted')
    return state.kind === 'NONE'
      ? { kind: 'RUNNING', started: event.data, startedAt: event.time, through: 0, outcomes: {}, problems: [] }
      : state
  if (state.kind !== 'RUNNING' || event.data.actId !== state.started.actId) return state
  const { outcomes, problems } = event.data
  switch (event.type) {
    case 'ActProgressed': {
      const { through } = event.data
      const fits = through > state.through && through <= state.started.matched
      return fits ? { ...state, through, outcomes, problems } : state
    }
    case 'ActEnded':
      return { ...state, kind: 'ENDED', endedAt: event.time, through: state.started.matched, outcomes, problems }
    default:
      return unreachable(event)
  }
}

function added(counts: OutcomeCounts, results: readonly TargetResult[]): Partial<Record<ActOutcome, number>> {
  const sums = actOutcomes.map((outcome) => {
    const more = results.filter((result) => result.outcome === outcome).length
    return [outcome, (counts[outcome] ?? 0) + more] as const
  })
  return Object.fromEntries(sums.filter(([, count]) => count > 0))
}
