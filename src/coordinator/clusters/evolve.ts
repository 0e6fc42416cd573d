import type { ClusterName } from '../../shared/ids.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { ClusterHealth, ClusterState } from './state.ts'
import type { ClusterEvent } from './events.ts'

/** A cluster as the log has it. Times are ISO. */
export interface RecordedCluster {
  readonly name: ClusterName
  readonly url: string
  readonly group: string
  readonly digest: string
  /** Whether a file describes the cluster now. */
  readonly present: boolean
  readonly state: ClusterState
  /** The user that asked for the state, the reason and the time; undefined if no user asked. */
  readonly stateBy: string | undefined
  readonly stateReason: string | undefined
  readonly stateSince: string | undefined
  readonly health: ClusterHealth
  readonly healthReason: string | undefined
  readonly healthSince: string
}

/** Applies an event to a cluster. @returns undefined when no event has described the cluster yet */
export function evolveCluster(before: RecordedCluster | undefined, event: ClusterEvent): RecordedCluster | undefined {
  const { time } = event
  switch (event.type) {
    case 'ClusterFound': {
      const { name, url, group, digest } = event.data
      const same = before?.present === true && before.url === url
      return {
        state: 'ACTIVE',
        stateBy: undefined,
        stateReason: undefined,
        stateSince: undefined,
        health: 'PENDING',
        healthReason: undefined,
        healthSince: time,
        ...before,
        ...(before && !same && pendingSince(before, time)),
        name,
        url,
        group,
        digest,
        present: true,
      }
    }
    case 'ClusterGone':
      return before && { ...before, present: false }
    case 'ClusterStateAsked': {
      const { after, by, reason } = event.data
      return before && { ...before, state: after, stateBy: by, stateReason: reason, stateSince: time }
    }
    case 'ClusterHealthChanged': {
      const { after, reason, detail } = event.data
      const healthReason = detail === undefined ? reason : `${reason}: ${detail}`
      return before && { ...before, health: after, healthReason, healthSince: time }
    }
    default:
      return unreachable(event)
  }
}

function pendingSince(
  { present }: RecordedCluster,
  time: string,
): Pick<RecordedCluster, 'health' | 'healthReason' | 'healthSince'> {
  return { health: 'PENDING', healthReason: present ? 'address_changed' : undefined, healthSince: time }
}
