import { z } from 'zod'
import { clusterHealths, clusterStates } from '../../../coordinator/clusters/state.ts'
import { erasureRequestSchema, erasureResultSchema } from '../../../erasure/erasure-store.ts'
import { previewSchema } from '../../../erasure/preview.ts'
import { count, timestampSchema, type KnownKeys, uri, durationSchema, type Body } from './values.ts'

export const nodeInfoSchema = z.looseObject({
  uri,
  age: durationSchema,
  recentRequests: z.number(),
  recentFailures: z.number(),
  recentSuccesses: z.number(),
  recentFailureRatio: z.number(),
  recentFailuresByType: z.record(z.string(), z.number()),
  lastRequestTime: timestampSchema.optional(),
  lastResponseTime: timestampSchema.optional(),
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

export const clusterInfoSchema = z.looseObject({
  name: z.string(),
  group: z.string(),
  url: uri,
  state: z.enum(clusterStates),
  health: z.enum(clusterHealths),
  reason: z.string().optional().describe('Why it is in this state; where it is ACTIVE, why it has this health'),
  by: z.string().optional().describe('Who asked for the state'),
  since: timestampSchema.optional(),
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
      at: timestampSchema,
      milliseconds: count,
      result: z.enum(['ready', 'starting', 'failed']),
      error: z.string().optional(),
    })
    .optional(),
})

export type ClusterInfo = Body<z.infer<typeof clusterInfoSchema>>

export const erasureInfoSchema = z.looseObject({
  erasureId: z.string(),
  state: z.enum(['RUNNING', 'ENDED', 'FAILED']),
  preview: z.boolean().describe('Whether nothing is removed'),
  requestedAt: timestampSchema,
  endedAt: timestampSchema.optional(),
  failure: z.string().optional().describe('Why the last attempt failed; an erasure that runs is tried again'),
  found: previewSchema.optional().describe('Only of a preview that has ended'),
  request: erasureRequestSchema.optional().describe('Only of an erasure; without the person or the value'),
  result: erasureResultSchema.optional().describe('Only of an erasure that has ended'),
})

export type ErasureInfo = Body<z.infer<typeof erasureInfoSchema>>

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
  cpuUsage: durationSchema,
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

export const serverInfo = z.looseObject({
  nodeVersion: z.looseObject({ version: z.string() }),
  environment: z.string(),
  coordinator: z.boolean(),
  starting: z.boolean(),
  /** Whether the coordinator writes the event log, and the epoch that it knows; present on a coordinator once it serves. */
  writer: z.boolean().optional(),
  epoch: count.optional(),
  uptime: durationSchema,
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
