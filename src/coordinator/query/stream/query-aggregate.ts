import type { QueryId } from '../../../shared/ids.ts'
import type { Clock } from '../../../shared/clock.ts'
import {
  LogFull,
  SequenceConflict,
  NotTaken,
  type Event,
  type Position,
  type ResultPage,
  type EventAppender,
} from '../../../events/event-log.ts'
import { decide, type QueryCommand } from './decider.ts'
import { queryEventVersions, type QueryEvent } from './events.ts'
import { evolve } from './evolve.ts'
import { initialQueryState, type QueryState } from './state.ts'
import { Signal } from '../../../shared/quipu-error.ts'

/**
 * The stream of one query as its only writer sees it. `state` folds valid events alone: only this may be shown to
 * clients. `intended` adds the events on their way to the log: the next command is decided against it.
 */
export interface QueryAggregate {
  readonly queryId: QueryId
  readonly state: QueryState
  readonly intended: QueryState
  /** The number of events that `state` is folded from. */
  readonly sequence: number
  /** The position of the last valid event. */
  readonly position: Position | undefined
  /** The position of the first event, when this process appended it. */
  readonly firstPosition: Position | undefined
  /**
   * Decides the commands one after the other and appends all their events in one append, the pages beside them.
   * Resolves when they are valid, with the number of events; 0 when every command was refused. If the log refuses an
   * append, the commands behind it are decided again as if it had never been tried. If it refuses the append with a
   * query's first event, that event alone is appended again; the refusal is thrown all the same.
   * @throws NotTaken and the like: the log did not take the events, none of them is there
   * @throws Fenced and the like: this process may not answer clients any more
   */
  execute(steps: readonly QueryStep[], pages?: readonly ResultPage[]): Promise<number>
  /** Called after each change of `state`, in order. */
  onValid(listener: (events: readonly QueryEvent[]) => void): void
}

/** A command, or a function that makes commands at its turn, from the state after the steps before it. */
export type QueryStep = QueryCommand | ((intended: QueryState) => readonly QueryCommand[])

export interface AggregateStart {
  readonly state: QueryState
  readonly sequence: number
  /** Removes the parts of an event that may not be read. @default nothing */
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

interface AggregateDeps {
  readonly queryId: QueryId
  readonly log: EventAppender
  readonly clock: Clock
  readonly traceparent: () => string | undefined
  readonly start: AggregateStart
}

class Aggregate implements QueryAggregate {
  readonly queryId: QueryId
  readonly #deps: AggregateDeps
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

  constructor(deps: AggregateDeps) {
    const { queryId, start } = deps
    this.queryId = queryId
    this.#deps = deps
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
    const { queryId, clock } = this.#deps
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
    const { queryId, log, traceparent } = this.#deps
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
      // Decided on events that the log did not take, at a sequence that does not exist.
      if (own.takenBack && error instanceof SequenceConflict) throw new Overtaken()
      if (isRefusal(error)) this.#takeBack(own)
      // Without an await before: the next commands are decided on the query's existence.
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
    // The log may have moved the time forward: then the stored events are folded again.
    const moved = events.some((event, index) => (recorded[index]?.time ?? event.time) !== event.time)
    const valid = moved
      ? events.map((event, index) => ({ ...event, time: recorded[index]?.time ?? event.time }))
      : events
    this.#state = !moved && this.#state === from ? led : foldOn(this.queryId, this.#state, valid)
    this.#validSequence += valid.length
    this.#underway = this.#underway.filter((each) => each !== own)
    for (const listener of this.#listeners) listener(valid)
  }

  /** Undoes a refused append, and everything that was decided after it. */
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
  /** The state after the events. */
  readonly led: QueryState
}

/** Decides the steps in order, each on the state after the steps before it. */
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
  /** The state that the events were decided on, and the state after them. */
  readonly from: QueryState
  readonly led: QueryState
  /** True once the log refused an append that this one was decided on. */
  takenBack: boolean
}

class Overtaken extends Signal {}

/** Whether the error proves that the log took none of the events. */
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
