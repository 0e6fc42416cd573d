import type { Clock } from '../../../shared/clock.ts'
import type { Entrant, GroupSlot, Queued, ResourceGroups, Waiting } from '../../dispatch/resource-groups.ts'
import type { Recorder } from '../stream/recorder.ts'

interface AdmissionDeps {
  readonly groups: Pick<ResourceGroups, 'reservation' | 'tryEnter' | 'enter' | 'occupy'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly entrant: Omit<Entrant, 'recovered' | 'moved' | 'held'>
  /** Why an act holds the query, as an earlier coordinator left it; undefined: no act does. */
  readonly heldBefore?: string | undefined
  readonly record: Recorder['record']
  /** Called when the query has to wait for a slot. */
  readonly onWait: () => void
}

/** The query's slot in its resource group, or the reason why it waits for one. */
export class Admission {
  readonly #deps: AdmissionDeps
  #slot: GroupSlot | undefined
  #queuedReason: (() => string) | undefined
  #waiting: Waiting | undefined
  /** Why an act holds the query. */
  #heldFor: string | undefined

  constructor(deps: AdmissionDeps) {
    this.#deps = deps
    this.#heldFor = deps.heldBefore
  }

  /** The reason for the wait; undefined when the query does not wait. */
  get queuedReason(): string | undefined {
    const reason = this.#queuedReason?.()
    return reason !== undefined && this.#heldFor !== undefined ? `held by an administrator: ${this.#heldFor}` : reason
  }

  /**
   * Keeps the query from starting until `release`.
   * @param reason for the query's user
   * @returns false where the query does not wait
   */
  hold(reason: string): boolean {
    if (!this.#waiting?.hold()) return false
    this.#heldFor = reason
    return true
  }

  /** Lets the query start again once there is a slot. */
  release(): void {
    this.#heldFor = undefined
    this.#waiting?.release()
  }

  /**
   * Waits for a slot; QueryQueued and QueryAdmitted are recorded only when none is free at once.
   * @param recovered true for a query that an earlier coordinator accepted: it goes before new ones
   * @throws EngineError QUERY_QUEUE_FULL; the signal's reason once it is aborted
   */
  async enter(recovered = false): Promise<void> {
    const { groups, clock, record } = this.#deps
    const entrant = this.#entrant(recovered)
    const { signal } = entrant
    const held = this.#heldFor !== undefined
    let free = held ? undefined : groups.tryEnter(entrant)
    if (!free && !held && groups.reservation && !recovered) {
      this.#queuedReason = () => 'queries that waited before the coordinator was restarted come first'
      await groups.reservation.counted
      signal.throwIfAborted()
      this.#queuedReason = undefined
      free = groups.tryEnter(entrant)
    }
    if (free) {
      this.#slot = free
      return
    }
    this.#deps.onWait()
    const since = clock.monotonicMs()
    const waiting = groups.enter(entrant)
    this.#waiting = waiting
    const { queued, slot } = waiting
    await this.#wait(queued)
    const given = await slot
    this.#waiting = undefined
    signal.throwIfAborted()
    if (given) this.#slot = given
    this.#queuedReason = undefined
    const queuedNanos = Math.round((clock.monotonicMs() - since) * 1e6)
    await record([{ type: 'AdmitQuery', data: { resourceGroup: given?.group ?? queued.group, queuedNanos } }])
  }

  /** A query that had a slot before a restart keeps it, whatever the limit says. */
  occupy(): void {
    this.#slot = this.#deps.groups.occupy(this.#entrant(true))
  }

  /** Gives the slot back. */
  leave(): void {
    this.#slot?.release()
  }

  #entrant(recovered: boolean): Entrant {
    // The record is not awaited: a query that moves to another group waits as before.
    const held = this.#heldFor !== undefined
    return { ...this.#deps.entrant, recovered, held, moved: (queued) => void this.#wait(queued).catch(() => {}) }
  }

  async #wait(queued: Queued): Promise<void> {
    this.#queuedReason = () => queued.reason()
    const { group: resourceGroup, position } = queued
    await this.#deps.record([{ type: 'QueueQuery', data: { resourceGroup, reason: queued.reason(), position } }])
  }
}
