import { groupText, type GroupPath } from './group-path.ts'
import type { GroupRule } from './group-rule.ts'
import type { GroupLevel } from './group-level.ts'
import { OwnerLine } from './owner-line.ts'
import { WaitingLine, type Line, type Waits } from './waiting-line.ts'

/** The limit that keeps the queries of a group from running. */
export type GroupLimit =
  | { readonly kind: 'hardConcurrencyLimit'; readonly group: string; readonly running: number; readonly limit: number }
  /** Used CPU time leaves the group only `limit` of its slots. */
  | { readonly kind: 'softCpuLimit'; readonly group: string; readonly running: number; readonly limit: number }
  | { readonly kind: 'hardCpuLimit'; readonly group: string; readonly usedMillis: number; readonly limitMillis: number }
  | {
      readonly kind: 'softMemoryLimit'
      readonly group: string
      readonly usedBytes: number
      readonly limitBytes: number
    }
  | {
      readonly kind: 'hardPhysicalDataScanLimit'
      readonly group: string
      readonly usedBytes: number
      readonly limitBytes: number
    }

/** The weight of a group below its soft limit is multiplied by this. */
const BELOW_SOFT = 2 ** 31 - 1

/** A group with the running and waiting queries and the usage in it and below. Only the tree changes it. */
export class GroupNode<T extends Waits> {
  readonly parent: GroupNode<T> | undefined
  /** The group's own name, the last of its path. */
  readonly key: string
  readonly path: GroupPath
  readonly text: string
  readonly subGroups = new Map<string, GroupNode<T>>()
  /** Sub-groups with a query to start, in the order in which they became eligible. */
  readonly eligible = new Set<GroupNode<T>>()
  readonly #line = new WaitingLine<T>()
  /** The line of a group in which owners take turns. */
  #ownerLine: OwnerLine<T> | undefined
  readonly runs = new Set<T>()
  /** Waiting queries that may not start until they are released. They are not in the line. */
  readonly held = new Set<T>()
  /** Both include all groups below. */
  running = 0
  queued = 0
  #level: GroupLevel
  #memoryLimitBytes = Infinity
  #cpuMillis = 0
  #memoryBytes = 0
  #scannedBytes = 0

  /** A new group has no rule until `setLevel`. */
  constructor(parent: GroupNode<T> | undefined, key: string) {
    this.parent = parent
    this.key = key
    this.path = parent ? [...parent.path, key] : []
    this.text = groupText(this.path)
    this.#level = { label: this.text, rule: undefined }
  }

  /** The same for all groups that a template makes. */
  get label(): string {
    return this.#level.label
  }

  /** Undefined for a group that the rules no longer have: its queries run on, and no new ones start. */
  get rule(): GroupRule | undefined {
    return this.#level.rule
  }

  /** The waiting queries of the group itself. */
  get line(): Line<T> {
    return this.#ownerLine ?? this.#line
  }

  get hardConcurrencyLimit(): number {
    return this.rule?.hardConcurrencyLimit ?? 0
  }

  get maxQueued(): number {
    return this.rule?.maxQueued ?? 0
  }

  get memoryLimitBytes(): number {
    return this.#memoryLimitBytes
  }

  get cpuMillis(): number {
    return this.#cpuMillis
  }

  get memoryBytes(): number {
    return this.#memoryBytes
  }

  get scannedBytes(): number {
    return this.#scannedBytes
  }

  /** Whether the group has used quotas that come back. */
  get isIndebted(): boolean {
    return this.#cpuMillis > 0 || this.#scannedBytes > 0
  }

  get isIdle(): boolean {
    const isEmpty = this.subGroups.size === 0 && this.running === 0 && this.queued === 0
    return isEmpty && !this.isIndebted && !this.line.isKept
  }

  setLevel(level: GroupLevel, memoryBytes: number): void {
    this.#level = level
    this.#line.policy = level.rule?.schedulingPolicy ?? 'fair'
    this.setMemory(memoryBytes)
  }

  /** Lets owners take turns from now on, in a group that has had no queries yet. */
  shareAmongOwners(): void {
    this.#ownerLine = new OwnerLine(this.hardConcurrencyLimit)
  }

  /** @param bytes the memory of the workers */
  setMemory(bytes: number): void {
    const limit = this.rule?.softMemoryLimit
    if (!limit) this.#memoryLimitBytes = Infinity
    else this.#memoryLimitBytes = 'bytes' in limit ? limit.bytes : limit.fraction * bytes
  }

  use(cpuMillis: number, memoryBytes: number, scannedBytes: number): void {
    this.#cpuMillis += cpuMillis
    this.#memoryBytes += memoryBytes
    this.#scannedBytes += scannedBytes
  }

  /** Gives back quotas. Usage without a limit is forgotten at once. */
  regenerate(seconds: number): void {
    this.#cpuMillis = Math.max(0, this.#cpuMillis - seconds * (this.rule?.cpuMillisPerSecond ?? Infinity))
    this.#scannedBytes = Math.max(0, this.#scannedBytes - seconds * (this.rule?.scanBytesPerSecond ?? Infinity))
  }

  canRunMore(): boolean {
    return this.limit() === undefined
  }

  canQueueMore(): boolean {
    return this.queued < this.maxQueued
  }

  /** Whether another query may wait while no query starts: the queries that could run then wait too. */
  canHoldMore(): boolean {
    return this.running + this.queued < this.maxQueued + this.hardConcurrencyLimit
  }

  isEligible(): boolean {
    return (this.line.length > 0 || this.eligible.size > 0) && this.canRunMore()
  }

  /** The limit that the group has reached; undefined: it may run more. */
  limit(): GroupLimit | undefined {
    const { rule, running, text: group } = this
    if (!rule) return this.parent && { kind: 'hardConcurrencyLimit', group, running, limit: 0 }
    const { hardCpuLimitMillis, hardScanLimitBytes, hardConcurrencyLimit } = rule
    if (this.#cpuMillis >= hardCpuLimitMillis)
      return { kind: 'hardCpuLimit', group, usedMillis: this.#cpuMillis, limitMillis: hardCpuLimitMillis }
    if (this.#memoryBytes > this.#memoryLimitBytes)
      return { kind: 'softMemoryLimit', group, usedBytes: this.#memoryBytes, limitBytes: this.#memoryLimitBytes }
    if (this.#scannedBytes >= hardScanLimitBytes) {
      const usedBytes = this.#scannedBytes
      return { kind: 'hardPhysicalDataScanLimit', group, usedBytes, limitBytes: hardScanLimitBytes }
    }
    if (running >= hardConcurrencyLimit)
      return { kind: 'hardConcurrencyLimit', group, running, limit: hardConcurrencyLimit }
    const limit = penalized(rule, this.#cpuMillis)
    return running < limit ? undefined : { kind: 'softCpuLimit', group, running, limit }
  }

  /** The group's lots in a draw among its siblings. */
  get lots(): number {
    const { softConcurrencyLimit = Infinity, schedulingWeight = 1 } = this.rule ?? {}
    return this.running < softConcurrencyLimit ? schedulingWeight * BELOW_SOFT : schedulingWeight
  }

  /** How many queries run in proportion to the group's weight, for comparison with its siblings. */
  get served(): number {
    return this.running / (this.rule?.schedulingWeight ?? 1)
  }

  /** The highest priority of the queries that the group could start. */
  get highestPriority(): number {
    let highest = this.line.highest
    for (const group of this.eligible) highest = Math.max(highest, group.highestPriority)
    return highest
  }
}

/**
 * The slots of a group by its used CPU time: between the soft and the hard limit it loses slots in proportion, at
 * least one, and keeps at least one.
 */
function penalized({ softCpuLimitMillis, hardCpuLimitMillis, hardConcurrencyLimit }: GroupRule, used: number): number {
  if (used < softCpuLimitMillis) return hardConcurrencyLimit
  const penalty = (used - softCpuLimitMillis) / (hardCpuLimitMillis - softCpuLimitMillis)
  const left = Math.floor(hardConcurrencyLimit * (1 - penalty))
  return Math.max(1, Math.min(hardConcurrencyLimit - 1, left))
}
