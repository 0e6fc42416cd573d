import type { SchedulingPolicy } from './group-rule.ts'
import type { GroupPath } from './group-path.ts'
import type { TreeGroup } from './group-tree.ts'

/** The state of a group now. Infinity: no limit. */
export interface GroupState {
  readonly path: GroupPath
  readonly state: 'CAN_RUN' | 'CAN_QUEUE' | 'FULL'
  readonly schedulingPolicy: SchedulingPolicy
  readonly schedulingWeight: number
  readonly softMemoryLimitBytes: number
  readonly softConcurrencyLimit: number
  readonly hardConcurrencyLimit: number
  readonly hardScanLimitBytes: number
  readonly maxQueued: number
  readonly memoryBytes: number
  readonly cpuMillis: number
  readonly scannedBytes: number
  /** Both include all groups below. */
  readonly running: number
  readonly queued: number
  readonly eligibleSubGroups: number
  /** The sub-groups with queries, without their own sub-groups. */
  readonly subGroups: readonly Omit<GroupState, 'subGroups'>[]
}

export function groupState<T>(node: TreeGroup<T>): GroupState {
  const busy = [...node.subGroups.values()].filter(({ running, queued }) => running + queued > 0)
  return { ...summary(node), subGroups: busy.map((group) => summary(group)) }
}

function summary<T>(node: TreeGroup<T>): Omit<GroupState, 'subGroups'> {
  const { rule, path, hardConcurrencyLimit, maxQueued, memoryLimitBytes, memoryBytes, cpuMillis, scannedBytes } = node
  const { running, queued, eligible } = node
  return {
    path,
    state: node.canRunMore() ? 'CAN_RUN' : node.canQueueMore() ? 'CAN_QUEUE' : 'FULL',
    schedulingPolicy: node.line.policy,
    schedulingWeight: rule?.schedulingWeight ?? 1,
    softMemoryLimitBytes: memoryLimitBytes,
    softConcurrencyLimit: rule?.softConcurrencyLimit ?? Infinity,
    hardConcurrencyLimit,
    hardScanLimitBytes: rule?.hardScanLimitBytes ?? Infinity,
    maxQueued,
    memoryBytes,
    cpuMillis,
    scannedBytes,
    running,
    queued,
    eligibleSubGroups: eligible.size,
  }
}
