import { formatDuration, formatSize } from '../../../shared/durations.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { GroupLimit } from './group-node.ts'
import type { TreeGroup } from './group-tree.ts'

/** The text of a reached limit, for the user of a query that waits for it. */
export function limitText(limit: GroupLimit): string {
  const { group, kind } = limit
  switch (kind) {
    case 'hardConcurrencyLimit':
      return `resource group "${group}" runs ${limit.running}, its hardConcurrencyLimit is ${limit.limit}`
    case 'softCpuLimit':
      return `resource group "${group}" runs ${limit.running}, and past its softCpuLimit it may run ${limit.limit}`
    case 'hardCpuLimit':
      return `resource group "${group}" has used ${duration(limit.usedMillis)} of CPU, its hardCpuLimit is ${duration(limit.limitMillis)}`
    case 'softMemoryLimit':
      return `resource group "${group}" takes ${formatSize(limit.usedBytes)} of memory, its softMemoryLimit is ${formatSize(limit.limitBytes)}`
    case 'hardPhysicalDataScanLimit':
      return `resource group "${group}" has read ${formatSize(limit.usedBytes)}, its hardPhysicalDataScanLimit is ${formatSize(limit.limitBytes)}`
    default:
      return unreachable(kind)
  }
}

/** The same for the single group, in which owners take turns. */
export function ownersText({ text, running, hardConcurrencyLimit }: SingleGroup): string {
  if (running >= hardConcurrencyLimit) return `resource group "${text}" is full`
  return `the other places of resource group "${text}" are for other users and addresses`
}

type SingleGroup = Pick<TreeGroup<unknown>, 'text' | 'running' | 'hardConcurrencyLimit'>

function duration(millis: number): string {
  return formatDuration(millis * 1e6)
}
