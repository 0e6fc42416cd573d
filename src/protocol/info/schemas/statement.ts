import { z } from 'zod'
import { location, count, uri, type Body } from './values.ts'

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

export const warning = z.looseObject({
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
