import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fenced, LogUnavailable } from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { queryOfStream, type QueryId } from '../../shared/ids.ts'
import { howToRetry } from '../../shared/quipu-error.ts'
import type { ActKind, ActOutcome, SystemEvent } from '../system/events.ts'
import type { SystemJournal } from '../system/system-journal.ts'
import {
  decideAct,
  evolveAct,
  type ActCommand,
  type BulkActState,
  type KnownAct,
  type TargetResult,
} from './act-state.ts'

export type StartedAct = Extract<SystemEvent, { type: 'ActStarted' }>['data']

/**
 * Carries out an act on one query. A later coordinator may call it again for the same query: the state of the query
 * then shows whether this act did it already.
 * @param again whether an earlier coordinator may have called it for this query
 * @param stopped aborted once an administrator stops the act
 * @throws QuipuError with `later`: it is called again after a pause
 */
export type ActOnQuery = (
  queryId: QueryId,
  act: StartedAct,
  again: boolean,
  stopped: AbortSignal,
) => Promise<TargetResult>

export interface ActsDeps {
  readonly journal: Pick<SystemJournal, 'record'>
  readonly clock: Clock
  readonly actOn: Readonly<Record<ActKind, ActOnQuery>>
  /** Called after the last query of an act, before its end is recorded. */
  readonly afterLast?: (act: StartedAct) => Promise<void>
  readonly onOutcome: (act: ActKind, outcome: ActOutcome) => void
  readonly onStarted: (act: StartedAct) => void
  readonly onEnded: (act: KnownAct) => void
  readonly onStopped: (act: StartedAct, by: string) => void
  readonly onError: (queryId: QueryId, error: unknown) => void
}

/** How many queries of one act are worked on at the same time. */
const AT_ONCE: Readonly<Record<ActKind, number>> = { kill: 50, hold: 50, release: 50, rerun: 8, forget: 4 }
/** How many acts may run at the same time. */
export const MOST_ACTS = 8
const KEPT_ENDED = 100
/** Progress is recorded after this many queries, or this much time. */
const RECORDED_QUERIES = 500
const RECORDED_MS = 2000
const PAUSE_MS = 500
const NOT_BEGUN: TargetResult = { outcome: 'unchanged', why: 'The act was stopped before this query' }
const NOT_DONE: TargetResult = { outcome: 'failed', why: 'The act was stopped while it tried to act on this query' }

/**
 * Acts on many queries, at the coordinator that writes the log. ActStarted names all queries of the act, so a later
 * coordinator continues with the same queries.
 */
export class Acts {
  readonly #deps: ActsDeps
  readonly #runs = new Map<string, ActRun>()
  readonly #stopping = new AbortController()
  #starting = 0

  constructor(deps: ActsDeps) {
    this.#deps = deps
    // Each query in work may wait for it.
    setMaxListeners(0, this.#stopping.signal)
  }

  /** How many acts have not ended. */
  get running(): number {
    return this.#starting + [...this.#runs.values()].filter(({ state }) => state.kind === 'RUNNING').length
  }

  /**
   * Records the act and begins with it. Resolves when its event is valid.
   * @throws as an append does
   */
  async start(data: StartedAct): Promise<KnownAct> {
    this.#starting++
    try {
      const run = this.#run({ kind: 'NONE' })
      await run.execute({ type: 'StartAct', data })
      return this.#begin(run)
    } finally {
      this.#starting--
    }
  }

  /** Continues acts that an earlier coordinator left unfinished. */
  resume(left: readonly KnownAct[]): void {
    for (const state of left) if (!this.#runs.has(state.started.actId)) this.#begin(this.#run(state))
  }

  get(actId: string): KnownAct | undefined {
    return this.#runs.get(actId)?.known
  }

  /** The acts that this process knows. */
  list(): readonly KnownAct[] {
    return [...this.#runs.values()].map(({ known }) => known)
  }

  /**
   * Stops an act for good: it begins with no further query, and ends once the queries in work have an outcome.
   * @param by the user, for the log
   * @returns the act, once it has ended or after `waitMs`; undefined if no such act runs or ended lately here
   */
  async stopAct(actId: string, by: string, waitMs: number): Promise<KnownAct | undefined> {
    const run = this.#runs.get(actId)
    if (run?.state.kind === 'RUNNING') {
      this.#deps.onStopped(run.known.started, by)
      await Promise.race([run.stop(), sleep(waitMs, undefined, { ref: false })])
    }
    return run?.known
  }

  /** Stops between two queries. The next coordinator continues. */
  stop(): void {
    this.#stopping.abort()
  }

  #run(state: BulkActState): ActRun {
    return new ActRun(this.#deps, state, this.#stopping.signal)
  }

  #begin(run: ActRun): KnownAct {
    const { known } = run
    this.#runs.set(known.started.actId, run)
    this.#dropOldest()
    this.#deps.onStarted(known.started)
    run.begin()
    return known
  }

  /** Removes the oldest ended acts from memory: the read models have them. */
  #dropOldest(): void {
    const ended = [...this.#runs].filter(([, { state }]) => state.kind === 'ENDED')
    for (const [actId] of ended.slice(0, Math.max(0, ended.length - KEPT_ENDED))) this.#runs.delete(actId)
  }
}

/** One act in this process. */
class ActRun {
  readonly #deps: ActsDeps
  readonly #signal: AbortSignal
  readonly #again: boolean
  #state: BulkActState
  /** Results that no event has yet, by the number of their query, from `through` on. */
  readonly #results = new Map<number, TargetResult>()
  #next: number
  #recordedAt: number
  #recording: Promise<void> = Promise.resolve()
  readonly #stopped = new AbortController()
  #working: Promise<void> = Promise.resolve()

  constructor(deps: ActsDeps, state: BulkActState, signal: AbortSignal) {
    this.#deps = deps
    this.#signal = signal
    this.#state = state
    this.#again = state.kind !== 'NONE'
    this.#next = state.kind === 'RUNNING' ? state.through : 0
    this.#recordedAt = deps.clock.monotonicMs()
  }

  get state(): BulkActState {
    return this.#state
  }

  get known(): KnownAct {
    if (this.#state.kind === 'NONE') throw new Error('an act that runs is known')
    return this.#state
  }

  /** Records what the command decides. @throws as an append does */
  async execute(command: ActCommand): Promise<void> {
    const time = new Date(this.#deps.clock.now()).toISOString()
    for (const event of decideAct(this.#state, command, time)) {
      await this.#deps.journal.record(event.type, event.data)
      this.#state = evolveAct(this.#state, event)
    }
  }

  begin(): void {
    this.#working = this.#work()
  }

  /** Begins with no further query. Resolves when the act has ended, or when it cannot go on here. */
  stop(): Promise<void> {
    this.#stopped.abort()
    return this.#working
  }

  /** Does the act. Never rejects: an act that cannot go on here stays unfinished for the next coordinator. */
  async #work(): Promise<void> {
    const { started } = this.known
    const { act, queries } = started
    try {
      const workers = Array.from({ length: Math.min(AT_ONCE[act], queries.length) }, () => this.#workOn(started))
      await Promise.all(workers)
      if (this.#stopped.signal.aborted) this.#leaveOthers()
      await this.#recordResults(true)
      await this.#deps.afterLast?.(started)
      if (this.#signal.aborted) return
      await this.#untilRecorded({ type: 'EndAct' })
      if (this.#state.kind !== 'ENDED') return
      this.#deps.onEnded(this.#state)
      // This process keeps the ended act for a while, without the ids: they are in the log.
      this.#state = { ...this.#state, started: { ...started, queries: [] } }
    } catch (error) {
      if (!(error instanceof Fenced) && !this.#signal.aborted)
        this.#deps.onError(queryOfStream(queries[0] ?? ''), error)
    }
  }

  async #workOn(started: StartedAct): Promise<void> {
    while (this.#next < started.queries.length && !this.#signal.aborted && !this.#stopped.signal.aborted) {
      const number = this.#next++
      const result = await this.#resultOf(queryOfStream(started.queries[number]!), started)
      if (!result) return
      this.#deps.onOutcome(started.act, result.outcome)
      this.#results.set(number, result)
      await this.#recordResults(false)
    }
  }

  /** Gives the queries that the act has not begun with their outcome. Only the first of them has the reason. */
  #leaveOthers(): void {
    const { act, queries } = this.known.started
    for (let number = this.#next; number < queries.length; number++) {
      this.#deps.onOutcome(act, NOT_BEGUN.outcome)
      this.#results.set(number, number === this.#next ? NOT_BEGUN : { outcome: NOT_BEGUN.outcome })
    }
    this.#next = queries.length
  }

  /** @returns undefined once this process stops */
  async #resultOf(queryId: QueryId, started: StartedAct): Promise<TargetResult | undefined> {
    const stopped = this.#stopped.signal
    while (!this.#signal.aborted) {
      try {
        return await this.#deps.actOn[started.act](queryId, started, this.#again, stopped)
      } catch (error) {
        if (error instanceof Fenced) throw error
        if (howToRetry(error) !== 'later') {
          this.#deps.onError(queryId, error)
          // The message may contain values of the statement, and the events of the act outlive the query.
          return { outcome: 'failed', why: error instanceof EngineError ? error.errorName : 'GENERIC_INTERNAL_ERROR' }
        }
        if (stopped.aborted) return NOT_DONE
        await sleep(PAUSE_MS, undefined, { signal: this.#signal }).catch(() => {})
      }
    }
    return undefined
  }

  /** Records the results of the first queries that no event has. */
  #recordResults(all: boolean): Promise<void> {
    const from = this.known.through
    const isDue =
      this.#results.size >= RECORDED_QUERIES || this.#deps.clock.monotonicMs() - this.#recordedAt >= RECORDED_MS
    if (!all && !isDue) return Promise.resolve()
    if (!all && this.#results.get(from) === undefined) return Promise.resolve()
    this.#recordedAt = this.#deps.clock.monotonicMs()
    return (this.#recording = this.#recording.then(() => this.#recordNext()))
  }

  async #recordNext(): Promise<void> {
    const from = this.known.through
    const results: TargetResult[] = []
    for (let next = this.#results.get(from); next; next = this.#results.get(from + results.length)) results.push(next)
    await this.#untilRecorded({ type: 'AdvanceAct', from, results })
    for (let number = from; number < this.known.through; number++) this.#results.delete(number)
  }

  async #untilRecorded(command: ActCommand): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        return await this.execute(command)
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error
        await sleep(PAUSE_MS, undefined, { signal: this.#signal }).catch(() => {})
      }
    }
  }
}
