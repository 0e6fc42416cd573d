import { z } from 'zod'
import { clusterHealths, clusterStates } from '../../coordinator/clusters/state.ts'
import { erasureRequestSchema, erasureResultSchema } from '../../erasure/erasure-store.ts'
import { previewSchema } from '../../erasure/preview.ts'
import { endedBySchema, heldBySchema } from '../../coordinator/query/stream/events.ts'
import { distributionSchema, taskStates, outputBufferStates } from '../../execution/api/task.ts'

/*
 * The bodies of the REST interface as clients see them, for `/openapi.json` and for tests that check real answers.
 * Fields are only ever added, so objects accept unknown keys.
 */

/** A body that a builder returns. */
type Body<T> = T extends object ? { readonly [K in keyof T]: Body<T[K]> } : T
/** Without the keys that the schema does not name. */
type KnownKeys<T> = T extends object ? { [K in keyof T as string extends K ? never : K]: KnownKeys<T[K]> } : T

const duration = z
  .string()
  .regex(/^\d+\.\d\d(ns|us|ms|s|m)$/)
  .describe('A number with its unit: ns, us, ms, s or m')
const dataSize = z
  .string()
  .regex(/^\d+(\.\d\d)?(B|kB)$/)
  .describe('A number with its unit: B, or kB (1024 bytes)')
const timestamp = z.iso.datetime({ offset: true })
const count = z.int().min(0)
const uri = z.url()

const location = z.looseObject({ lineNumber: z.int().min(1), columnNumber: z.int().min(1) })

export const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
})

// --- statements -------------------------------------------------------------------------------------------------------

export const stageStats = z.looseObject({
  stageId: z.string(),
  state: z.string(),
  done: z.boolean(),
  nodes: count,
  totalSplits: count,
  queuedSplits: count,
  runningSplits: count,
  completedSplits: count,
  cpuTimeMillis: count,
  wallTimeMillis: count,
  processedRows: count,
  processedBytes: count,
  get subStages(): z.ZodArray<typeof stageStats> {
    return z.array(stageStats)
  },
})
export type StageStats = Body<z.infer<typeof stageStats>>

const statementStats = z.looseObject({
  state: z.enum(['QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING', 'FINISHED', 'FAILED']),
  queued: z.boolean(),
  scheduled: z.boolean(),
  nodes: count,
  totalSplits: count,
  queuedSplits: count,
  runningSplits: count,
  completedSplits: count,
  cpuTimeMillis: count,
  wallTimeMillis: count,
  queuedTimeMillis: count,
  elapsedTimeMillis: count,
  processedRows: count,
  processedBytes: count,
  peakMemoryBytes: count,
  spilledBytes: count,
  progressPercentage: z.number().optional(),
  rootStage: stageStats.optional(),
})
export type StatementStats = Body<z.infer<typeof statementStats>>

const queryError = z.looseObject({
  message: z.string(),
  errorCode: z.int(),
  errorName: z.string(),
  errorType: z.enum(['USER_ERROR', 'INTERNAL_ERROR', 'INSUFFICIENT_RESOURCES', 'EXTERNAL']),
  errorLocation: location.optional(),
  failureInfo: z.looseObject({ type: z.string(), message: z.string() }),
})
export type QueryError = Body<z.infer<typeof queryError>>

const warning = z.looseObject({
  warningCode: z.looseObject({ code: z.int(), name: z.string() }),
  message: z.string(),
})

export const queryResults = z.looseObject({
  id: z.string(),
  infoUri: uri,
  partialCancelUri: uri.optional(),
  nextUri: uri.optional().describe('Address of the next answer; absent in the last one'),
  columns: z.array(z.looseObject({ name: z.string(), type: z.string(), typeSignature: z.unknown() })).optional(),
  data: z.array(z.array(z.unknown())).optional().describe('Rows; absent if the answer has none'),
  stats: statementStats,
  error: queryError.optional(),
  warnings: z.array(warning),
  updateType: z.string().optional(),
  updateCount: count.optional(),
})
export type QueryResults = Body<z.infer<typeof queryResults>>

// --- tasks ------------------------------------------------------------------------------------------------------------

const workFigures = {
  totalDrivers: count,
  queuedDrivers: count,
  runningDrivers: count,
  completedDrivers: count,
  totalScheduledTime: duration,
  totalCpuTime: duration,
  totalBlockedTime: duration,
  rawInputDataSize: dataSize,
  rawInputPositions: count,
  processedInputDataSize: dataSize,
  processedInputPositions: count,
  outputDataSize: dataSize,
  outputPositions: count,
}
const figures = { ...workFigures, memoryReservation: dataSize }

const operatorSummary = z.looseObject({
  operatorId: count,
  operatorType: z.string(),
  engineOperator: z
    .string()
    .describe("The engine's name of the operator; for a task that was not profiled, the plan's"),
  estimatedPositions: z.number().optional().describe('Rows of the output, as the engine estimated them before it ran'),
  addInputCalls: count,
  getOutputCalls: count,
  finishCalls: count,
  addInputWall: duration,
  addInputCpu: duration,
  addInputUser: duration,
  getOutputWall: duration,
  getOutputCpu: duration,
  getOutputUser: duration,
  blockedWall: duration,
  finishWall: duration,
  finishCpu: duration,
  finishUser: duration,
  inputDataSize: dataSize,
  outputDataSize: dataSize,
  memoryReservation: dataSize,
  inputPositions: count,
  outputPositions: count,
  unknown: z
    .array(z.enum(['inputPositions', 'outputPositions']))
    .optional()
    .describe('Counts that were not measured and are 0 here; only for a task that was not profiled'),
  info: z.looseObject({}).optional(),
})
export type OperatorSummary = Body<z.infer<typeof operatorSummary>>

const pipelineInfo = z.looseObject({
  inputPipeline: z.boolean(),
  outputPipeline: z.boolean(),
  ...figures,
  queuedTime: distributionSchema,
  elapsedTime: distributionSchema,
  operatorSummaries: z.array(operatorSummary),
  drivers: z.array(z.looseObject({})),
})
export type PipelineInfo = Body<z.infer<typeof pipelineInfo>>

export const taskInfoSchema = z.looseObject({
  taskId: z.string(),
  version: z.int(),
  state: z.enum(taskStates),
  self: z.string().describe('Address of the task resource, or the word unknown'),
  lastHeartbeat: timestamp,
  outputBuffers: z.looseObject({
    state: z.enum(outputBufferStates),
    masterSequenceId: z.int(),
    pagesAdded: count,
    buffers: z.array(
      z.looseObject({ bufferId: z.string(), finished: z.boolean(), bufferedPages: count, pagesSent: count }),
    ),
  }),
  noMoreSplits: z.array(z.string()),
  stats: z.looseObject({
    createTime: timestamp,
    startTime: timestamp.optional(),
    endTime: timestamp.optional(),
    elapsedTime: duration,
    queuedTime: duration,
    ...figures,
    profiled: z
      .boolean()
      .describe(
        'False: the engine did not measure operators. The pipelines come from the plan, with the rows and bytes that follow from the splits and the output. The output pipeline has the times of the whole task',
      ),
    pipelines: z.array(pipelineInfo).describe('Empty for a task that did not begin or was canceled'),
  }),
  failures: z.array(z.looseObject({ type: z.string(), message: z.string() })),
  outputs: z.looseObject({}),
})
export type TaskInfo = Body<z.infer<typeof taskInfoSchema>>

// --- nodes ------------------------------------------------------------------------------------------------------------

export const nodeInfoSchema = z.looseObject({
  uri,
  age: duration,
  recentRequests: z.number(),
  recentFailures: z.number(),
  recentSuccesses: z.number(),
  recentFailureRatio: z.number(),
  recentFailuresByType: z.record(z.string(), z.number()),
  lastRequestTime: timestamp.optional(),
  lastResponseTime: timestamp.optional(),
  lastFailureInfo: z
    .looseObject({
      type: z.string(),
      message: z.string(),
      stack: z.array(z.string()),
      suppressed: z.array(z.unknown()),
    })
    .optional(),
  nodeId: z.string(),
  nodeVersion: z.looseObject({ version: z.string() }),
  state: z.enum(['active', 'suspect', 'failed', 'shutting_down']),
  runningTasks: count.optional().describe('Tasks of open queries of this coordinator on the worker'),
  cores: count.optional(),
  memoryBytes: count.optional().describe("Memory of the worker's machine or container"),
})
export type NodeInfo = Body<z.infer<typeof nodeInfoSchema>>

// --- clusters ---------------------------------------------------------------------------------------------------------

export const clusterInfoSchema = z.looseObject({
  name: z.string(),
  group: z.string(),
  url: uri,
  state: z.enum(clusterStates),
  health: z.enum(clusterHealths),
  reason: z.string().optional().describe('Why it is in this state; where it is ACTIVE, why it has this health'),
  by: z.string().optional().describe('Who asked for the state'),
  since: timestamp.optional(),
  running: count,
  waiting: count.describe('Those that wait for its group count'),
  maxRunning: count.optional(),
  weight: z.number(),
  version: z.string().optional(),
  catalogs: z.array(z.string()).optional(),
  mirrors: z.array(z.string()),
  refusedCatalogs: z.array(z.string()).describe('This server has a catalog of that name, and no mirror of it'),
  lastCheck: z
    .looseObject({
      at: timestamp,
      milliseconds: count,
      result: z.enum(['ready', 'starting', 'failed']),
      error: z.string().optional(),
    })
    .optional(),
})
export type ClusterInfo = Body<z.infer<typeof clusterInfoSchema>>

// --- erasures ---------------------------------------------------------------------------------------------------------

export const erasureInfoSchema = z.looseObject({
  erasureId: z.string(),
  state: z.enum(['RUNNING', 'ENDED', 'FAILED']),
  preview: z.boolean().describe('Whether nothing is removed'),
  requestedAt: timestamp,
  endedAt: timestamp.optional(),
  failure: z.string().optional().describe('Why the last attempt failed; an erasure that runs is tried again'),
  found: previewSchema.optional().describe('Only of a preview that has ended'),
  request: erasureRequestSchema.optional().describe('Only of an erasure; without the person or the value'),
  result: erasureResultSchema.optional().describe('Only of an erasure that has ended'),
})
export type ErasureInfo = Body<z.infer<typeof erasureInfoSchema>>

// --- resource groups --------------------------------------------------------------------------------------------------

const groupSummaryFields = {
  id: z.array(z.string()),
  state: z.enum(['CAN_RUN', 'CAN_QUEUE', 'FULL']),
  schedulingPolicy: z.enum(['FAIR', 'WEIGHTED', 'WEIGHTED_FAIR', 'QUERY_PRIORITY']),
  schedulingWeight: count,
  softMemoryLimit: z.string(),
  softConcurrencyLimit: count,
  hardConcurrencyLimit: count,
  hardPhysicalDataScanLimit: z.string(),
  maxQueuedQueries: count,
  memoryUsage: z.string(),
  cpuUsage: duration,
  physicalInputDataUsage: z.string(),
  numQueuedQueries: count,
  numRunningQueries: count,
  numEligibleSubGroups: count,
}

export const resourceGroupInfo = z.looseObject({
  ...groupSummaryFields,
  subGroups: z.array(z.looseObject(groupSummaryFields)).optional(),
  runningQueries: z
    .array(z.looseObject({ queryId: z.string(), queryState: z.string(), query: z.string(), user: z.string() }))
    .optional(),
})
export type ResourceGroupInfo = Body<z.infer<typeof resourceGroupInfo>>

// --- queries ----------------------------------------------------------------------------------------------------------

export const stageInfo = z.looseObject({
  stageId: z.string(),
  state: z.string(),
  done: z.boolean(),
  self: uri,
  types: z.array(z.string()),
  stageStats: z.looseObject({
    startTime: timestamp.optional(),
    endTime: timestamp.optional(),
    totalTasks: count,
    runningTasks: count,
    completedTasks: count,
    totalSplits: count,
    queuedSplits: count,
    runningSplits: count,
    completedSplits: count,
    ...workFigures,
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
  createTime: timestamp,
  executionStartTime: timestamp.optional(),
  lastHeartbeat: timestamp,
  endTime: timestamp.optional(),
  elapsedTime: duration,
  queuedTime: duration,
  analysisTime: duration,
  totalScheduledTime: duration,
  totalCpuTime: duration,
  totalBlockedTime: duration,
  planningTime: duration,
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

const queryState = z.enum(['QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING', 'FINISHED', 'FAILED'])

/** The program behind a query, as the client says, and the shape of the statement. */
const behindFields = {
  app: z.string().optional().describe('Program that sent the statement, as the client says: `dbt`, `metabase` …'),
  appObject: z.string().optional().describe('Its object: a dbt model, a dashboard, a DAG'),
  appUser: z.string().optional().describe('Its user'),
  fingerprint: z.string().optional().describe('Equal for statements that differ only in literals'),
}

const errorCode = z.looseObject({ code: z.int(), name: z.string(), type: z.string() })

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
  .looseObject({ act: z.string(), reason: z.string(), since: timestamp })
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
  cpuTime: duration,
  elapsedTime: duration,
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
  time: timestamp,
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

// --- the server -------------------------------------------------------------------------------------------------------

export const serverInfo = z.looseObject({
  nodeVersion: z.looseObject({ version: z.string() }),
  environment: z.string(),
  coordinator: z.boolean(),
  starting: z.boolean(),
  /** Whether it writes the event log, and the epoch that it knows; present on a coordinator once it serves. */
  writer: z.boolean().optional(),
  epoch: count.optional(),
  uptime: duration,
})
export type ServerInfo = Body<z.infer<typeof serverInfo>>

export const serverStatus = z.looseObject({
  live: z.literal(true),
  ready: z.boolean(),
  log: z.enum(['up', 'down']),
  database: z.enum(['up', 'down']),
  writer: z.boolean(),
  epoch: count,
  lag: z.looseObject({ events: count, oldestMillis: z.number() }).optional(),
  projection: z
    .looseObject({
      state: z.enum(['following', 'retrying', 'stopped']),
      since: z.iso.datetime().optional(),
      reason: z.string().optional(),
    })
    .optional(),
  deadLetters: count,
  restarts: count,
  workers: z.looseObject({ active: count, suspect: count, failed: count }),
  openQueries: count,
})
export type ServerStatus = KnownKeys<Body<z.infer<typeof serverStatus>>>
