import { z } from 'zod'
import { writtenFileSchema } from '../../connectors/spi/table-writer.ts'
import { errorTable, type ErrorName } from '../../shared/error-table.ts'
import { isStorableName } from '../../shared/stored-name.ts'
import { fragmentSchema, splitSchema } from './fragment.ts'
import { announcedNodeIdSchema, queryIdSchema, taskIdSchema } from '../../shared/id-schemas.ts'

export const errorNameSchema = z.enum(Object.keys(errorTable) as [ErrorName, ...ErrorName[]])

export const failureSchema = z.object({
  errorName: errorNameSchema,
  errorCode: z.number().int(),
  errorType: z.enum(['USER_ERROR', 'INTERNAL_ERROR', 'INSUFFICIENT_RESOURCES', 'EXTERNAL']),
  message: z.string(),
  location: z.object({ lineNumber: z.number().int(), columnNumber: z.number().int() }).optional(),
  remote: z
    .object({
      cluster: z.string(),
      errorName: z.string(),
      errorCode: z.number().int(),
      errorType: z.enum(['USER_ERROR', 'INTERNAL_ERROR', 'INSUFFICIENT_RESOURCES', 'EXTERNAL']),
    })
    .optional()
    .describe('The error as the cluster that ran the statement names it; absent for errors of this server'),
})

/** The reason why a task failed. */
const taskFailureSchema = failureSchema.extend({
  /**
   * True when the statement is not the cause: its engine was lost, or the worker stopped. The task may start again
   * elsewhere. @default false
   */
  retriable: z.boolean().optional(),
})
export type TaskFailure = z.infer<typeof taskFailureSchema>

/** Highest epoch that a coordinator can have: a claim a second for 68 years. */
export const HIGHEST_EPOCH = 2 ** 31 - 1

/** Headers of the internal interface; `X-Engine-Epoch` is on every request from a coordinator (409 for a lower one). */
export const internalHeaders = {
  epoch: 'x-engine-epoch',
  /** Id of the log that the epoch belongs to; older coordinators do not send it. */
  log: 'x-engine-log',
  pageToken: 'x-engine-page-token',
  pageNextToken: 'x-engine-page-next-token',
  bufferComplete: 'x-engine-buffer-complete',
  taskInstanceId: 'x-engine-task-instance-id',
  maxWait: 'x-engine-max-wait',
  acknowledge: 'x-engine-acknowledge',
  /** `true` on a page answer of a task that failed: no page will follow. */
  taskFailed: 'x-engine-task-failed',
  /** SHA-256 of a page's bytes, lower hex. */
  pageSha256: 'x-engine-page-sha256',
  taskVersion: 'x-engine-task-version',
  /** Id of the reset in an announcement (`forgottenEpochs`), once the log has it. */
  recorded: 'x-engine-recorded',
} as const

/** The answer of a POST that saw its task end, or the news, carry the task's pages inline up to this total size. */
export const MOST_INLINE_BYTES = 64 * 1024

/**
 * As `Accept` on `POST`, `GET` and `DELETE /v1/task/{taskId}`: asks for the internal form (TaskStatus) instead of the
 * formatted Task info; `GET /v1/task?since=v` always answers with it. `DELETE …?abort=true` ends the task ABORTED, not
 * CANCELED.
 */
export const taskStatusJson = 'application/vnd.quipu.task-status+json'

const taskBoundSchema = z.object({ most: z.number(), errorName: errorNameSchema, message: z.string() })

/** The rest of the query's limits, for this task; a task that exceeds a bound fails with that bound's error. */
const taskBoundsSchema = z.object({
  /** Nanoseconds. */
  cpu: taskBoundSchema.optional(),
  /** Bytes, of one batch. */
  memory: taskBoundSchema.optional(),
  /** Bytes, by the sizes of its splits. */
  scan: taskBoundSchema.optional(),
})
export type TaskBounds = z.infer<typeof taskBoundsSchema>

/** Body of `POST /v1/task/{taskId}`: create or update, idempotent; unknown fields are ignored. */
export const taskUpdateSchema = z.object({
  session: z.object({
    queryId: queryIdSchema,
    user: z.string(),
    startTimeMillis: z.number(),
  }),
  fragment: fragmentSchema,
  /**
   * All splits so far, in a fixed order: an update with more splits adds the rest, any other update changes nothing.
   */
  splits: z.array(splitSchema),
  noMoreSplits: z.boolean(),
  /**
   * Whether to drop the batches that have not begun; the task then ends with those that have begun (partial cancel).
   */
  dropPendingBatches: z.boolean().optional(),
  outputBuffers: z.object({ buffers: z.array(z.string()) }),
  attempt: z.number().int().min(0),
  traceparent: z.string().optional(),
  /** Whether DuckDB's profiler runs (the query is not small, or is within the budget for small ones). */
  profile: z.boolean(),
  /** Batches that must not run (again): pinned or finished elsewhere. */
  doneBatches: z.array(z.number().int()).optional(),
  /** The rest of the query's time limit, milliseconds. */
  remainingMillis: z.number().optional(),
  bounds: taskBoundsSchema.optional(),
  /** How often a batch may run when its engine is lost, if that is less than the worker's own limit. */
  batchAttempts: z.number().int().min(1).optional(),
  /** Its pages come with digests of their rows. */
  digests: z.boolean().optional(),
})
export type TaskUpdate = z.infer<typeof taskUpdateSchema>

export const taskStates = ['PLANNED', 'RUNNING', 'FLUSHING', 'FINISHED', 'CANCELED', 'ABORTED', 'FAILED'] as const
export type TaskState = (typeof taskStates)[number]

/** Whether a task has ended, so that nothing of it can change any more. */
export function isTaskTerminal(state: TaskState): boolean {
  return state === 'FINISHED' || state === 'CANCELED' || state === 'ABORTED' || state === 'FAILED'
}

export const distributionSchema = z.object({
  maxError: z.number(),
  count: z.number(),
  total: z.number(),
  p01: z.number(),
  p05: z.number(),
  p10: z.number(),
  p25: z.number(),
  p50: z.number(),
  p75: z.number(),
  p90: z.number(),
  p95: z.number(),
  p99: z.number(),
  min: z.number(),
  max: z.number(),
})
export type Distribution = z.infer<typeof distributionSchema>

/** One operator of one pipeline, figures summed over batches; durations in nanoseconds, sizes in bytes. */
export const operatorStatsSchema = z.object({
  operatorId: z.number().int(),
  /** Trino's name, `HashAggregationOperator`. */
  operatorType: z.string(),
  /** DuckDB's name, `HASH_GROUP_BY`. */
  engineOperator: z.string(),
  inputPositions: z.number(),
  outputPositions: z.number(),
  estimatedPositions: z.number().optional(),
  inputBytes: z.number(),
  outputBytes: z.number(),
  /** The profiler's time, summed over threads. */
  timeNanos: z.number(),
  blockedNanos: z.number(),
  addInputCalls: z.number(),
  getOutputCalls: z.number(),
  finishCalls: z.number(),
  /** Present on the exchange operator. */
  exchange: z
    .object({
      bufferedBytes: z.number(),
      averageBytesPerRequest: z.number(),
      bufferedPages: z.number(),
      pageBufferClientStatuses: z.array(
        z.object({
          uri: z.string(),
          state: z.string(),
          lastUpdate: z.string(),
          pagesReceived: z.number(),
          requestsScheduled: z.number(),
          requestsCompleted: z.number(),
          httpRequestState: z.string(),
        }),
      ),
    })
    .optional(),
})
export type OperatorStats = z.infer<typeof operatorStatsSchema>

/** Figures of one pipeline in one batch. */
export const driverStatsSchema = z.object({
  batch: z.number().int(),
  startTime: z.string(),
  endTime: z.string(),
  queuedNanos: z.number(),
  elapsedNanos: z.number(),
  scheduledNanos: z.number(),
  cpuNanos: z.number(),
  blockedNanos: z.number(),
})
export type DriverStats = z.infer<typeof driverStatsSchema>

export const pipelineStatsSchema = z.object({
  pipelineId: z.number().int(),
  inputPipeline: z.boolean(),
  outputPipeline: z.boolean(),
  memoryBytes: z.number(),
  rawInputBytes: z.number(),
  rawInputPositions: z.number(),
  processedInputBytes: z.number(),
  processedInputPositions: z.number(),
  outputBytes: z.number(),
  outputPositions: z.number(),
  totalDrivers: z.number(),
  queuedDrivers: z.number(),
  runningDrivers: z.number(),
  completedDrivers: z.number(),
  scheduledNanos: z.number(),
  cpuNanos: z.number(),
  blockedNanos: z.number(),
  operators: z.array(operatorStatsSchema),
  drivers: z.array(driverStatsSchema),
})
export type PipelineStats = z.infer<typeof pipelineStatsSchema>

/** Figures of a task as events and the internal interface carry them: integers with units, no formatted strings. */
export const taskStatsSchema = z.object({
  createTime: z.string(),
  startTime: z.string().optional(),
  endTime: z.string().optional(),
  elapsedNanos: z.number(),
  queuedNanos: z.number(),
  totalDrivers: z.number(),
  queuedDrivers: z.number(),
  runningDrivers: z.number(),
  completedDrivers: z.number(),
  /** Batches: the splits of the statement's stats. */
  totalSplits: z.number(),
  queuedSplits: z.number(),
  runningSplits: z.number(),
  completedSplits: z.number(),
  memoryBytes: z.number(),
  peakMemoryBytes: z.number(),
  spilledBytes: z.number(),
  scheduledNanos: z.number(),
  cpuNanos: z.number(),
  /** False when the engine was shared and CPU was split by scheduled time. */
  cpuExact: z.boolean(),
  wallNanos: z.number(),
  blockedNanos: z.number(),
  rawInputBytes: z.number(),
  rawInputPositions: z.number(),
  processedInputBytes: z.number(),
  processedInputPositions: z.number(),
  outputBytes: z.number(),
  outputPositions: z.number(),
  /** False when the profiler was off: the worker then sends no pipelines. */
  profiled: z.boolean(),
  pipelines: z.array(pipelineStatsSchema),
})
export type TaskStats = z.infer<typeof taskStatsSchema>

export const outputBufferStates = [
  'OPEN',
  'NO_MORE_BUFFERS',
  'NO_MORE_PAGES',
  'FLUSHING',
  'FINISHED',
  'FAILED',
] as const

const digestText = z.string().regex(/^[0-9a-f]{16}$/)

/** Digest of a page's rows, with a key of the cluster. */
export const pageDigestSchema = z.object({
  sum: digestText.describe("SipHash-2-4 of each row's bytes, summed modulo 2^64"),
  chain: digestText
    .optional()
    .describe(
      'The hashes chained in their order, for all rows of the batch up to the end of the page; absent if the result has no order',
    ),
})

/** A page that is closed and listed: never changed afterwards. */
const closedPageSchema = z.object({
  /** Position in the task's output, from 0, in the order the pages were closed. */
  token: z.number().int(),
  batch: z.number().int(),
  rows: z.number(),
  bytes: z.number(),
  /** SHA-256 of the bytes, lower hex. */
  sha256: z.string(),
  /** True on the last page of its batch; a batch without rows closes with a `batchEnd` instead. */
  lastOfBatch: z.boolean(),
  /** Absent unless the coordinator asked for it. */
  digest: pageDigestSchema.optional(),
})
export type ClosedPage = z.infer<typeof closedPageSchema>

/**
 * The status of a changed task in the answer of `GET /v1/task?since=v`, in the internal (unformatted) form. The worker
 * is the authority for it.
 */
export const taskStatusSchema = z.object({
  taskId: taskIdSchema,
  instanceId: z.string(),
  version: z.number(),
  state: z.enum(taskStates),
  lastHeartbeat: z.string(),
  attempt: z.number(),
  bufferState: z.enum(outputBufferStates),
  /** Scans, by index, that get no more splits. */
  noMoreSplits: z.array(z.string()),
  /** Pages closed since the asked version (all of them when no version was given). */
  pages: z.array(closedPageSchema),
  /** Batches that ended well, whether or not they gave pages. */
  batchesDone: z.array(z.number().int()),
  batchesTotal: z.number().int(),
  pagesSent: z.number(),
  bufferedPages: z.number(),
  /** The task was deleted: nothing of it is left on the worker. Older workers do not send this. */
  deleted: z.literal(true).optional(),
  /** The batch that failed, if the failure was in a batch: its listed pages stay, nothing follows them. */
  failedBatch: z.number().int().optional(),
  failure: taskFailureSchema.optional(),
  stats: taskStatsSchema,
  /** Present for a writing task that is FINISHED: all files it wrote, durable, not yet part of the table. */
  written: z.object({ rows: z.number().int(), files: z.array(writtenFileSchema) }).optional(),
  /**
   * Bytes of the pages, as text, when they are few and small: in the answer of a POST that saw the task end, and in
   * news.
   */
  inlinePages: z.array(z.object({ token: z.number().int(), data: z.string() })).optional(),
})
export type TaskStatus = z.infer<typeof taskStatusSchema>

const storedName = z.string().refine((text) => isStorableName(text), 'is too long')

/** The epochs that `quipu reset-epoch` removed from a worker's folder, until a coordinator has recorded it. */
export const forgottenEpochsSchema = z.object({
  /** Id of this reset. */
  id: z.uuid(),
  /** ISO, by the clock of the worker's machine. */
  at: z.iso.datetime(),
  host: storedName,
  /** The user of the operating system. */
  by: storedName,
  epochs: z.array(z.object({ logId: storedName, epoch: z.number().int().min(0).max(HIGHEST_EPOCH) })).max(16),
})
export type ForgottenEpochs = z.infer<typeof forgottenEpochsSchema>

/** Body of `PUT /v1/announcement`, sent by every worker each second. */
export const announcementSchema = z.object({
  nodeId: announcedNodeIdSchema,
  url: storedName,
  version: storedName,
  cores: z.number(),
  memoryBytes: z.number(),
  epochSeen: z.number(),
  /** Distinguishes a new process from an earlier one of the same name. Workers before 0.2.0 do not send it. */
  processUuid: z.uuid().optional(),
  /** How long the process has run. */
  uptimeMillis: z.number().optional(),
  /** Engines that wait for work. */
  freeEngines: z.number().optional(),
  /** The worker takes no new tasks, and stops when no coordinator needs its tasks any more. */
  state: z.literal('shutting_down').optional(),
  /** Sent until an answer has `internalHeaders.recorded` with its id. */
  forgottenEpochs: forgottenEpochsSchema.optional(),
})
export type Announcement = z.infer<typeof announcementSchema>
