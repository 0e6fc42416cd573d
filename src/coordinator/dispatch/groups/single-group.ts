import type { GroupLimits, ResourceGroups } from '../resource-groups.ts'
import { ConfiguredGroups } from './configured-groups.ts'
import type { GroupRule } from './group-rule.ts'
import type { GroupRules } from './group-rules.ts'
import { nameTemplate } from './name-template.ts'

export const GLOBAL_GROUP = 'global'

/** The groups without a file of rules: one group for all queries, in which users take turns. */
export function createResourceGroups(limits: GroupLimits): ResourceGroups {
  const rules = singleGroup(limits)
  return new ConfiguredGroups({ rules: () => rules, memory: () => 0, clock: { monotonicMs: () => 0 } })
}

function singleGroup({ running, queued }: GroupLimits): GroupRules {
  const rule: GroupRule = {
    name: nameTemplate(GLOBAL_GROUP),
    maxQueued: queued,
    softConcurrencyLimit: running,
    hardConcurrencyLimit: running,
    softMemoryLimit: { bytes: Infinity },
    softCpuLimitMillis: Infinity,
    hardCpuLimitMillis: Infinity,
    cpuMillisPerSecond: Infinity,
    hardScanLimitBytes: Infinity,
    scanBytesPerSecond: Infinity,
    schedulingPolicy: 'fair',
    schedulingWeight: 1,
    subGroups: [],
  }
  const levels = [{ label: GLOBAL_GROUP, rule }]
  return { rootGroups: [rule], selectors: [], single: { path: [GLOBAL_GROUP], levels, leaf: true } }
}
