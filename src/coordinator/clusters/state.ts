/**
 * The states that operators ask for. Only an ACTIVE cluster gets new statements. Running statements continue in each
 * state.
 */
export const clusterStates = ['ACTIVE', 'DRAINING', 'INACTIVE'] as const
export type ClusterState = (typeof clusterStates)[number]

/**
 * The health that checks and requests show. PENDING: the cluster starts, was never checked, or answers again after
 * failures; it must first answer twice in a row. Only a HEALTHY cluster gets statements.
 */
export const clusterHealths = ['PENDING', 'HEALTHY', 'UNHEALTHY'] as const
export type ClusterHealth = (typeof clusterHealths)[number]
