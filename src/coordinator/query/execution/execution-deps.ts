import type { QueryId } from '../../../shared/ids.ts'
import type { EventAppender, ResultPages } from '../../../events/event-log.ts'
import type { MetadataPort } from '../../../sql/front-end.ts'
import type { ThreadedFrontEnd } from '../../front-end-threads/threaded-front-end.ts'
import type { PostedTexts } from '../posted-texts.ts'
import type { ResourceGroups } from '../../dispatch/resource-groups.ts'
import type { TaskCleaner } from '../../scheduler/task-cleaner.ts'
import type { StatementRights } from '../session-context.ts'
import type { PageMemory } from '../page-memory.ts'
import type { CallDeps } from './call-statement.ts'
import type { WorkerStageDeps } from './worker-stage.ts'
import type { WriteDeps } from './write-statement.ts'
import type { ServerBounds } from '../query-limits.ts'

/** What the executions of all queries share. */
export interface ExecutionDeps extends WorkerStageDeps, WriteDeps, CallDeps, StatementRights {
  /** Times that a task may be begun, where its session does not ask for less. */
  readonly maxAttempts: number
  readonly log: EventAppender & Pick<ResultPages, 'keepPages'>
  readonly frontEnd: ThreadedFrontEnd
  readonly texts: Pick<PostedTexts, 'findType'>
  readonly metadata: MetadataPort
  readonly groups: ResourceGroups
  readonly limits: {
    readonly pageBytes: number
    /** Rows of a coordinator-only result held in memory at most. */
    readonly inlineBytes: number
    readonly server: ServerBounds
    readonly answersKeptMs: number
    /** Of a request: what a client must remember comes with each. */
    readonly headerBytes: number
    /** A plan as text. */
    readonly planBytes: number
  }
  readonly cleaner: TaskCleaner
  /** For the pages of one query. */
  readonly pageMemory: () => PageMemory
  /** QueryCreated waits so long for company: a statement that ends by then is one append. Milliseconds. */
  readonly firstAppendHoldMs: number
  /** A query's end could not be recorded: only a successor that reads the log anew can end it. */
  readonly onUnrecorded: (queryId: QueryId) => void
  /** What is read for a statement over `system` belongs to its span. */
  readonly withinSpan?: <T>(traceparent: string | undefined, run: () => Promise<T>) => Promise<T>
}
