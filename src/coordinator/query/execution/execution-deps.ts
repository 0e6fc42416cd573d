import type { Catalogs } from '../../../connectors/spi/catalogs.ts'
import type { EventAppender, ResultPages } from '../../../events/event-log.ts'
import type { EnginePool } from '../../../execution/engine/engine.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { NodeId, QueryId } from '../../../shared/ids.ts'
import type { RowDigester } from '../../../shared/row-digest.ts'
import type { MetadataPort } from '../../../sql/front-end.ts'
import type { ResourceGroups } from '../../dispatch/resource-groups.ts'
import type { ThreadedFrontEnd } from '../../front-end-threads/threaded-front-end.ts'
import type { Placement } from '../../scheduler/placement.ts'
import type { TaskCleaner } from '../../scheduler/task-cleaner.ts'
import type { TaskHub } from '../../scheduler/task-hub.ts'
import type { WorkerClient } from '../../scheduler/worker-client.ts'
import type { WorkerDirectory } from '../../scheduler/workers.ts'
import type { Canceled } from '../results/cancel-query.ts'
import type { PageMemory } from '../results/page-memory.ts'
import type { PostedTexts } from '../secrets/posted-texts.ts'
import type { Transactions } from '../session/transactions.ts'
import type { StatementRights } from '../session/session-context.ts'
import type { Ending } from '../stream/ending.ts'
import type { Delegation } from './delegation.ts'
import type { ServerBounds } from './query-limits.ts'
import type { WriteGuard } from './write-guard.ts'

/** The collaborators that the executions of all queries share. Each part of an execution picks those that it uses. */
export interface ExecutionDeps extends StatementRights {
  readonly log: EventAppender & Pick<ResultPages, 'keepPages'>
  readonly clock: Clock
  /** The node of tasks that run in this coordinator, and its address. */
  readonly nodeId: NodeId
  readonly selfUrl: string

  // --- analysis and admission ---
  readonly frontEnd: ThreadedFrontEnd
  readonly texts: Pick<PostedTexts, 'findType'>
  readonly metadata: MetadataPort
  readonly transactions: Pick<Transactions, 'isAborted' | 'verify'>
  readonly catalogs: Catalogs
  readonly groups: ResourceGroups
  readonly limits: {
    readonly pageBytes: number
    /** The most bytes of rows of a coordinator-only result in memory. */
    readonly inlineBytes: number
    readonly server: ServerBounds
    readonly answersKeptMs: number
    /** The size of a request's headers: a client sends all remembered ones with each request. */
    readonly headerBytes: number
    /** The size of a plan as text. */
    readonly planBytes: number
  }
  /** How many times a task may be begun, unless the session asks for less. */
  readonly maxAttempts: number

  // --- stages ---
  /** The coordinator's own engine, for stages that need no worker. */
  readonly engine: EnginePool
  readonly workers: Pick<WorkerDirectory, 'byId'>
  readonly placement: Pick<Placement, 'assign' | 'take'>
  readonly client: WorkerClient
  readonly hub: TaskHub
  readonly cleaner: TaskCleaner
  /** The clusters behind this server; undefined where none are configured. */
  readonly delegation: Delegation | undefined
  /** Whether another small task may be profiled now, while `running` tasks run. */
  readonly profiles: (running: number) => boolean

  // --- results ---
  /** Absent where digests are switched off. */
  readonly digester: RowDigester | undefined
  /** Makes the memory for the pages of one query. */
  readonly pageMemory: () => PageMemory
  /** How long QueryCreated waits for other events: a statement that ends by then is one append. Milliseconds. */
  readonly firstAppendHoldMs: number

  // --- statements that change something ---
  readonly guard: WriteGuard
  /** Ends another query, as `StatementService.cancel` does. */
  readonly endQuery: (queryId: QueryId, ending: Ending) => Promise<Canceled>

  // --- reports ---
  readonly onInternalError: (queryId: QueryId, error: unknown) => void
  /** A query's end could not be recorded: only a successor that reads the log again can end it. */
  readonly onUnrecorded: (queryId: QueryId) => void
  /** Makes reads of `system` tables for a statement children of its span. */
  readonly withinSpan?: <T>(traceparent: string | undefined, run: () => Promise<T>) => Promise<T>
}
