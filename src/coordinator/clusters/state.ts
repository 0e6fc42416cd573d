/** What operators asked for. Only an ACTIVE cluster gets new statements; running ones go on in every state. */
export const clusterStates = ['ACTIVE', 'DRAINING', 'INACTIVE'] as const
export type ClusterState = (typeof clusterStates)[number]

/**
 * What checks and requests show. PENDING: it answers again, or was never asked, and has to prove itself. Only a HEALTHY
 * cluster gets statements.
 */
export const clusterHealths = ['PENDING', 'HEALTHY', 'UNHEALTHY'] as const
export type ClusterHealth = (typeof clusterHealths)[number]
