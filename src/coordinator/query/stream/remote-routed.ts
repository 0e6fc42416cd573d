import type { Routed } from './events.ts'

/** The part of QueryPlanned that says where a statement was delegated to, and why. */
export type RemoteRouted = Extract<Routed, { to: 'group' | 'cluster' }>

/** Whether a statement was delegated. */
export function isRemote(routed: Routed | undefined): routed is RemoteRouted {
  return routed?.to === 'group' || routed?.to === 'cluster'
}

/** Whether a statement was delegated that may change something at its cluster. */
export function changesAtCluster(routed: Routed | undefined): routed is RemoteRouted {
  return isRemote(routed) && !routed.readOnly
}
