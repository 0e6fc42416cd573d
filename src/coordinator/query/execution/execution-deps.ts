import type { QueryId } from '../../../shared/ids.ts'
import type { EventAppender, ResultPages } from '../../../events/event-log.ts'
import type { MetadataPort } from '../../../sql/front-end.ts'
import type { ThreadedFrontEnd } from '../../front-end-threads/threaded-front-end.ts'
import type { PostedTexts } from '../secrets/posted-texts.ts'
import type { ResourceGroups } from '../../dispatch/resource-groups.ts'
import type { TaskCleaner } from '../../scheduler/task-cleaner.ts'
import type { StatementRights } from '../session/session-context.ts'
import type { PageMemory } from '../results/page-memory.ts'
import type { CallDeps } from './call-statement.ts'
import type { WorkerStageDeps } from './worker-stage.ts'
import type { WriteDeps } from './write-statement.ts'
import type { ServerBounds } from './query-limits.ts'

/** The collaborators that the executions of all queries share. */
export interface ExecutionDeps extends WorkerStageDeps, WriteDeps, CallDeps, StatementRights {
  /** How many times a task may be begun, unless the session asks for less. */
  readonly maxAttempts: number
  readonly log: EventAppender & Pick<ResultPages, 'keepPages'>
  readonly frontEnd: ThreadedFrontEnd
  readonly texts: Pick<PostedTexts, 'findType'>
  readonly metadata: MetadataPort
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
  readonly cleaner: TaskCleaner
  /** Makes the memory for the pages of one query. */
  readonly pageMemory: () => PageMemory
  /** How long QueryCreated waits for other events: a statement that ends by then is one append. Milliseconds. */
  readonly firstAppendHoldMs: number
  /** A query's end could not be recorded: only a successor that reads the log again can end it. */
  readonly onUnrecorded: (queryId: QueryId) => void
  /** Makes reads of `system` tables for a statement children of its span. */
  readonly withinSpan?: <T>(traceparent: string | undefined, run: () => Promise<T>) => Promise<T>
}
