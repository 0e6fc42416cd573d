import type { EventAppender } from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import type { ClusterName } from '../../shared/ids.ts'
import type { ClusterStates } from './cluster-states.ts'
import {
  clusterEventSchemas,
  clusterEventVersions,
  clusterStream,
  type ClusterEvent,
  type ClusterEventData,
  type ClusterEventType,
} from './events.ts'

/** Records the events of clusters. The events of one cluster are appended one after the other. */
export interface ClusterJournal {
  /**
   * Waits until the earlier events of the cluster are valid or refused, then makes an event and appends it.
   * @param make called after that wait; returns the data, or undefined when there is nothing to record
   * @returns a promise that resolves once the event is valid and applied to the states; it rejects as an append does
   */
  record<T extends ClusterEventType>(
    name: ClusterName,
    type: T,
    make: () => ClusterEventData<T> | undefined,
  ): Promise<void>
  /** Resolves when no event waits to be written. */
  settled(): Promise<void>
}

export interface ClusterJournalDeps {
  readonly log: EventAppender
  readonly clock: Pick<Clock, 'now'>
  readonly states: Pick<ClusterStates, 'apply'>
  readonly onEvent: (event: ClusterEvent) => void
}

export function createClusterJournal({ log, clock, states, onEvent }: ClusterJournalDeps): ClusterJournal {
  const queues = new Map<ClusterName, Promise<void>>()

  async function append<T extends ClusterEventType>(
    name: ClusterName,
    type: T,
    make: () => ClusterEventData<T> | undefined,
  ): Promise<void> {
    const made = make()
    if (!made) return
    const data = clusterEventSchemas[type].parse(made)
    const time = new Date(clock.now()).toISOString()
    const appended = await log.append(clusterStream(name), 'end', [{ type, v: clusterEventVersions[type], time, data }])
    states.apply(appended.events)
    onEvent({ type, time, data } as ClusterEvent)
  }

  return {
    record(name, type, make) {
      const before = queues.get(name) ?? Promise.resolve()
      const next = before.then(() => append(name, type, make))
      // Only the caller gets the error: an event that the log refuses does not stop the next one.
      const settled = next
        .catch(() => {})
        .finally(() => {
          if (queues.get(name) === settled) queues.delete(name)
        })
      queues.set(name, settled)
      return next
    },
    async settled() {
      await Promise.all(queues.values())
    },
  }
}
