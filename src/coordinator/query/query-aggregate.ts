import type { Clock } from '../../shared/clock.ts'
import type { Event, EventLog, Position, ResultPage } from '../../events/event-log.ts'
import { decide, type QueryCommand } from './decider.ts'
import { queryEventVersions, type QueryEvent } from './events.ts'
import { evolve } from './evolve.ts'
import { initialQueryState, type QueryState } from './state.ts'

/**
 * One query's stream as its only writer sees it. `state` folds valid events alone: all that a client may be told.
 * `intended` adds the events on their way to the log: what the next command is decided against.
 */
export interface QueryAggregate {
  readonly queryId: string
  readonly state: QueryState
  readonly intended: QueryState
  /** How many events `state` is folded from. */
  readonly sequence: number
  /** Of the last valid event. */
  readonly position: Position | undefined
  /** Of the first event, when this process appended it. */
  readonly firstPosition: Position | undefined
  /**
   * Decides the commands one after the other and appends all their events in one append, the pages beside them.
   * Resolves when they are valid, with the number of events; 0 when every command was refused.
   * @throws Fenced and the like: this process may tell nothing more
   */
  execute(steps: readonly Step[], pages?: readonly ResultPage[]): Promise<number>
  /** Called after each change of `state`, in order. */
  onValid(listener: (events: readonly QueryEvent[]) => void): void
}

/** A command, or commands made only when their turn comes, from the state that the steps before led to. */
export type Step = QueryCommand | ((intended: QueryState) => readonly QueryCommand[])

export interface AggregateStart {
  readonly state: QueryState
  readonly sequence: number
}

export function createQueryAggregate(
  queryId: string,
  log: Pick<EventLog, 'append'>,
  clock: Clock,
  traceparent: () => string | undefined,
  start: AggregateStart = { state: initialQueryState, sequence: 0 },
): QueryAggregate {
  let state = start.state
  let intended = start.state
  let sequence = start.sequence
  let validSequence = start.sequence
  let position: Position | undefined
  let firstPosition: Position | undefined
  const listeners: ((events: readonly QueryEvent[]) => void)[] = []
  return {
    queryId,
    get state() {
      return state
    },
    get intended() {
      return intended
    },
    get sequence() {
      return validSequence
    },
    get position() {
      return position
    },
    get firstPosition() {
      return firstPosition
    },
    onValid: (listener) => void listeners.push(listener),
    async execute(steps, pages) {
      const at = new Date(clock.now()).toISOString()
      const events: QueryEvent[] = []
      for (const step of steps) {
        for (const command of typeof step === 'function' ? step(intended) : [step]) {
          const when = command.type === 'CreateQuery' ? (command.at ?? at) : at
          for (const event of decide(intended, command, when)) {
            events.push(event)
            intended = evolve(queryId, intended, event)
          }
        }
      }
      if (events.length === 0) return 0
      const expected = sequence
      sequence += events.length
      const parent = traceparent()
      const appended = await log.append(
        queryId,
        expected,
        events.map((event): Event => toEvent(event, parent)),
        pages,
      )
      position = { partition: appended.partition, offset: appended.offset }
      if (expected === 0) firstPosition = appended.events[0]?.position ?? position
      // The log may have moved the time on: fold what was stored.
      const valid = events.map((event, index) => ({ ...event, time: appended.events[index]?.time ?? event.time }))
      for (const event of valid) state = evolve(queryId, state, event)
      validSequence += valid.length
      for (const listener of listeners) listener(valid)
      return events.length
    },
  }
}

function toEvent(event: QueryEvent, traceparent: string | undefined): Event {
  return {
    type: event.type,
    v: queryEventVersions[event.type],
    time: event.time,
    data: event.data,
    typed: true,
    ...(traceparent === undefined ? {} : { traceparent }),
  }
}
