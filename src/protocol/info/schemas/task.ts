import { z } from 'zod'
import { distributionSchema, taskStates, outputBufferStates } from '../../../execution/api/task.ts'
import { count, timestampSchema, dataSize, durationSchema, type Body } from './values.ts'

export const workFields = {
  totalDrivers: count,
  queuedDrivers: count,
  runningDrivers: count,
  completedDrivers: count,
  totalScheduledTime: durationSchema,
  totalCpuTime: durationSchema,
  totalBlockedTime: durationSchema,
  rawInputDataSize: dataSize,
  rawInputPositions: count,
  processedInputDataSize: dataSize,
  processedInputPositions: count,
  outputDataSize: dataSize,
  outputPositions: count,
}

const figures = { ...workFields, memoryReservation: dataSize }

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
  addInputWall: durationSchema,
  addInputCpu: durationSchema,
  addInputUser: durationSchema,
  getOutputWall: durationSchema,
  getOutputCpu: durationSchema,
  getOutputUser: durationSchema,
  blockedWall: durationSchema,
  finishWall: durationSchema,
  finishCpu: durationSchema,
  finishUser: durationSchema,
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
  lastHeartbeat: timestampSchema,
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
    createTime: timestampSchema,
    startTime: timestampSchema.optional(),
    endTime: timestampSchema.optional(),
    elapsedTime: durationSchema,
    queuedTime: durationSchema,
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
