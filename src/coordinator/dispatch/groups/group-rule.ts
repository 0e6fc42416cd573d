import type { NameTemplate } from './name-template.ts'

/** How a group chooses among its sub-groups, in Trino's words. */
export const schedulingPolicies = ['fair', 'weighted', 'weighted_fair', 'query_priority'] as const
export type SchedulingPolicy = (typeof schedulingPolicies)[number]

/** A fraction of the workers' memory, or a number of bytes. */
export type MemoryLimit = { readonly fraction: number } | { readonly bytes: number }

/** The limits of a group in the file. Infinity: no limit. */
export interface GroupRule {
  readonly name: NameTemplate
  readonly maxQueued: number
  readonly softConcurrencyLimit: number
  readonly hardConcurrencyLimit: number
  readonly softMemoryLimit: MemoryLimit
  readonly softCpuLimitMillis: number
  readonly hardCpuLimitMillis: number
  /** How much used CPU time is forgiven each second. */
  readonly cpuMillisPerSecond: number
  readonly hardScanLimitBytes: number
  readonly scanBytesPerSecond: number
  readonly schedulingPolicy: SchedulingPolicy
  readonly schedulingWeight: number
  readonly subGroups: readonly GroupRule[]
}
