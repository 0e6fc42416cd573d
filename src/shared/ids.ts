import { EngineError } from './engine-error.ts'

declare const brand: unique symbol

/** `yyyymmdd_hhmmss_NNNNN_xxxxx`: UTC time, a counter, and in base 32 the epoch of the coordinator that made the id. */
export type QueryId = string & { readonly [brand]: 'QueryId' }
/** `{queryId}.{stage}`; stage 0 is the root. */
export type StageId = string & { readonly [brand]: 'StageId' }
/** `{queryId}.{stage}.{task}`; a retry is a new task number. */
export type TaskId = string & { readonly [brand]: 'TaskId' }
/** `worker-{random}` or `coordinator-{pid}`, or the name that the operator chose. */
export type NodeId = string & { readonly [brand]: 'NodeId' }
/** The name of a cluster that answers delegated statements: the name of its file, without `.json`. */
export type ClusterName = string & { readonly [brand]: 'ClusterName' }

const QUERY_ID = /^\d{8}_\d{6}_\d{5}_[0-9a-v]{5,13}$/
const TASK_ID = /^(\d{8}_\d{6}_\d{5}_[0-9a-v]{5,13})\.(\d{1,6})\.(\d{1,9})$/
/** A node id is part of a stream's name. */
export const NODE_ID = /^[\w.:-]{1,200}$/

export function isQueryId(text: string): text is QueryId {
  return QUERY_ID.test(text)
}

/** @throws EngineError NOT_FOUND when the text does not have the form of a query id */
export function parseQueryId(text: string): QueryId {
  if (!isQueryId(text)) throw new EngineError('NOT_FOUND', 'Query not found')
  return text
}

/** The query of a stream: a query's stream is named by its id. */
export function queryOfStream(stream: string): QueryId {
  return stream as QueryId
}

/**
 * The stage that gives the client its result. It runs in the coordinator. Other stages run on workers, or at a cluster.
 */
export const ROOT_STAGE = 0

export function stageId(queryId: QueryId, stage: number): StageId {
  return `${queryId}.${stage}` as StageId
}

export function taskId(queryId: QueryId, stage: number, task: number): TaskId {
  return `${queryId}.${stage}.${task}` as TaskId
}

export interface TaskIdParts {
  readonly queryId: QueryId
  readonly stage: number
  readonly task: number
}

/** The parts of a task id; undefined if the text does not have its form. */
export function splitTaskId(text: string): TaskIdParts | undefined {
  const match = TASK_ID.exec(text)
  if (!match) return undefined
  return { queryId: match[1] as QueryId, stage: Number(match[2]), task: Number(match[3]) }
}

/** @throws EngineError NOT_FOUND when the text does not have the form of a task id */
export function parseTaskId(text: string): TaskId {
  if (!TASK_ID.test(text)) throw new EngineError('NOT_FOUND', 'Task not found')
  return text as TaskId
}

export function isNodeId(text: string): text is NodeId {
  return NODE_ID.test(text)
}

/** @throws EngineError NOT_FOUND when the text cannot name a node */
export function parseNodeId(text: string): NodeId {
  if (!isNodeId(text)) throw new EngineError('NOT_FOUND', 'Node not found')
  return text
}

/** A cluster's name is part of a stream's name, of paths and of metrics. */
const CLUSTER_NAME = /^[a-z0-9_-]{1,60}$/

export function isClusterName(text: string): text is ClusterName {
  return CLUSTER_NAME.test(text)
}

/** The node of a stage that only relays: the coordinator that writes at the time. */
export const COORDINATOR = 'coordinator' as NodeId

/** The epoch of the coordinator that made a query id; undefined for any other text. */
export function epochOf(text: string): number | undefined {
  return isQueryId(text) ? Number.parseInt(text.slice(text.lastIndexOf('_') + 1), 32) : undefined
}

/** The parts of a query id. */
export interface QueryIdParts {
  /** Seconds since the epoch. */
  readonly second: number
  readonly counter: number
  /** The epoch of the coordinator that made the id. */
  readonly epoch: number
}

export function splitQueryId(queryId: QueryId): QueryIdParts {
  const [day = '', time = '', counter, epoch = ''] = queryId.split('_')
  const [date, clock] = [day.replace(/(....)(..)(..)/, '$1-$2-$3'), time.replace(/(..)(..)(..)/, '$1:$2:$3')]
  return {
    second: Date.parse(`${date}T${clock}Z`) / 1000,
    counter: Number(counter),
    epoch: Number.parseInt(epoch, 32),
  }
}

/** The query id of its parts; a text that is no query id if they are out of range. */
export function queryIdOf({ second, counter, epoch }: QueryIdParts): string {
  const time = new Date(second * 1000)
  if (Number.isNaN(time.getTime())) return ''
  const stamp = time.toISOString()
  const day = stamp.slice(0, 10).replaceAll('-', '')
  const clock = stamp.slice(11, 19).replaceAll(':', '')
  return `${day}_${clock}_${String(counter).padStart(5, '0')}_${epochSuffix(epoch)}`
}

/** The epoch as the last part of a query id: base 32, at least five digits. */
function epochSuffix(epoch: number): string {
  return epoch.toString(32).padStart(5, '0')
}

/**
 * Makes query ids that are never made twice: the date part never goes back, the counter wraps at 99,999, and no other
 * coordinator shares the epoch in the suffix.
 */
export function createQueryIds(epoch: number, now: () => number): () => QueryId {
  let lastSecond = 0
  let counter = -1
  let firstOfSecond = 0
  return () => {
    counter = (counter + 1) % 100_000
    let second = Math.max(lastSecond, Math.floor(now() / 1000))
    // A full round of the counter within one second would repeat an id, so move on to the next second.
    if (second > lastSecond) firstOfSecond = counter
    else if (counter === firstOfSecond) second++
    lastSecond = second
    return queryIdOf({ second, counter, epoch }) as QueryId
  }
}
