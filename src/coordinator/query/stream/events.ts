import { z } from 'zod'
import { preparedWriteSchema, writeTargetSchema } from '../../../connectors/spi/table-writer.ts'
import { fragmentSchema, splitSchema } from '../../../execution/api/fragment.ts'
import {
  errorNameSchema,
  failureSchema,
  pageDigestSchema,
  taskStatsSchema,
  taskStates,
} from '../../../execution/api/task.ts'
import { nodeIdSchema, taskIdSchema } from '../../../shared/id-schemas.ts'

/*
 * The events in the stream of one query: those of the query, of its stages and of its tasks. A payload holds the data
 * that replay needs; the envelope adds sequence, epoch, time and hashes. Times are ISO UTC with milliseconds; durations
 * are integer nanoseconds.
 */

const count = z.number().int().min(0)
const time = z.iso.datetime()

export const headerFamilies = ['Engine', 'Trino', 'Presto'] as const

/** The session that the POST asked for; everything later in the query uses it. Secrets are removed before. */
export const querySessionSchema = z.object({
  user: z.string(),
  principal: z.string().optional(),
  originalUser: z.string().optional(),
  groups: z.array(z.string()),
  roles: z.record(z.string(), z.string()),
  source: z.string().optional(),
  catalog: z.string().optional(),
  schema: z.string().optional(),
  path: z.string().optional(),
  timeZone: z.string(),
  language: z.string().optional(),
  properties: z.record(z.string(), z.string()),
  preparedStatements: z.record(z.string(), z.string()),
  transactionId: z.string().optional().describe('Absent: the client cannot do transactions; `NONE`: none open'),
  capabilities: z.array(z.string()),
  clientTags: z.array(z.string()),
  clientInfo: z.string().optional(),
  traceToken: z.string().optional(),
  resourceEstimates: z.record(z.string(), z.string()),
  remoteUserAddress: z.string(),
  userAgent: z.string().optional(),
  propertyRules: z
    .object({
      digest: z.string().describe('Of the file of rules, as FileTaken has it'),
      given: z.array(z.string()).describe('Properties whose values are those of the rules'),
      fixed: z.array(z.string()).describe('Of these, those that no session sets otherwise'),
      overridden: z.record(z.string(), z.string()).describe('What the client had sent for them'),
    })
    .optional()
    .describe('What rules set of `properties`; absent where there are none'),
})
export type QuerySession = z.infer<typeof querySessionSchema>

export const resultColumnSchema = z.object({
  name: z.string(),
  type: z.string(),
  typeSignature: z.unknown(),
  lineage: z.array(z.string()),
})

export const warningSchema = z.object({
  warningCode: z.object({ code: z.number().int(), name: z.string() }),
  message: z.string(),
})

const lineageSourceSchema = z.object({
  source: z.string().describe('`catalog.schema.table.column`'),
  direct: z.enum(['IDENTITY', 'TRANSFORMATION', 'AGGREGATION']).optional(),
  indirect: z.array(z.enum(['CONDITIONAL', 'FILTER', 'GROUP_BY', 'JOIN', 'SORT', 'WINDOW'])),
  masked: z.boolean().optional().describe('It went through a mask of the rules'),
})

const lineageSchema = z.object({
  columns: z.array(z.object({ position: count, name: z.string(), sources: z.array(lineageSourceSchema) })),
  rows: z.array(lineageSourceSchema).describe('What decides about whole rows'),
})

export const tableAccessSchema = z.object({
  catalog: z.string(),
  schema: z.string(),
  table: z.string(),
  columns: z.array(z.string()),
  mode: z.enum(['READ', 'WRITE']),
  snapshot: z
    .string()
    .optional()
    .describe(
      'Of a table that is read, names its rows: another text once they may be others. Absent where nobody knows, and of earlier versions',
    ),
})

/** A node of the plan as EXPLAIN shows it. */
export interface PlanOutline {
  readonly name: string
  readonly details: Readonly<Record<string, string>>
  readonly layout: readonly string[]
  readonly children: readonly PlanOutline[]
}
export const planOutlineSchema: z.ZodType<PlanOutline> = z.lazy(() =>
  z.object({
    name: z.string(),
    details: z.record(z.string(), z.string()),
    layout: z.array(z.string()),
    children: z.array(planOutlineSchema),
  }),
)

export const plannedStageSchema = z.object({
  id: z.number().int().min(0),
  distribution: z.enum(['coordinator', 'single']),
  inputs: z.array(z.number().int()),
  fragmentDigest: z
    .string()
    .optional()
    .describe("SHA-256 of the fragment's canonical JSON; absent on a stage that only relays"),
  fragment: fragmentSchema
    .optional()
    .describe('For a successor alone: shown to nobody; absent where the statement has secrets'),
  withheld: z
    .object({ streams: z.boolean(), target: writeTargetSchema.optional() })
    .optional()
    .describe('Instead of a fragment with secrets: what a successor needs of it to go on with its tasks'),
  splits: z.array(splitSchema),
  scheduledAt: time.optional(),
})

/** States and times of stages, as far as they are known when the event is made. */
export const stageTimesSchema = z.object({
  id: z.number().int(),
  state: z.enum(['PLANNED', 'SCHEDULING', 'SCHEDULED', 'RUNNING', 'FINISHED', 'CANCELED', 'ABORTED', 'FAILED']),
  scheduledAt: time.optional(),
  startedAt: time.optional(),
  endedAt: time.optional(),
})

export const publishedPageSchema = z.object({
  rows: count,
  bytes: count,
  sha256: z.string().describe('Shown to nobody: what a short page holds can be guessed'),
  kept: z
    .enum(['log', 'worker'])
    .describe(
      "Where its bytes are: beside the log under this stream and token, or on the worker under the task's token",
    ),
  place: z
    .object({ partition: count, offset: count })
    .optional()
    .describe('Kept in the log: where it lies in the topic of result pages; absent where stream and token find it'),
  taskToken: count.describe("The task's own token of the page"),
  digest: pageDigestSchema
    .optional()
    .describe('Shown to nobody. Absent where digests are switched off, and of earlier versions'),
})

/**
 * The digest of all rows of a result, made with a key of the cluster: equal results have equal digests, and nobody
 * without the key can compute them.
 */
const resultDigestSchema = pageDigestSchema.extend({
  version: z.literal('sip24-1').describe('How it is made'),
  key: z.string().describe('Tells digests by one key from those by others'),
})
export type ResultDigest = Readonly<z.infer<typeof resultDigestSchema>>

/** The digest as it is shown to users that may read the rows. */
export const recordedDigestSchema = resultDigestSchema.extend({ rows: count })
export type RecordedDigest = Readonly<z.infer<typeof recordedDigestSchema>>

export const sessionChangeSchema = z.object({ header: z.string(), value: z.string() })

/** Totals of all tasks at the end of the query; `queryStats` shows the same numbers. */
export const queryTotalsSchema = z.object({
  elapsedNanos: count,
  queuedNanos: count,
  analysisNanos: count,
  planningNanos: count,
  scheduledNanos: count,
  cpuNanos: count,
  blockedNanos: count,
  wallNanos: count,
  peakMemoryBytes: count,
  spilledBytes: count,
  rawInputPositions: count,
  rawInputBytes: count,
  processedInputPositions: count,
  processedInputBytes: count,
  outputPositions: count,
  outputBytes: count,
  totalTasks: count,
  totalDrivers: count,
  completedDrivers: count,
  totalSplits: count,
  completedSplits: count,
})

/** The user that ended a query by its id, not by the address that the query's client was given, and how. */
export const endedBySchema = z.object({
  user: z.string(),
  originalUser: z.string().optional().describe('Who logged in, where he acts as `user`'),
  remoteAddress: z.string().optional(),
  how: z
    .enum(['canceled', 'killed', 'preempted', 'kill_query'])
    .describe(
      '`canceled`: DELETE of `/v1/query/{id}`; `killed`, `preempted`: PUT of those; `kill_query`: the procedure of that name',
    ),
  statement: z.string().optional().describe('The query that called `kill_query`'),
})
export type EndedBy = Readonly<z.infer<typeof endedBySchema>>

export const queryEventSchemas = {
  QueryCreated: z
    .object({
      sql: z.string().describe('As posted, secrets taken out'),
      redacted: z
        .boolean()
        .describe('True when secrets were taken out of `sql`, or of what it executes: a successor cannot run it'),
      headerFamily: z.enum(headerFamilies),
      baseUri: z.string().describe('Scheme, host and port that the client used: the base of every URI it is given'),
      session: querySessionSchema,
      resourceGroup: z.string(),
      traceparent: z.string().optional().describe("The POST's span, whose child the query is"),
      tracestate: z.string().optional(),
      parentSpanId: z.string().optional().describe("The client's span that the POST's is a child of"),
      sampled: z.boolean(),
    })
    .describe('A client posted a statement; valid before anyone sees the query id'),
  QueryQueued: z
    .object({ resourceGroup: z.string(), reason: z.string(), position: count })
    .describe('The query waits for a place in its resource group'),
  QueryAdmitted: z
    .object({ resourceGroup: z.string(), queuedNanos: count })
    .describe('A query that waited got its place'),
  QueryPlanned: z
    .object({
      queryType: z.string(),
      route: z.enum(['local', 'coordinator', 'delegated']),
      updateType: z.string().optional(),
      columns: z.array(resultColumnSchema),
      tables: z.array(tableAccessSchema),
      stages: z.array(plannedStageSchema),
      outline: planOutlineSchema.optional(),
      ordered: z.boolean(),
      parseNanos: count,
      analysisNanos: count,
      planningNanos: count,
      warnings: z.array(warningSchema),
      executionStartedAt: time.optional(),
      files: z
        .record(z.string(), z.string())
        .optional()
        .describe(
          'Digests of the files by which it was analysed, by `file` of FileTaken; absent where there are none, and of earlier versions',
        ),
      write: z
        .object({
          tolerated: errorNameSchema
            .optional()
            .describe('Things are so already, says this error: IF [NOT] EXISTS was written'),
        })
        .optional()
        .describe('The statement changes something; absent on all others'),
      sessionProperties: z
        .record(z.string(), z.string())
        .optional()
        .describe('What the statement sets for itself: WITH SESSION; absent where it sets nothing'),
      lineage: lineageSchema
        .optional()
        .describe(
          'Of rows that are written, and of a view that is made, every column; of a result those that are more than what `columns[].lineage` names, as it is. Absent where there is nothing to tell, and of earlier versions',
        ),
    })
    .describe('The statement is parsed, analysed, rendered and cut into stages'),
  TaskCreated: z
    .object({
      taskId: taskIdSchema,
      stage: z.number().int(),
      nodeId: nodeIdSchema,
      nodeUrl: z.string(),
      splits: count,
      attempt: count,
      retryOf: taskIdSchema.optional(),
      retryReason: z.string().optional(),
    })
    .describe('A stage is given to a worker as a task; not made for tasks of the coordinator itself'),
  TaskFailed: z
    .object({
      taskId: taskIdSchema,
      failure: failureSchema,
      stats: taskStatsSchema.optional(),
    })
    .describe('A task ended with an error'),
  TaskRetried: z
    .object({ taskId: taskIdSchema, newTaskId: taskIdSchema, reason: z.string() })
    .describe('A lost task is run again under a new id'),
  TaskCanceled: z
    .object({
      taskId: taskIdSchema,
      reason: z.enum(['canceled', 'aborted']),
      stats: taskStatsSchema.optional(),
    })
    .describe('A task was ended because nobody wants it (canceled) or the query ended (aborted)'),
  TaskFinished: z
    .object({
      taskId: taskIdSchema,
      stage: z.number().int(),
      nodeId: nodeIdSchema,
      nodeUrl: z.string(),
      stats: taskStatsSchema,
    })
    .describe('A task ended well; its final figures, with pipelines and operators when it was profiled'),
  QueryProgressed: z
    .object({
      tasks: z.array(z.object({ taskId: taskIdSchema, state: z.enum(taskStates), stats: taskStatsSchema })),
    })
    .describe('Figures of running tasks'),
  ResultPagesPublished: z
    .object({
      taskId: taskIdSchema,
      nodeUrl: z.string().optional(),
      batch: count,
      firstToken: count.describe('Result token of `pages[0]`; they go on without gaps'),
      pages: z.array(publishedPageSchema),
      lastOfBatch: z.boolean(),
      lastOfResult: z.boolean().describe('No further page follows in the whole result'),
    })
    .describe('Pages belong to the result from here on: token n means these bytes, for ever'),
  ResultsDelivered: z
    .object({ token: count, rows: count, bytes: count })
    .describe('A page was handed to the socket of the client; may follow the end'),
  ResultPagesLost: z
    .object({ tokens: z.array(count), reason: z.string() })
    .describe('Published pages that cannot be had any more; may follow the end'),
  WritePrepared: z
    .object({
      catalog: z.string(),
      schema: z.string(),
      table: z.string().optional(),
      operation: z.string().describe('`createTable`, `insert` …'),
      rows: count,
      bytes: count.describe('Of the files'),
      prepared: preparedWriteSchema.describe("The connector's own: files, base version; all that a commit takes"),
    })
    .describe('The decision to commit: from here on the query can neither fail nor be canceled'),
  WriteCommitted: z
    .object({
      version: count.optional().describe("Of the table's manifest"),
      outcome: z
        .enum(['committed', 'rolledForward', 'impossible'])
        .describe(
          '`rolledForward`: by a coordinator that found it prepared; `impossible`: the folder was changed from outside',
        ),
    })
    .describe('The prepared write is part of the table'),
  QueryRecovered: z
    .object({ count: z.number().int().min(1), phase: z.string(), epoch: count })
    .describe('A new coordinator took the open query over; valid before it touches anything of it'),
  QueryFinished: z
    .object({
      rows: count,
      bytes: count,
      ordered: z.boolean(),
      digest: resultDigestSchema
        .optional()
        .describe(
          'Of the rows; with `chain` where they are in an order that was asked for. Shown to those alone who may have the rows, by `GET /v1/query/{id}/digest`. Absent where digests are switched off, of writes, and of earlier versions',
        ),
      updateType: z.string().optional(),
      updateCount: count.optional(),
      responseHeaders: z
        .array(sessionChangeSchema)
        .describe('Suffixes and values of response headers: `Set-Session`, `zone=UTC`; secrets taken out'),
      warnings: z.array(warningSchema),
      partial: z.boolean(),
      stages: z.array(stageTimesSchema),
      totals: queryTotalsSchema,
      executionStartedAt: time.optional(),
    })
    .describe('The end: every page is published and, where it is not durable, was asked for'),
  QueryFailed: z
    .object({
      failure: failureSchema,
      endedBy: endedBySchema
        .optional()
        .describe(
          'Absent where nobody ended it by its id; shown to himself and to who sees all. Why: `failure.message`',
        ),
      stages: z.array(stageTimesSchema),
      totals: queryTotalsSchema,
      executionStartedAt: time.optional(),
    })
    .describe('The end with an error; a cancel is USER_CANCELED'),
} as const

/** Version of each event type's payload; a change of shape raises it and adds an upcaster. */
export const queryEventVersions: Readonly<Record<QueryEventType, number>> = {
  QueryCreated: 2,
  QueryQueued: 1,
  QueryAdmitted: 1,
  QueryPlanned: 6,
  TaskCreated: 1,
  TaskFailed: 2,
  TaskRetried: 1,
  TaskCanceled: 1,
  TaskFinished: 1,
  QueryProgressed: 1,
  ResultPagesPublished: 3,
  ResultsDelivered: 1,
  ResultPagesLost: 1,
  WritePrepared: 2,
  WriteCommitted: 2,
  QueryRecovered: 1,
  QueryFinished: 2,
  QueryFailed: 4,
}

export type QueryEventType = keyof typeof queryEventSchemas

/**
 * A union on `type`; `time` is the envelope's time: when the event was made, and after the append the log's own time.
 */
export type QueryEvent = {
  [T in QueryEventType]: {
    readonly type: T
    readonly time: string
    readonly data: Readonly<z.infer<(typeof queryEventSchemas)[T]>>
  }
}[QueryEventType]

export type QueryEventOf<T extends QueryEventType> = Extract<QueryEvent, { type: T }>

/** Whether the name is the type of an event in the stream of a query. */
export function isQueryEventType(type: string): type is QueryEventType {
  return Object.hasOwn(queryEventSchemas, type)
}
