import { z } from 'zod'
import { endedBySchema, heldBySchema } from '../../../coordinator/query/stream/events.ts'
import {
  count,
  dataSize,
  durationSchema,
  errorCode,
  location,
  queryState,
  timestampSchema,
  uri,
  type Body,
} from './values.ts'
import { warning } from './statement.ts'
import { taskInfoSchema, workFields } from './task.ts'

export const stageInfo = z.looseObject({
  stageId: z.string(),
  state: z.string(),
  done: z.boolean(),
  self: uri,
  types: z.array(z.string()),
  stageStats: z.looseObject({
    startTime: timestampSchema.optional(),
    endTime: timestampSchema.optional(),
    totalTasks: count,
    runningTasks: count,
    completedTasks: count,
    totalSplits: count,
    queuedSplits: count,
    runningSplits: count,
    completedSplits: count,
    ...workFields,
    totalMemoryReservation: dataSize,
  }),
  tasks: z.array(taskInfoSchema),
  get subStages(): z.ZodArray<typeof stageInfo> {
    return z.array(stageInfo)
  },
})

export type StageInfo = Body<z.infer<typeof stageInfo>>

const session = z.looseObject({
  user: z.string(),
  source: z.string().optional(),
  catalog: z.string().optional(),
  schema: z.string().optional(),
  groups: z.array(z.string()).optional(),
  clientTags: z.array(z.string()).optional(),
  clientInfo: z.string().optional(),
  userAgent: z.string().optional(),
  remoteUserAddress: z.string().optional().describe('Address of the client'),
  startTime: z.int().describe('Milliseconds since the epoch'),
})

const listedQueryStats = z.looseObject({
  createTime: timestampSchema,
  executionStartTime: timestampSchema.optional(),
  lastHeartbeat: timestampSchema,
  endTime: timestampSchema.optional(),
  elapsedTime: durationSchema,
  queuedTime: durationSchema,
  analysisTime: durationSchema,
  totalScheduledTime: durationSchema,
  totalCpuTime: durationSchema,
  totalBlockedTime: durationSchema,
  planningTime: durationSchema,
  totalTasks: count,
  totalDrivers: count,
  completedDrivers: count,
  totalSplits: count,
  completedSplits: count,
  peakTotalMemoryReservation: dataSize,
  spilledDataSize: dataSize,
  rawInputDataSize: dataSize,
  processedInputDataSize: dataSize,
  outputDataSize: dataSize,
  rawInputPositions: count,
  processedInputPositions: count,
  outputPositions: count,
})

/** The program behind a query, as the client says, and the shape of the statement. */
const behindFields = {
  app: z.string().optional().describe('Program that sent the statement, as the client says: `dbt`, `metabase` …'),
  appObject: z.string().optional().describe('Its object: a dbt model, a dashboard, a DAG'),
  appUser: z.string().optional().describe('Its user'),
  fingerprint: z.string().optional().describe('Equal for statements that differ only in literals'),
}

/** Absent without prices for the time of the query. */
const costFields = {
  cost: z
    .number()
    .min(0)
    .optional()
    .describe('By the prices of the configuration: CPU, bytes read, hours of a cluster'),
  currency: z.string().optional().describe('Currency of `cost`'),
}

const holdFields = z
  .looseObject({ act: z.string(), reason: z.string(), since: timestampSchema })
  .describe('The act that holds the waiting query: it does not start until it is released')

export const queryListItemSchema = z.looseObject({
  queryId: z.string(),
  ...costFields,
  session,
  state: queryState,
  self: uri,
  query: z.string().describe('First 4,096 characters of the text'),
  queryTruncated: z.literal(true).optional().describe('True: the text is longer; `self` has more of it'),
  queryType: z.string().optional(),
  ...behindFields,
  plan: z
    .enum(['local', 'coordinator', 'delegated'])
    .optional()
    .describe('Where the plan runs: on workers, in the coordinator, or at a cluster'),
  cluster: z.string().optional().describe('The cluster of the last attempt'),
  routingRule: z.string().optional().describe('The routing rule that decided'),
  queuedReason: z.string().optional().describe('What a QUEUED query waits for'),
  held: holdFields.optional(),
  resourceGroupId: z.array(z.string()),
  errorCode: errorCode.optional(),
  queryStats: listedQueryStats,
})

export type QueryListItem = Body<z.infer<typeof queryListItemSchema>>

const totalFigures = {
  queries: count,
  cpuTime: durationSchema,
  elapsedTime: durationSchema,
  rawInputDataSize: dataSize,
  outputPositions: count,
  outputDataSize: dataSize,
  ...costFields,
}

export const totalsInfoSchema = z.looseObject({
  ...totalFigures,
  states: z
    .partialRecord(queryState, z.looseObject(totalFigures))
    .describe('By state; states without queries are absent'),
})

export type TotalsInfo = Body<z.infer<typeof totalsInfoSchema>>

export const planNodeInfo = z.looseObject({
  name: z.string(),
  details: z.record(z.string(), z.string()),
  layout: z.array(z.string()).describe('Output columns, `name:type`'),
  estimate: z
    .looseObject({ rows: z.number().optional(), bytes: z.number().optional() })
    .describe('From the sizes of the tables; an absent number is unknown'),
  get children(): z.ZodArray<typeof planNodeInfo> {
    return z.array(planNodeInfo)
  },
})

export type PlanNodeInfo = Body<z.infer<typeof planNodeInfo>>

const usedTable = z.looseObject({
  catalogName: z.string(),
  schema: z.string(),
  table: z.string(),
  columns: z.array(z.looseObject({ name: z.string() })),
})

const lineageSource = z.looseObject({
  source: z.string().describe('`catalog.schema.table.column`'),
  direct: z
    .enum(['IDENTITY', 'TRANSFORMATION', 'AGGREGATION'])
    .optional()
    .describe('How the value gets into the output; absent: it only decides about values, or the record does not say'),
  indirect: z.array(z.string()).describe('How it decides about values or rows: FILTER, JOIN, GROUP_BY …'),
  masked: z.boolean().optional().describe('The value passed through a column mask of the access rules'),
})

const lineageInfo = z.looseObject({
  columns: z.array(z.looseObject({ name: z.string(), sources: z.array(lineageSource) })),
  rows: z.array(lineageSource).describe('Columns that decide about whole rows'),
})

/** The parts of a session that only the query's own resource shows. */
const sessionDetails = {
  principal: z.string().optional(),
  originalUser: z.string().optional(),
  groups: z.array(z.string()).optional(),
  roles: z.record(z.string(), z.string()).optional(),
  path: z.string().optional(),
  timeZone: z.string().optional(),
  locale: z.string().optional(),
  remoteUserAddress: z.string(),
  userAgent: z.string().optional(),
  clientInfo: z.string().optional(),
  clientTags: z.array(z.string()).optional(),
  traceToken: z.string().optional(),
  transactionId: z.string().optional(),
  systemProperties: z.record(z.string(), z.string()).optional(),
}

const queryRoute = z.looseObject({
  plan: z
    .enum(['local', 'coordinator', 'delegated'])
    .describe('Where the plan runs: on workers, in the coordinator, or at a cluster'),
  to: z
    .enum(['local', 'group', 'cluster', 'reject'])
    .optional()
    .describe('The decision; absent where no clusters are configured'),
  name: z.string().optional().describe('Name of the group or cluster'),
  rule: z.string().optional().describe('The routing rule that decided; absent if no rule decided'),
  fallback: z.boolean().optional().describe('Whether the fallback of the rule was taken'),
  grade: z
    .enum(['analysed', 'named', 'unchecked'])
    .optional()
    .describe('How far a delegated statement was checked before it was sent'),
  bytes: count
    .optional()
    .describe('The bytes that the statement reads here, if a rule asked for them and they are known'),
  skipped: z
    .array(z.looseObject({ rule: z.string(), why: z.string() }))
    .optional()
    .describe('Rules that match the statement, but whose route or fallback cannot run it; `why` is the reason'),
  cluster: z.string().optional().describe('The cluster of the last attempt'),
  remoteQueryId: z.string().optional().describe('The id of the query at that cluster'),
  attempts: count.optional().describe('How often the statement was sent to a cluster'),
})

export const queryInfoSchema = z.looseObject({
  queryId: z.string(),
  ...costFields,
  session: session.extend(sessionDetails),
  state: queryState,
  self: uri,
  resourceGroupId: z.array(z.string()),
  fieldNames: z.array(z.string()),
  fieldTypes: z.array(z.string()),
  query: z.string(),
  queryType: z.string().optional(),
  ...behindFields,
  queuedReason: z.string().optional().describe('What a QUEUED query waits for'),
  held: holdFields.extend({ by: heldBySchema.optional().describe('Only shown to users who may see it') }).optional(),
  rerun: z
    .looseObject({ queryId: z.string(), act: z.string() })
    .optional()
    .describe('The query whose statement this query runs again, and the act that did it'),
  queryStats: listedQueryStats.extend({
    runningTasks: count,
    completedTasks: count,
    queuedDrivers: count,
    runningDrivers: count,
    totalMemoryReservation: dataSize,
  }),
  route: queryRoute.optional().describe('Where the query runs, and why; absent until the query is planned'),
  inputs: z.array(usedTable).optional().describe('Tables that the query reads'),
  outputs: z.array(usedTable).optional().describe('Tables that the query writes'),
  lineage: lineageInfo.optional().describe('The sources of each output column; absent until the query is planned'),
  plan: planNodeInfo.optional().describe('The plan as EXPLAIN shows it; absent until the query is planned'),
  outputStage: stageInfo.optional().describe('Absent until the query is planned'),
  errorType: z.string().optional(),
  errorCode: errorCode.optional(),
  failureInfo: z.looseObject({ type: z.string(), message: z.string(), errorLocation: location.optional() }).optional(),
  warnings: z.array(warning),
  recoveries: count.describe('How often another coordinator has taken over the query'),
  finalQueryInfo: z.boolean().describe('Whether the query has ended and its figures are final'),
  endedBy: endedBySchema
    .optional()
    .describe('User who killed or canceled the query by its id; only shown to users who may see it'),
})

export type QueryInfo = Body<z.infer<typeof queryInfoSchema>>

export const cloudEvent = z.looseObject({
  specversion: z.literal('1.0'),
  id: z.string(),
  source: z.string(),
  type: z.string(),
  subject: z.string(),
  time: timestampSchema,
  datacontenttype: z.literal('application/json'),
  data: z.unknown(),
})

export const otlpTrace = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: z.array(z.unknown()) }),
      scopeSpans: z.array(
        z.looseObject({ spans: z.array(z.looseObject({ traceId: z.string(), spanId: z.string() })) }),
      ),
    }),
  ),
})
