import type { QueryId } from '../../shared/ids.ts'
import type { Clock } from '../../shared/clock.ts'
import {
  LogFull,
  SequenceConflict,
  NotTaken,
  type Event,
  type Position,
  type ResultPage,
  type EventAppender,
} from '../../events/event-log.ts'
import { decide, type QueryCommand } from './decider.ts'
import { queryEventVersions, type QueryEvent } from './events.ts'
import { evolve } from './evolve.ts'
import { initialQueryState, type QueryState } from './state.ts'
import { Signal } from '../../shared/quipu-error.ts'

/**
 * One query's stream as its only writer sees it. `state` folds valid events alone: all that a client may be told.
 * `intended` adds the events on their way to the log: what the next command is decided against.
 */
export interface QueryAggregate {
  readonly queryId: QueryId
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
   * What the log does not take leaves no trace: the commands behind it are decided again as if it had not been. A query's
   * first event does not fall with its company: alone it becomes valid, and the refusal is thrown all the same.
   * @throws NotTaken and the like: the log did not take the events, nothing of them is there
   * @throws Fenced and the like: this process may tell nothing more
   */
  execute(steps: readonly QueryStep[], pages?: readonly ResultPage[]): Promise<number>
  /** Called after each change of `state`, in order. */
  onValid(listener: (events: readonly QueryEvent[]) => void): void
}

/** A command, or commands made only when their turn comes, from the state that the steps before led to. */
export type QueryStep = QueryCommand | ((intended: QueryState) => readonly QueryCommand[])

export interface AggregateStart {
  readonly state: QueryState
  readonly sequence: number
  /** Takes out of an event what nobody may read. @default nothing */
  readonly seal?: ((event: QueryEvent) => QueryEvent) | undefined
}

export function createQueryAggregate(
  queryId: QueryId,
  log: EventAppender,
  clock: Clock,
  traceparent: () => string | undefined,
  start: AggregateStart = { state: initialQueryState, sequence: 0 },
): QueryAggregate {
  return new Aggregate({ queryId, log, clock, traceparent, start })
}

interface AggregateParts {
  readonly queryId: QueryId
  readonly log: EventAppender
  readonly clock: Clock
  readonly traceparent: () => string | undefined
  readonly start: AggregateStart
}

class Aggregate implements QueryAggregate {
  readonly queryId: QueryId
  readonly #parts: AggregateParts
  readonly #seal: (event: QueryEvent) => QueryEvent
  #state: QueryState
  #intended: QueryState
  #sequence: number
  #validSequence: number
  #position: Position | undefined
  #firstPosition: Position | undefined
  /** Appends on their way, in order. */
  #underway: Underway[] = []
  readonly #listeners: ((events: readonly QueryEvent[]) => void)[] = []

  constructor(parts: AggregateParts) {
    const { queryId, start } = parts
    this.queryId = queryId
    this.#parts = parts
    this.#seal = start.seal ?? ((event) => event)
    this.#state = start.state
    this.#intended = start.state
    this.#sequence = start.sequence
    this.#validSequence = start.sequence
  }

  get state(): QueryState {
    return this.#state
  }

  get intended(): QueryState {
    return this.#intended
  }

  get sequence(): number {
    return this.#validSequence
  }

  get position(): Position | undefined {
    return this.#position
  }

  get firstPosition(): Position | undefined {
    return this.#firstPosition
  }

  onValid(listener: (events: readonly QueryEvent[]) => void): void {
    this.#listeners.push(listener)
  }

  async execute(steps: readonly QueryStep[], pages?: readonly ResultPage[]): Promise<number> {
    const { queryId, clock } = this.#parts
    for (;;) {
      const decided = decideAll({ queryId, seal: this.#seal, now: clock.now() }, this.#intended, steps)
      if (decided.events.length === 0) return 0
      try {
        await this.#append(decided, pages)
        return decided.events.length
      } catch (error) {
        if (!(error instanceof Overtaken)) throw error
      }
    }
  }

  async #append({ events, led }: Decided, pages: readonly ResultPage[] | undefined): Promise<void> {
    const { queryId, log, traceparent } = this.#parts
    const own: Underway = { events, from: this.#intended, led, takenBack: false }
    const expected = this.#sequence
    this.#underway.push(own)
    this.#sequence += events.length
    this.#intended = led
    const parent = traceparent()
    const stored = events.map((event): Event => toEvent(event, parent))
    try {
      const appended = await log.append(queryId, expected, stored, pages)
      this.#position = { partition: appended.partition, offset: appended.offset }
      if (expected === 0) this.#firstPosition = appended.events[0]?.position ?? this.#position
      this.#becameValid(own, appended.events)
    } catch (error) {
      // Decided on what the log did not take, at a sequence that is not.
      if (own.takenBack && error instanceof SequenceConflict) throw new Overtaken()
      if (isRefusal(error)) this.#takeBack(own)
      // In this very turn: whatever comes next is decided on the query's existence.
      if (expected === 0 && events.length > 1 && error instanceof NotTaken) {
        const alone = events.slice(0, 1)
        await this.#append({ events: alone, led: foldOn(queryId, this.#intended, alone) }, undefined)
      }
      throw error
    }
  }

  /** @param recorded the events as the log has them */
  #becameValid(own: Underway, recorded: readonly Pick<Event, 'time'>[]): void {
    const { events, from, led } = own
    // The log may have moved the time on: then what was stored is folded anew.
    const moved = events.some((event, index) => (recorded[index]?.time ?? event.time) !== event.time)
    const valid = moved
      ? events.map((event, index) => ({ ...event, time: recorded[index]?.time ?? event.time }))
      : events
    this.#state = !moved && this.#state === from ? led : foldOn(this.queryId, this.#state, valid)
    this.#validSequence += valid.length
    this.#underway = this.#underway.filter((each) => each !== own)
    for (const listener of this.#listeners) listener(valid)
  }

  /** What was refused did not happen, nor what was decided after it. */
  #takeBack(refused: Underway): void {
    const index = this.#underway.indexOf(refused)
    if (index < 0) return
    for (const later of this.#underway.slice(index)) later.takenBack = true
    this.#underway = this.#underway.slice(0, index)
    const standing = this.#underway.flatMap(({ events }) => events)
    this.#intended = foldOn(this.queryId, this.#state, standing)
    this.#sequence = this.#validSequence + standing.length
  }
}

function foldOn(queryId: QueryId, from: QueryState, events: readonly QueryEvent[]): QueryState {
  return events.reduce((before, event) => evolve(queryId, before, event), from)
}

interface Decided {
  readonly events: readonly QueryEvent[]
  /** The state that they lead to. */
  readonly led: QueryState
}

/** What steps lead to, each decided on what the steps before led to. */
function decideAll(
  {
    queryId,
    seal,
    now,
  }: { readonly queryId: QueryId; readonly seal: (event: QueryEvent) => QueryEvent; readonly now: number },
  from: QueryState,
  steps: readonly QueryStep[],
): Decided {
  const at = new Date(now).toISOString()
  const events: QueryEvent[] = []
  let next = from
  for (const step of steps) {
    for (const command of typeof step === 'function' ? step(next) : [step]) {
      for (const decided of decide(next, command, command.at ?? at)) {
        const event = seal(decided)
        events.push(event)
        next = evolve(queryId, next, event)
      }
    }
  }
  return { events, led: next }
}

interface Underway {
  readonly events: readonly QueryEvent[]
  /** What they were decided on, and what they lead to from there. */
  readonly from: QueryState
  readonly led: QueryState
  /** It stood on what the log refused. */
  takenBack: boolean
}

class Overtaken extends Signal {}

/** For certain nothing is there. */
function isRefusal(error: unknown): boolean {
  return error instanceof NotTaken || error instanceof LogFull || error instanceof TypeError
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
