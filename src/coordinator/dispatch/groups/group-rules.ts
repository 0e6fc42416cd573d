import { schedulingPolicies, type GroupRule, type MemoryLimit, type SchedulingPolicy } from './group-rule.ts'
import { z } from 'zod'
import { inSlices } from '../../../security/rules/read-in-slices.ts'
import { readStrictJson } from '../../../security/rules/read-rules.ts'
import { section, wrong } from '../../../security/rules/rule-patterns.ts'
import { groupSelector, type ChosenGroup, type GroupSelector } from './group-selector.ts'
import { labelledRules } from './group-level.ts'
import { nameTemplate } from './name-template.ts'
import { durationText, selectorSchema, sizeText } from './selector-schema.ts'
import { sizeBytes } from '../../../shared/quantities.ts'

/** The content of a file of resource groups, or the one group that exists without a file. */
export interface GroupRules {
  readonly rootGroups: readonly GroupRule[]
  /** The first selector that fits decides. */
  readonly selectors: readonly GroupSelector[]
  /**
   * Without a file: the group of all queries. Users take turns in it, its limits are the only ones, and usage is not
   * counted.
   */
  readonly single?: ChosenGroup
}

const count = z
  .int()
  .min(0)
  .max(2 ** 31 - 1)

const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((given) => given ?? undefined)

const memoryText = z.string().transform((text, context): MemoryLimit => {
  const percent = /^(\d{1,3}(?:\.\d+)?)%$/.exec(text)?.[1]
  if (percent === undefined) {
    const bytes = sizeBytes(text)
    return bytes === undefined ? wrong(context, [], `'${text}' is neither a data size nor a percentage`) : { bytes }
  }
  const fraction = Number(percent) / 100
  return fraction > 1 ? wrong(context, [], 'softMemoryLimit percentage is over 100%') : { fraction }
})

const policyText = z
  .string()
  .transform((text) => text.toLowerCase())
  .pipe(z.enum(schedulingPolicies))

const groupKeys = z.strictObject({
  name: z.string().min(1),
  maxQueued: count,
  softConcurrencyLimit: optional(count),
  hardConcurrencyLimit: optional(count),
  maxRunning: optional(count),
  softMemoryLimit: optional(memoryText),
  softCpuLimit: optional(durationText),
  hardCpuLimit: optional(durationText),
  hardPhysicalDataScanLimit: optional(sizeText),
  schedulingPolicy: optional(policyText),
  schedulingWeight: optional(
    z
      .int()
      .min(1)
      .max(2 ** 31 - 1),
  ),
  // Accepted and ignored: the figures of every group are exported.
  jmxExport: optional(z.boolean()),
  get subGroups() {
    return section(groupKeys)
  },
})

type GroupKeys = z.output<typeof groupKeys>

const periodKeys = {
  cpuQuotaPeriod: optional(durationText),
  physicalDataScanQuotaPeriod: optional(durationText),
}

const fileSchema = z
  .strictObject({ rootGroups: z.array(groupKeys), selectors: z.array(selectorSchema), ...periodKeys })
  .transform((file, context): GroupRules => {
    const complain: Complain = (path, message) =>
      context.addIssue({ code: 'custom', message, path: [...path], input: file })
    const rootGroups = groupsOf(file.rootGroups, 'fair', periodsOf(file), ['rootGroups'], complain)
    const labels = labelsOf(rootGroups)
    const selectors = file.selectors.map((keys, index) => {
      const path = ['selectors', index]
      return groupSelector(keys, rootGroups, labels, (key, message) => complain([...path, key], message))
    })
    return { rootGroups, selectors }
  })

type Complain = (path: readonly (string | number)[], message: string) => void

interface Periods {
  readonly cpuMillis: number | undefined
  readonly scanMillis: number | undefined
}

function periodsOf(file: {
  readonly cpuQuotaPeriod: number | undefined
  readonly physicalDataScanQuotaPeriod: number | undefined
}): Periods {
  return { cpuMillis: file.cpuQuotaPeriod, scanMillis: file.physicalDataScanQuotaPeriod }
}

function labelsOf(rootGroups: readonly GroupRule[]): ReadonlySet<string> {
  return new Set([...labelledRules(rootGroups)].map(([label]) => label))
}

function groupsOf(
  groups: readonly GroupKeys[],
  above: SchedulingPolicy,
  periods: Periods,
  path: readonly (string | number)[],
  complain: Complain,
): readonly GroupRule[] {
  const names = new Set<string>()
  return groups.map((keys, index) => {
    const at = [...path, index]
    if (names.has(keys.name)) complain([...at, 'name'], `The group '${keys.name}' occurs twice`)
    names.add(keys.name)
    return groupOf(keys, above, periods, at, complain)
  })
}

function groupOf(
  keys: GroupKeys,
  above: SchedulingPolicy,
  periods: Periods,
  path: readonly (string | number)[],
  complain: Complain,
): GroupRule {
  const hard = keys.hardConcurrencyLimit ?? keys.maxRunning
  if (hard === undefined) complain(path, 'hardConcurrencyLimit is missing')
  const hardConcurrencyLimit = hard ?? 0
  const softConcurrencyLimit = keys.softConcurrencyLimit ?? hardConcurrencyLimit
  if (softConcurrencyLimit > hardConcurrencyLimit)
    complain([...path, 'softConcurrencyLimit'], 'softConcurrencyLimit is greater than hardConcurrencyLimit')
  const schedulingPolicy = keys.schedulingPolicy ?? (above === 'query_priority' ? above : 'fair')
  if (above === 'query_priority' && schedulingPolicy !== above)
    complain([...path, 'schedulingPolicy'], 'The group above schedules by query_priority, so this one must, too')
  const subGroups = keys.subGroups ?? []
  // As in Trino: sub-groups of a group without a policy of its own may have weights, which then have no effect.
  if (keys.schedulingPolicy) checkWeights(keys.schedulingPolicy, subGroups, path, complain)
  return {
    name: nameTemplate(keys.name),
    maxQueued: keys.maxQueued,
    softConcurrencyLimit,
    hardConcurrencyLimit,
    softMemoryLimit: keys.softMemoryLimit ?? { fraction: 1 },
    ...quotasOf(keys, periods, path, complain),
    schedulingPolicy,
    schedulingWeight: keys.schedulingWeight ?? 1,
    subGroups: groupsOf(subGroups, schedulingPolicy, periods, [...path, 'subGroups'], complain),
  }
}

/** Checks that all sub-groups have weights or none, and only where weights have a meaning. */
function checkWeights(
  policy: SchedulingPolicy,
  subGroups: readonly GroupKeys[],
  path: readonly (string | number)[],
  complain: Complain,
): void {
  const weighed = subGroups.filter(({ schedulingWeight }) => schedulingWeight !== undefined).length
  if (weighed === 0) return
  if (policy !== 'weighted' && policy !== 'weighted_fair')
    complain(
      [...path, 'subGroups'],
      "A schedulingWeight needs the schedulingPolicy 'weighted' or 'weighted_fair' of the group above",
    )
  else if (weighed < subGroups.length)
    complain([...path, 'subGroups'], 'Either all sub-groups have a schedulingWeight or none of them')
}

function quotasOf(
  { softCpuLimit, hardCpuLimit, hardPhysicalDataScanLimit: scan }: GroupKeys,
  { cpuMillis, scanMillis }: Periods,
  path: readonly (string | number)[],
  complain: Complain,
): Pick<
  GroupRule,
  'softCpuLimitMillis' | 'hardCpuLimitMillis' | 'cpuMillisPerSecond' | 'hardScanLimitBytes' | 'scanBytesPerSecond'
> {
  if (softCpuLimit !== undefined && hardCpuLimit === undefined)
    complain([...path, 'softCpuLimit'], 'softCpuLimit needs a hardCpuLimit beside it')
  if (softCpuLimit !== undefined && hardCpuLimit !== undefined && softCpuLimit > hardCpuLimit)
    complain([...path, 'softCpuLimit'], 'softCpuLimit is greater than hardCpuLimit')
  if (hardCpuLimit !== undefined && !cpuMillis) complain([...path, 'hardCpuLimit'], 'CPU limits need a cpuQuotaPeriod')
  if (scan !== undefined && !scanMillis)
    complain([...path, 'hardPhysicalDataScanLimit'], 'A scan limit needs a physicalDataScanQuotaPeriod')
  const hard = hardCpuLimit ?? Infinity
  return {
    softCpuLimitMillis: softCpuLimit ?? hard,
    hardCpuLimitMillis: hard,
    cpuMillisPerSecond: perSecond(hard, cpuMillis),
    hardScanLimitBytes: scan ?? Infinity,
    scanBytesPerSecond: perSecond(scan ?? Infinity, scanMillis),
  }
}

function perSecond(limit: number, periodMillis: number | undefined): number {
  return limit === Infinity || !periodMillis ? Infinity : Math.max(1, Math.floor((1000 * limit) / periodMillis))
}

/**
 * Reads a whole file of resource groups in Trino's JSON: one error anywhere makes the whole file invalid.
 * @throws Error whose text begins with the line
 */
export function readGroupRules(text: string): GroupRules {
  return readStrictJson(text, fileSchema)
}

type RawGroup = Readonly<Record<string, unknown>> & { readonly subGroups?: readonly RawGroup[] | null }

interface RawFile {
  readonly rootGroups: readonly RawGroup[]
  readonly selectors: readonly unknown[]
}

/**
 * Reads, in slices, a text that `readGroupRules` has accepted elsewhere, so that ten thousand groups block the event
 * loop no longer than one statement.
 * @param nextSlice resolves when other work had the event loop
 */
export async function readGroupRulesInSlices(text: string, nextSlice: () => Promise<void>): Promise<GroupRules> {
  await nextSlice()
  const file = JSON.parse(text) as RawFile
  const periods = periodsOf(z.object(periodKeys).parse(file))
  const keys = await groupKeysInSlices(file.rootGroups, nextSlice)
  await nextSlice()
  const rootGroups = groupsOf(keys, 'fair', periods, [], taken)
  await nextSlice()
  const labels = labelsOf(rootGroups)
  const selectors = await inSlices(file.selectors, nextSlice, (some) =>
    z
      .array(selectorSchema)
      .parse(some)
      .map((one) => groupSelector(one, rootGroups, labels, taken)),
  )
  return { rootGroups, selectors }
}

/** Each group with its sub-groups, in slices, however many there are. */
async function groupKeysInSlices(groups: readonly RawGroup[], nextSlice: () => Promise<void>): Promise<GroupKeys[]> {
  const read = await inSlices(groups, nextSlice, (some) =>
    z.array(groupKeys).parse(some.map(({ subGroups: _, ...own }) => own)),
  )
  for (const [index, { subGroups }] of groups.entries())
    if (subGroups && subGroups.length > 0) read[index]!.subGroups = await groupKeysInSlices(subGroups, nextSlice)
  return read
}

/** The text was checked before, so a complaint is a bug. */
function taken(_where: unknown, message: string): never {
  throw new Error(message)
}
