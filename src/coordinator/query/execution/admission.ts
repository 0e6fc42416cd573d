import type { Clock } from '../../../shared/clock.ts'
import type { TurnOwner } from '../../../shared/fair-queue.ts'
import type { GroupPlace, ResourceGroups } from '../../dispatch/resource-groups.ts'
import type { Recorder } from './first-append.ts'

interface AdmissionPorts {
  readonly groups: Pick<ResourceGroups, 'reservation' | 'tryEnter' | 'enter' | 'occupy'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The query's resource group. */
  readonly group: string
  /** Whose it is. */
  readonly owner: TurnOwner
  readonly signal: AbortSignal
  readonly record: Recorder['record']
}

/** The query's place in its resource group, and why it has none yet. */
export class Admission {
  readonly #ports: AdmissionPorts
  #place: GroupPlace | undefined
  #queuedReason: string | undefined

  constructor(ports: AdmissionPorts) {
    this.#ports = ports
  }

  /** Why it waits; undefined when it does not. */
  get queuedReason(): string | undefined {
    return this.#queuedReason
  }

  /**
   * Waits for a place; QueryQueued and QueryAdmitted tell of it only when there is none at once.
   * @param recovered it came to the coordinator before: earlier than whoever is new
   * @throws EngineError QUERY_QUEUE_FULL; the signal's reason once it is aborted
   */
  async enter(recovered = false): Promise<void> {
    const { groups, clock, group, owner, signal, record } = this.#ports
    let free = groups.tryEnter(group, signal, owner, recovered)
    if (!free && groups.reservation && !recovered) {
      this.#queuedReason = 'queries that waited before the coordinator was restarted come first'
      await groups.reservation.counted
      signal.throwIfAborted()
      this.#queuedReason = undefined
      free = groups.tryEnter(group, signal, owner, recovered)
    }
    if (free) {
      this.#place = free
      return
    }
    const since = clock.monotonicMs()
    const waiting = groups.enter(group, signal, owner, recovered)
    const why = waiting.full
      ? `resource group "${group}" is full`
      : `the other places of resource group "${group}" are for other users and addresses`
    const reason = `${why}; position ${waiting.position}`
    this.#queuedReason = reason
    await record([{ type: 'QueueQuery', data: { resourceGroup: group, reason, position: waiting.position } }])
    const given = await waiting.place
    signal.throwIfAborted()
    if (given) this.#place = given
    this.#queuedReason = undefined
    const queuedNanos = Math.round((clock.monotonicMs() - since) * 1e6)
    await record([{ type: 'AdmitQuery', data: { resourceGroup: group, queuedNanos } }])
  }

  /** A query that had a place before a restart keeps it, whatever the limit says. */
  occupy(): void {
    const { groups, group, signal } = this.#ports
    this.#place = groups.occupy(group, signal)
  }

  /** Gives the place back. */
  leave(): void {
    this.#place?.release()
  }
}
