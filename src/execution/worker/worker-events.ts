import type { TaskId } from '../../shared/ids.ts'
import type { TaskStatus } from '../api/task.ts'
import type { BatchFigures } from './batch-figures.ts'

/** The events of a worker for its telemetry, which makes metrics and spans from them. */
export type WorkerEvent =
  | { readonly type: 'taskCreated'; readonly taskId: TaskId; readonly traceparent: string | undefined }
  | {
      readonly type: 'batchEnded'
      readonly taskId: TaskId
      readonly batch: number
      /** The catalogs that the batch read. */
      readonly catalogs: readonly string[]
      readonly splits: number
      readonly traceparent: string | undefined
      /** Wall clock, milliseconds. */
      readonly startedAt: number
      readonly endedAt: number
      /** Absent when the batch failed. */
      readonly figures: BatchFigures | undefined
      readonly error: unknown
    }
  | { readonly type: 'pageListed'; readonly taskId: TaskId; readonly rows: number; readonly bytes: number }
  | { readonly type: 'taskEnded'; readonly status: TaskStatus; readonly traceparent: string | undefined }
  /** Bytes of a page were given to a reader. */
  | { readonly type: 'pageRead'; readonly taskId: TaskId; readonly bytes: number }
  /** A listed page is gone, or has changed. */
  | { readonly type: 'pageLost'; readonly taskId: TaskId; readonly token: number }
  | { readonly type: 'coordinatorSilent'; readonly tasksDropped: number }
  | { readonly type: 'announced'; readonly url: string }
  | { readonly type: 'announcementFailed'; readonly url: string; readonly error: unknown }
  | { readonly type: 'failedOutside'; readonly what: string; readonly error: unknown }
