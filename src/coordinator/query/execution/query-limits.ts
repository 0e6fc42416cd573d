import type { TaskBounds } from '../../../execution/api/task.ts'
import type { SessionContext } from '../../../sql/session.ts'
import { dataSizeOf, durationOf, durationOfMillis, sizeOfBytes, type Quantity } from '../../../shared/quantities.ts'
import { propertyValue, type ActingProperty } from '../../../sql/session/session-properties.ts'
import type { QueryUsage } from '../../dispatch/groups/group-tree.ts'
import { unreachable } from '../../../shared/unreachable.ts'

/** Upper limits of this server for any query, whatever its session asks for. An absent field is no limit. */
export interface ServerBounds {
  readonly runMs: number
  readonly executionMs: number
  readonly planningMs: number
  readonly cpuMs?: number | undefined
  readonly memoryBytes?: number | undefined
  readonly nodeMemoryBytes?: number | undefined
  readonly scanBytes?: number | undefined
}

/** The limits of one query: the smaller of the session's and the server's. Nanoseconds, bytes. */
export interface QueryLimits {
  readonly runTime: Quantity
  readonly executionTime: Quantity
  readonly planningTime: Quantity
  readonly cpuTime: Quantity | undefined
  readonly memory: Quantity | undefined
  readonly nodeMemory: Quantity | undefined
  readonly scan: Quantity | undefined
  /** How many times a task may be begun. */
  readonly attempts: number
}

type Session = Pick<SessionContext, 'properties'>

export function queryLimits(session: Session, bounds: ServerBounds, maxAttempts: number): QueryLimits {
  const { runTime, executionTime, planningTime, ...others } = boundQuantities(bounds)
  return {
    runTime: smaller(durationOf(propertyValue(session, 'query_max_run_time')), runTime),
    executionTime: smaller(durationOf(propertyValue(session, 'query_max_execution_time')), executionTime),
    planningTime: smaller(durationOf(propertyValue(session, 'query_max_planning_time')), planningTime),
    cpuTime: smallest(durationOf(propertyValue(session, 'query_max_cpu_time')), others.cpuTime),
    memory: smallest(sizeIn(propertyValue(session, 'query_max_memory')), others.memory),
    nodeMemory: smallest(sizeIn(propertyValue(session, 'query_max_memory_per_node')), others.nodeMemory),
    scan: smallest(sizeIn(propertyValue(session, 'query_max_scan_physical_bytes')), others.scan),
    attempts: Math.min(maxAttempts, 1 + retriesOf(session)),
  }
}

/** The properties that the server bounds, and by how much. */
export function boundedProperties(bounds: ServerBounds): Readonly<Partial<Record<ActingProperty, Quantity>>> {
  const { runTime, executionTime, planningTime, cpuTime, memory, nodeMemory, scan } = boundQuantities(bounds)
  return {
    query_max_run_time: runTime,
    query_max_execution_time: executionTime,
    query_max_planning_time: planningTime,
    ...(cpuTime && { query_max_cpu_time: cpuTime }),
    ...(memory && { query_max_memory: memory }),
    ...(nodeMemory && { query_max_memory_per_node: nodeMemory }),
    ...(scan && { query_max_scan_physical_bytes: scan }),
  }
}

/** By the settings of a server, which are one object for its life. */
const quantitiesOf = new WeakMap<ServerBounds, BoundQuantities>()

type BoundQuantities = ReturnType<typeof makeBoundQuantities>

function boundQuantities(bounds: ServerBounds): BoundQuantities {
  const known = quantitiesOf.get(bounds) ?? makeBoundQuantities(bounds)
  quantitiesOf.set(bounds, known)
  return known
}

function makeBoundQuantities(bounds: ServerBounds) {
  const { cpuMs, memoryBytes, nodeMemoryBytes, scanBytes } = bounds
  return {
    runTime: durationOfMillis(bounds.runMs),
    executionTime: durationOfMillis(bounds.executionMs),
    planningTime: durationOfMillis(bounds.planningMs),
    cpuTime: cpuMs === undefined ? undefined : durationOfMillis(cpuMs),
    memory: memoryBytes === undefined ? undefined : sizeOfBytes(memoryBytes),
    nodeMemory: nodeMemoryBytes === undefined ? undefined : sizeOfBytes(nodeMemoryBytes),
    scan: scanBytes === undefined ? undefined : sizeOfBytes(scanBytes),
  }
}

/** The part of the query's remaining limits that a task may use; undefined where nothing is limited. */
export function taskBounds(
  limits: QueryLimits,
  spent: Pick<QueryUsage, 'cpuMillis' | 'scannedBytes'>,
): TaskBounds | undefined {
  const { cpuTime, memory, nodeMemory, scan } = limits
  if (!cpuTime && !memory && !nodeMemory && !scan) return undefined
  const local = nodeMemory && (!memory || nodeMemory.amount < memory.amount)
  const held = local ? nodeMemoryFailure(nodeMemory) : memory && memoryFailure(memory)
  const bytes = local ? nodeMemory.amount : memory?.amount
  return {
    ...(cpuTime && { cpu: { most: cpuTime.amount - spent.cpuMillis * 1e6, ...cpuFailure(cpuTime) } }),
    ...(held && bytes !== undefined && { memory: { most: bytes, ...held } }),
    ...(scan && { scan: { most: scan.amount - spent.scannedBytes, ...scanFailure(scan) } }),
  }
}

// Messages in Trino's words.

export const cpuFailure = ({ shown }: Quantity) => ({
  errorName: 'EXCEEDED_CPU_LIMIT' as const,
  message: `Exceeded CPU limit of ${shown}`,
})

export const memoryFailure = ({ shown }: Quantity) => ({
  errorName: 'EXCEEDED_GLOBAL_MEMORY_LIMIT' as const,
  message: `Query exceeded distributed user memory limit of ${shown}`,
})

export const scanFailure = ({ shown }: Quantity) => ({
  errorName: 'EXCEEDED_SCAN_LIMIT' as const,
  message: `Exceeded scan limit of ${shown}`,
})

function nodeMemoryFailure({ shown }: Quantity) {
  const message = `Query exceeded per-node memory limit of ${shown} [of the process of its engine]`
  return { errorName: 'EXCEEDED_LOCAL_MEMORY_LIMIT' as const, message }
}

/** A query is one stage with one task: to begin the query again is to begin its task again. */
function retriesOf(session: Session): number {
  const policy = propertyValue(session, 'retry_policy').toUpperCase() as 'NONE' | 'TASK' | 'QUERY'
  switch (policy) {
    case 'NONE':
      return 0
    case 'TASK':
      return propertyValue(session, 'task_retry_attempts_per_task')
    case 'QUERY':
      return propertyValue(session, 'query_retry_attempts')
    default:
      return unreachable(policy)
  }
}

function sizeIn(text: string | undefined): Quantity | undefined {
  return text === undefined ? undefined : dataSizeOf(text)
}

function smaller(asked: Quantity | undefined, bound: Quantity): Quantity {
  return asked && asked.amount < bound.amount ? asked : bound
}

/**
 * The smaller limit; undefined above the safe integers, as Trino's default for CPU is: a number cannot count that far.
 */
function smallest(asked: Quantity | undefined, bound: Quantity | undefined): Quantity | undefined {
  const least = bound ? smaller(asked, bound) : asked
  return least && least.amount <= Number.MAX_SAFE_INTEGER ? least : undefined
}
