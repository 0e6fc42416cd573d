import { useQuery } from '@tanstack/react-query'
import type { NodeInfo, ResourceGroupInfo } from '../../src/protocol/info/wire-schemas.ts'
import { read } from './request.ts'

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
