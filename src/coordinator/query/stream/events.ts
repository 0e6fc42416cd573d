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
  transactionId: z
    .string()
    .optional()
    .describe('Absent: the client does not support transactions; `NONE`: no transaction is open'),
  capabilities: z.array(z.string()),
  clientTags: z.array(z.string()),
  clientInfo: z.string().optional(),
  traceToken: z.string().optional(),
  resourceEstimates: z.record(z.string(), z.string()),
  remoteUserAddress: z.string(),
  userAgent: z.string().optional(),
  propertyRules: z
    .object({
      digest: z.string().describe('Digest of the file of rules, as in FileTaken'),
      given: z.array(z.string()).describe('Properties whose values the rules set'),
      fixed: z.array(z.string()).describe('Properties among `given` that sessions cannot change'),
      overridden: z.record(z.string(), z.string()).describe('Values that the client sent for these properties'),
    })
    .optional()
    .describe('Which of `properties` the rules set; absent if they set none'),
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
  masked: z.boolean().optional().describe('The value passed through a column mask of the access rules'),
})

const lineageSchema = z.object({
  columns: z.array(z.object({ position: count, name: z.string(), sources: z.array(lineageSourceSchema) })),
  rows: z.array(lineageSourceSchema).describe('Columns that decide about whole rows'),
})

export const tableAccessSchema = z.object({
  catalog: z.string(),
  schema: z.string(),
  table: z.string(),
  columns: z.array(z.string()),
  mode: z.enum(['READ', 'WRITE']),
  paths: z
    .array(z.object({ views: z.array(z.string()), columns: z.array(z.string()) }))
    .optional()
    .describe(
      'Chains of views through which the statement reads the table, the outermost first, as `catalog.schema.view`; an entry without views is the statement itself. Absent if there is no view, and in events of earlier versions',
    ),
  snapshot: z
    .string()
    .optional()
    .describe(
      'Names the rows of a table that is read: the text differs as soon as the rows may differ. Absent if this is unknown, and in events of earlier versions',
    ),
})

const viewAccessSchema = z.object({
  catalog: z.string(),
  schema: z.string(),
  view: z.string(),
  columns: z.array(z.string()),
  via: z.array(z.string()).describe('Views that name it, the outermost first; empty if the statement names it'),
})

const fingerprintSchema = z.object({
  version: count.describe('Version of the algorithm: only hashes of one version can be compared'),
  hash: z.string().describe('32 hex digits'),
  query: z.string().describe('The first 4,096 characters of the statement with `?` in place of literals'),
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
    .describe('Only for a successor, never shown to users; absent if the statement has secrets'),
  withheld: z
    .object({ streams: z.boolean(), target: writeTargetSchema.optional() })
    .optional()
    .describe('Instead of a fragment with secrets: the part that a successor needs to continue its tasks'),
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
  sha256: z.string().describe('Never shown to users, because the content of a short page can be guessed'),
  kept: z
    .enum(['log', 'worker'])
    .describe(
      'Where the bytes of the page are: beside the log under this stream and token, or on the worker under the token of the task',
    ),
  place: z
    .object({ partition: count, offset: count })
    .optional()
    .describe('Position of a page beside the log in the topic of result pages; absent if stream and token find it'),
  taskToken: count.describe('Token of the page in its task'),
  digest: pageDigestSchema
    .optional()
    .describe('Never shown to users. Absent if digests are switched off, and in events of earlier versions'),
})

/**
 * The digest of all rows of a result, made with a key of the cluster: equal results have equal digests, and nobody
 * without the key can compute them.
 */
const resultDigestSchema = pageDigestSchema.extend({
  version: z.literal('sip24-1').describe('How the digest is made'),
  key: z.string().describe('Name of the key: only digests with the same key can be compared'),
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
  originalUser: z.string().optional().describe('User who logged in, if this user acts as `user`'),
  remoteAddress: z.string().optional(),
  how: z
    .enum(['canceled', 'killed', 'preempted', 'kill_query'])
    .describe(
      '`canceled`: DELETE of `/v1/query/{id}`; `killed`, `preempted`: PUT of those; `kill_query`: the procedure of that name',
    ),
  statement: z.string().optional().describe('The query that called `kill_query`'),
  act: z.string().optional().describe('The act that ended it among other queries; `how` is `killed` then'),
})
export type EndedBy = Readonly<z.infer<typeof endedBySchema>>

/** The user whose act held or released a query. */
export const heldBySchema = z
  .object({ user: z.string(), originalUser: z.string().optional(), remoteAddress: z.string().optional() })
  .describe('Only shown to this user and to users who may see all')

/** The parts of a decision about the route that every target has. */
const routedFields = {
  rule: z.string().optional().describe('The routing rule that decided; absent if no rule decided'),
  bytes: count
    .optional()
    .describe('The bytes that the statement reads here, if a rule asked for them and they are known'),
  skipped: z
    .array(z.object({ rule: z.string(), why: z.string() }))
    .describe('Rules that match the statement, but whose route or fallback cannot run it; `why` is the reason'),
  fallback: z.boolean().optional().describe('Whether the fallback of the rule was taken'),
}

export const routedSchema = z.discriminatedUnion('to', [
  z.object({ to: z.literal('local'), ...routedFields }).describe('This server runs the statement'),
  z
    .object({ to: z.literal('reject'), message: z.string().describe('The message of the rule'), ...routedFields })
    .describe('A rule rejects the statement'),
  z
    .object({
      to: z.enum(['group', 'cluster']),
      name: z.string().describe('Name of the group or cluster'),
      ...routedFields,
      grade: z
        .enum(['analysed', 'named', 'unchecked'])
        .describe('How far the statement was checked here before it was sent'),
      readOnly: z.boolean().describe('Whether the statement may run again at another cluster'),
      checked: z
        .boolean()
        .describe(
          'Whether each cluster of the route may run the statement; if not, only clusters with `enforcesAccess` may',
        ),
      explains: z
        .boolean()
        .optional()
        .describe('Whether the result is a plan as text; this server writes the route as its first line'),
    })
    .describe('A cluster runs the statement'),
])
export type Routed = Readonly<z.infer<typeof routedSchema>>

export const queryEventSchemas = {
  QueryCreated: z
    .object({
      sql: z.string().describe('The text as posted, without secrets'),
      redacted: z
        .boolean()
        .describe(
          'True if secrets were removed from `sql`, or from the statement that it executes: a successor cannot run it',
        ),
      headerFamily: z.enum(headerFamilies),
      baseUri: z.string().describe('Scheme, host and port that the client used: the base of every URI it is given'),
      session: querySessionSchema,
      resourceGroup: z.string(),
      traceparent: z.string().optional().describe('Span of the POST, the parent of the query'),
      tracestate: z.string().optional(),
      parentSpanId: z.string().optional().describe('Span of the client, the parent of the span of the POST'),
      sampled: z.boolean(),
      rerun: z
        .object({
          queryId: z.string().describe('The query whose statement runs again'),
          act: z.string().describe('The act that runs it again'),
        })
        .optional()
        .describe('Absent if a client posted the statement'),
    })
    .describe('A client posted a statement, or an act runs it again; valid before anyone sees the query id'),
  QueryQueued: z
    .object({ resourceGroup: z.string(), reason: z.string(), position: count })
    .describe('The query waits in its resource group'),
  QueryHeld: z
    .object({ act: z.string(), reason: z.string(), by: heldBySchema })
    .describe('An act holds the waiting query: it does not start until it is released'),
  QueryReleased: z
    .object({ act: z.string(), reason: z.string(), by: heldBySchema })
    .describe('An act releases the held query: it waits in its resource group again'),
  QueryAdmitted: z.object({ resourceGroup: z.string(), queuedNanos: count }).describe('A waiting query may run now'),
  QueryPlanned: z
    .object({
      queryType: z.string(),
      route: z.enum(['local', 'coordinator', 'delegated']),
      updateType: z.string().optional(),
      columns: z.array(resultColumnSchema),
      tables: z.array(tableAccessSchema),
      views: z
        .array(viewAccessSchema)
        .optional()
        .describe('Views that the statement reads; absent if there are none, and in events of earlier versions'),
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
          'Digests of the files that were in force for the analysis, by `file` of FileTaken; absent if there are none, and in events of earlier versions',
        ),
      write: z
        .object({
          tolerated: errorNameSchema
            .optional()
            .describe('There is nothing to do, as this error says: the statement has IF [NOT] EXISTS'),
        })
        .optional()
        .describe('What the statement changes; absent if it changes nothing'),
      sessionProperties: z
        .record(z.string(), z.string())
        .optional()
        .describe('Session properties that the statement sets for itself (WITH SESSION); absent if it sets none'),
      routed: routedSchema
        .optional()
        .describe('Where the statement runs, and why; absent where no clusters are configured'),
      fingerprint: fingerprintSchema
        .optional()
        .describe(
          'Shape of the statement: equal for statements that differ only in literals. Absent if it is nested too deeply, and in events of earlier versions',
        ),
      lineage: lineageSchema
        .optional()
        .describe(
          'Lineage of columns: every column of written rows and of a created view; of a result only columns that are more than an unchanged copy of the column in `columns[].lineage`. Absent if there is none, and in events of earlier versions',
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
      remote: z
        .object({
          cluster: z.string(),
          queryId: z.string().describe('The id of the query at the cluster'),
          uri: z.string().describe('The first address at the cluster, sealed; hidden from users'),
        })
        .optional()
        .describe('The cluster that runs the statement in place of a worker'),
    })
    .describe('A stage is given to a worker as a task; tasks of the coordinator have no such event'),
  TaskFailed: z
    .object({
      taskId: taskIdSchema,
      failure: failureSchema,
      stats: taskStatsSchema.optional(),
    })
    .describe('A task ended with an error'),
  TaskRetried: z
    .object({ taskId: taskIdSchema, newTaskId: taskIdSchema, reason: z.string() })
    .describe('A lost task runs again under a new id'),
  TaskCanceled: z
    .object({
      taskId: taskIdSchema,
      reason: z.enum(['canceled', 'aborted']),
      stats: taskStatsSchema.optional(),
    })
    .describe(
      'A task was stopped because its rows are no longer needed (canceled) or because the query ended (aborted)',
    ),
  TaskFinished: z
    .object({
      taskId: taskIdSchema,
      stage: z.number().int(),
      nodeId: nodeIdSchema,
      nodeUrl: z.string(),
      stats: taskStatsSchema,
    })
    .describe('A task finished; its final figures, with pipelines and operators if it was profiled'),
  QueryProgressed: z
    .object({
      tasks: z.array(z.object({ taskId: taskIdSchema, state: z.enum(taskStates), stats: taskStatsSchema })),
      remote: z
        .object({ taskId: taskIdSchema, uri: z.string().describe('Sealed; hidden from users') })
        .optional()
        .describe('An address at the cluster by which a successor keeps the query alive there'),
    })
    .describe('Figures of running tasks'),
  ResultPagesPublished: z
    .object({
      taskId: taskIdSchema,
      nodeUrl: z.string().optional(),
      batch: count,
      firstToken: count.describe('Result token of `pages[0]`; the next pages have the next tokens'),
      pages: z.array(publishedPageSchema),
      lastOfBatch: z.boolean(),
      lastOfResult: z.boolean().describe('No further page follows in the whole result'),
    })
    .describe('Pages are part of the result from now on: a token means the same bytes forever'),
  ResultsDelivered: z
    .object({ token: count, rows: count, bytes: count })
    .describe('A page was written to the connection of the client; may come after the end'),
  ResultPagesLost: z
    .object({ tokens: z.array(count), reason: z.string() })
    .describe('Published pages are lost; may come after the end'),
  WritePrepared: z
    .object({
      catalog: z.string(),
      schema: z.string(),
      table: z.string().optional(),
      operation: z.string().describe('`createTable`, `insert` …'),
      rows: count,
      bytes: count.describe('Size of the files'),
      prepared: preparedWriteSchema.describe('Data of the connector for the commit: files, base version and so on'),
    })
    .describe('The decision to commit: from here on the query can neither fail nor be canceled'),
  WriteCommitted: z
    .object({
      version: count.optional().describe('Version of the manifest of the table'),
      outcome: z
        .enum(['committed', 'rolledForward', 'impossible'])
        .describe(
          '`rolledForward`: a later coordinator found the write prepared and committed it; `impossible`: the folder was changed from outside',
        ),
    })
    .describe('The prepared write is part of the table'),
  QueryRecovered: z
    .object({ count: z.number().int().min(1), phase: z.string(), epoch: count })
    .describe('A new coordinator took over the open query; valid before the coordinator changes anything'),
  QueryFinished: z
    .object({
      rows: count,
      bytes: count,
      ordered: z.boolean(),
      digest: resultDigestSchema
        .optional()
        .describe(
          'Digest of the rows; with `chain` if the statement asks for an order. Only users who may see the rows get it, by `GET /v1/query/{id}/digest`. Absent if digests are switched off, for writes, and in events of earlier versions',
        ),
      updateType: z.string().optional(),
      updateCount: count.optional(),
      responseHeaders: z
        .array(sessionChangeSchema)
        .describe('Suffixes and values of response headers, such as `Set-Session`, `zone=UTC`; without secrets'),
      warnings: z.array(warningSchema),
      partial: z.boolean(),
      stages: z.array(stageTimesSchema),
      totals: queryTotalsSchema,
      executionStartedAt: time.optional(),
    })
    .describe(
      'The query finished: every page is published, and the client has requested each page that is not durable',
    ),
  QueryFailed: z
    .object({
      failure: failureSchema,
      endedBy: endedBySchema
        .optional()
        .describe(
          'User who ended the query by its id; absent if no user did. Only shown to this user and to users who may see all. The reason is in `failure.message`',
        ),
      stages: z.array(stageTimesSchema),
      totals: queryTotalsSchema,
      executionStartedAt: time.optional(),
    })
    .describe('The query failed; a cancel is USER_CANCELED'),
} as const

/** Version of each event type's payload; a change of shape raises it and adds an upcaster. */
export const queryEventVersions: Readonly<Record<QueryEventType, number>> = {
  QueryCreated: 3,
  QueryQueued: 1,
  QueryHeld: 1,
  QueryReleased: 1,
  QueryAdmitted: 1,
  QueryPlanned: 9,
  TaskCreated: 2,
  TaskFailed: 3,
  TaskRetried: 1,
  TaskCanceled: 1,
  TaskFinished: 1,
  QueryProgressed: 2,
  ResultPagesPublished: 3,
  ResultsDelivered: 1,
  ResultPagesLost: 1,
  WritePrepared: 4,
  WriteCommitted: 2,
  QueryRecovered: 1,
  QueryFinished: 2,
  QueryFailed: 6,
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
