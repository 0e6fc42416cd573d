import type { QueryId, TaskId, NodeId } from '../../../shared/ids.ts'
import type { Failure } from '../../../shared/engine-error.ts'
import type { TaskState, TaskStats } from '../../../execution/api/task.ts'
import type { PageDigest } from '../../../shared/row-digest.ts'
import type { PageOffset } from '../../../events/result-page-store.ts'
import type { QueryEventOf, QueryEventType } from './events.ts'

/**
 * ```
 * NONE ─► QUEUED ─► PLANNING ─► STARTING ─► RUNNING ─► FINISHING ─► FINISHED
 *            └──────────┴───────────┴──────────┴───────────┴──────► FAILED   (a cancel too)
 * ```
 * QUEUED: created, perhaps waiting for its resource group. PLANNING: admitted. STARTING: planned, nothing has run yet.
 * RUNNING: a task has reported. FINISHING: every result page is published, the client has not received them all.
 */
export type QueryState =
  | { readonly kind: 'NONE' }
  | (QueryCore & { readonly kind: 'QUEUED' | 'PLANNING' })
  | (PlannedQuery & { readonly kind: 'STARTING' | 'RUNNING' | 'FINISHING' })
  | (PlannedQuery & { readonly kind: 'FINISHED'; readonly finished: Data<'QueryFinished'>; readonly endedAt: string })
  | (QueryCore & {
      readonly kind: 'FAILED'
      readonly failure: Failure
      readonly failed: Data<'QueryFailed'>
      readonly endedAt: string
    })

export type QueryStateKind = QueryState['kind']
/** A query that exists. */
export type KnownQuery = Exclude<QueryState, { kind: 'NONE' }>
export type EndedQuery = Extract<KnownQuery, { kind: 'FINISHED' | 'FAILED' }>
export type LiveQuery = Exclude<KnownQuery, EndedQuery>

type Data<T extends QueryEventType> = QueryEventOf<T>['data']

/** The data of every query from its first event on; a part is absent until its event came. */
export interface QueryCore {
  readonly queryId: QueryId
  readonly createdAt: string
  readonly created: Data<'QueryCreated'>
  readonly queued?: Data<'QueryQueued'> & { readonly at: string }
  readonly admitted?: Data<'QueryAdmitted'> & { readonly at: string }
  /** The last act that held the query, and the act that released it since. */
  readonly hold?: Data<'QueryHeld'> & { readonly at: string; readonly released?: Data<'QueryReleased'> }
  readonly planned?: Data<'QueryPlanned'>
  readonly plannedAt?: string
  /** By task id, in order of creation. */
  readonly tasks: ReadonlyMap<TaskId, TaskRecord>
  /** Result pages by token. */
  readonly pages: readonly ResultPageRecord[]
  /** Every page of the whole result is published. */
  readonly resultComplete: boolean
  /** Batches with a published page, `taskId/batch`: never computed again. */
  readonly pinned: ReadonlySet<string>
  /** The highest token handed to the client's socket, -1 for none. */
  readonly delivered: number
  readonly lostTokens: readonly number[]
  readonly write?: Data<'WritePrepared'> & { readonly at: string }
  readonly committed?: Data<'WriteCommitted'> & { readonly at: string }
  readonly recoveries: number
  /** Events since the last QueryRecovered, or since the admission after it, these two not counted. */
  readonly eventsSinceRecovery: number
  /** Time of the newest event. */
  readonly updatedAt: string
}

export interface PlannedQuery extends QueryCore {
  readonly planned: Data<'QueryPlanned'>
  readonly plannedAt: string
}

export interface TaskRecord {
  readonly taskId: TaskId
  readonly stage: number
  readonly nodeId: NodeId
  readonly nodeUrl: string
  readonly state: TaskState
  readonly attempt: number
  readonly retryOf?: TaskId
  readonly retryReason?: string
  /**
   * The cluster that runs the task in place of a worker, and sealed addresses there: the first one, and one that keeps
   * the query alive once it executes.
   */
  readonly remote?: {
    readonly cluster: string
    readonly queryId: string
    readonly uri: string
    readonly aliveUri?: string
  }
  readonly createdAt: string
  readonly endedAt?: string
  readonly stats?: TaskStats
  readonly failure?: Failure
}

export interface ResultPageRecord {
  readonly taskId: TaskId
  readonly nodeUrl?: string
  readonly batch: number
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
  readonly kept: 'log' | 'worker'
  readonly place?: PageOffset | undefined
  readonly taskToken: number
  readonly digest?: PageDigest | undefined
}

export const initialQueryState: QueryState = { kind: 'NONE' }

export function isTerminal(kind: QueryStateKind): kind is 'FINISHED' | 'FAILED' {
  return kind === 'FINISHED' || kind === 'FAILED'
}

/** Whether an act holds the waiting query, so that it may not start. */
export function isOnHold({ kind, hold }: KnownQuery): boolean {
  return kind === 'QUEUED' && hold !== undefined && hold.released === undefined
}

export function isEnded(query: KnownQuery): query is EndedQuery {
  return isTerminal(query.kind)
}

/** Whether a write is prepared and can still be committed: then the query can neither fail nor be canceled. */
export function isDecided(state: QueryCore): boolean {
  return state.write !== undefined && state.committed?.outcome !== 'impossible'
}

/** Whether the write is part of its table. */
export function isCommitted(state: QueryCore): boolean {
  return state.committed !== undefined && state.committed.outcome !== 'impossible'
}

/** The rows and bytes that the query has added to tables: none before its write is committed. */
export function writtenBy(state: QueryCore): { readonly rows: number; readonly bytes: number } {
  return state.write && isCommitted(state) ? state.write : { rows: 0, bytes: 0 }
}

/** The last attempt of a delegated query at a cluster, and the number of attempts; undefined where no cluster runs it. */
export function remoteOf({
  tasks,
}: Pick<QueryCore, 'tasks'>):
  | { readonly cluster: string; readonly queryId: string; readonly attempts: number }
  | undefined {
  const remotes = [...tasks.values()].flatMap(({ remote }) => (remote ? [remote] : []))
  const last = remotes.at(-1)
  return last && { cluster: last.cluster, queryId: last.queryId, attempts: remotes.length }
}

/** The figures that the last event of the query records. */
export function recordedTotals(query: EndedQuery): Data<'QueryFinished'>['totals'] {
  return query.kind === 'FINISHED' ? query.finished.totals : query.failed.totals
}

/** Rows and bytes of all published pages. */
export function resultSize(pages: readonly ResultPageRecord[]): { rows: number; bytes: number } {
  let rows = 0
  let bytes = 0
  for (const page of pages) {
    rows += page.rows
    bytes += page.bytes
  }
  return { rows, bytes }
}

/** The tasks that hold pages of the result: their workers serve these pages to clients. */
export function servingTasks({ pages }: QueryCore): ReadonlySet<TaskId> {
  return new Set(pages.filter(({ kept }) => kept === 'worker').map(({ taskId }) => taskId))
}

/** The resource group of the query: the last that an event names. */
export function groupOfQuery({ admitted, queued, created }: QueryCore): string {
  return (admitted ?? queued ?? created).resourceGroup
}
