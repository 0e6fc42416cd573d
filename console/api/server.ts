import { useQuery } from '@tanstack/react-query'
import type { ClusterInfo, NodeInfo, ResourceGroupInfo, ServerStatus } from '../../src/protocol/info/schemas/server.ts'
import { read, send } from './request.ts'

const EVERY_MS = 2000

/** Reads the workers and their health, every two seconds. */
export function useNodes() {
  return useQuery({
    queryKey: ['nodes'],
    refetchInterval: EVERY_MS,
    queryFn: ({ signal }) => read<NodeInfo[]>('/v1/node', signal),
  })
}

/**
 * Reads resource groups, every two seconds.
 * @param names segments of a group's path; none: the groups at the top
 */
export function useResourceGroups(names: readonly string[]) {
  return useQuery({
    queryKey: ['groups', ...names],
    refetchInterval: EVERY_MS,
    async queryFn({ signal }): Promise<{ readonly group?: ResourceGroupInfo; readonly groups: ResourceGroupInfo[] }> {
      if (names.length === 0) return { groups: await read<ResourceGroupInfo[]>('/v1/resourceGroupState', signal) }
      const path = names.map(encodeURIComponent).join('/')
      const group = await read<ResourceGroupInfo>(`/v1/resourceGroupState/${path}`, signal)
      return { group, groups: [...(group.subGroups ?? [])] }
    },
  })
}

/** Reads the state of the coordinator that answers: writer, epoch, lag, dependencies; every two seconds. */
export function useServerStatus() {
  return useQuery<ServerStatus>({
    queryKey: ['status'],
    refetchInterval: EVERY_MS,
    queryFn: ({ signal }) => read<ServerStatus>('/v1/status', signal),
  })
}

/** Reads the clusters to which statements can be sent, every two seconds. */
export function useClusters() {
  return useQuery<ClusterInfo[]>({
    queryKey: ['clusters'],
    refetchInterval: EVERY_MS,
    queryFn: ({ signal }) => read<ClusterInfo[]>('/v1/cluster', signal),
  })
}

/** Asks a worker to finish its tasks, take no new ones, and end. */
export async function drainWorker(nodeId: string): Promise<void> {
  await send(`/v1/node/${encodeURIComponent(nodeId)}/state`, { method: 'PUT', body: JSON.stringify('SHUTTING_DOWN') })
}

/** Changes which statements a cluster gets. @param reason for the record; empty: none */
export async function setClusterState(name: string, state: ClusterInfo['state'], reason: string): Promise<void> {
  await send(`/v1/cluster/${encodeURIComponent(name)}/state`, {
    method: 'PUT',
    body: JSON.stringify({ state, ...(reason === '' ? {} : { reason }) }),
  })
}
