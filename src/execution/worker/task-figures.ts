import type { DuckDbProfile, ProfilePipeline } from '../engine/engine.ts'
import type { DriverStats, OperatorStats, PipelineStats, TaskStats } from '../api/task.ts'
import type { BatchFigures } from './batch-figures.ts'

export interface TaskProgress {
  readonly createdAt: number
  readonly startedAt: number | undefined
  readonly endedAt: number | undefined
  readonly now: number
  readonly batchesTotal: number
  readonly batchesRunning: number
  readonly done: readonly BatchFigures[]
  /** Of the pages listed, batches that still run included. */
  readonly outputPositions: number
  readonly outputBytes: number
  readonly profile: boolean
  pipelinesOf(profile: DuckDbProfile): readonly ProfilePipeline[]
}

/** A task's statistics, each field from the source that design section 7 names. */
export function taskStats(progress: TaskProgress): TaskStats {
  const { createdAt, startedAt, endedAt, done } = progress
  const sum = (field: (batch: BatchFigures) => number): number => done.reduce((total, batch) => total + field(batch), 0)
  const pipelines = progress.profile ? sumPipelines(done, progress.pipelinesOf) : []
  const profiled = progress.profile && done.every(({ profile }) => profile !== undefined)
  // A driver is one pipeline of one batch. How many pipelines a batch has is known once one has ended.
  const driversABatch = Math.max(1, pipelines.length)
  const completedDrivers = Math.max(
    done.length,
    pipelines.reduce((total, { completedDrivers: drivers }) => total + drivers, 0),
  )
  const runningDrivers = progress.batchesRunning * driversABatch
  const queued = Math.max(0, progress.batchesTotal - progress.batchesRunning - done.length)
  const rawInputPositions = sum((batch) => batch.rawInputPositions)
  const rawInputBytes = sum((batch) => batch.rawInputBytes)
  return {
    createTime: new Date(createdAt).toISOString(),
    ...(startedAt !== undefined && { startTime: new Date(startedAt).toISOString() }),
    ...(endedAt !== undefined && startedAt !== undefined && { endTime: new Date(endedAt).toISOString() }),
    elapsedNanos: Math.max(0, Math.round(((endedAt ?? progress.now) - createdAt) * 1e6)),
    queuedNanos: Math.max(0, Math.round(((startedAt ?? endedAt ?? progress.now) - createdAt) * 1e6)),
    totalDrivers: completedDrivers + runningDrivers + queued * driversABatch,
    queuedDrivers: queued * driversABatch,
    runningDrivers,
    completedDrivers,
    totalSplits: progress.batchesTotal,
    queuedSplits: queued,
    runningSplits: progress.batchesRunning,
    completedSplits: done.length,
    // Nothing is reserved once nothing runs; while something does, its peak is known when it ends.
    memoryBytes: endedAt === undefined ? max(done, 'peakMemoryBytes') : 0,
    peakMemoryBytes: max(done, 'peakMemoryBytes'),
    spilledBytes: sum((batch) => batch.spilledBytes),
    scheduledNanos: sum((batch) => batch.scheduledNanos),
    cpuNanos: sum((batch) => batch.cpuNanos),
    cpuExact: done.every(({ cpuExact }) => cpuExact),
    wallNanos: sum((batch) => batch.wallNanos),
    blockedNanos: sum((batch) => batch.blockedNanos),
    rawInputBytes,
    rawInputPositions,
    processedInputBytes: rawInputBytes,
    processedInputPositions: profiled && done.length > 0 ? processedPositions(pipelines) : rawInputPositions,
    outputBytes: progress.outputBytes,
    outputPositions: progress.outputPositions,
    profiled,
    pipelines,
  }
}

function max(done: readonly BatchFigures[], field: 'peakMemoryBytes'): number {
  return done.reduce((most, batch) => Math.max(most, batch[field]), 0)
}

/** Rows that the scans gave, after the filters pushed into them. */
function processedPositions(pipelines: readonly PipelineStats[]): number {
  return pipelines.reduce((total, { processedInputPositions }) => total + processedInputPositions, 0)
}

const SCANS = new Set(['TableScanOperator', 'ScanFilterAndProjectOperator'])

/**
 * Pipelines of all batches, summed place by place: batches run the same statement over other splits, so their plans are
 * the same but for what the optimiser turns over with their sizes; a plan of another shape is counted beside the others.
 */
function sumPipelines(done: readonly BatchFigures[], pipelinesOf: TaskProgress['pipelinesOf']): PipelineStats[] {
  const shapes = new Map<string, { readonly batch: BatchFigures; readonly pipelines: readonly ProfilePipeline[] }[]>()
  for (const batch of done) {
    if (!batch.profile) continue
    const pipelines = pipelinesOf(batch.profile)
    const shape = JSON.stringify(
      pipelines.map(({ operators }) =>
        operators.map(({ engineOperator, operatorType }) => [engineOperator, operatorType]),
      ),
    )
    shapes.set(shape, [...(shapes.get(shape) ?? []), { batch, pipelines }])
  }
  const summed: PipelineStats[] = []
  for (const batches of shapes.values()) {
    const inputs = batches[0]!.pipelines.filter(({ inputPipeline }) => inputPipeline).length
    for (const place of batches[0]!.pipelines.keys()) {
      summed.push(
        sumPipeline(
          summed.length,
          batches.map(({ batch, pipelines }) => ({ batch, all: pipelines, pipeline: pipelines[place]! })),
          Math.max(1, inputs),
        ),
      )
    }
  }
  return summed
}

interface PipelineOfBatch {
  readonly batch: BatchFigures
  readonly all: readonly ProfilePipeline[]
  readonly pipeline: ProfilePipeline
}

function sumPipeline(pipelineId: number, parts: readonly PipelineOfBatch[], inputPipelines: number): PipelineStats {
  const first = parts[0]!.pipeline
  const drivers = parts.map(driverOf)
  const operators = first.operators.map((_, place) => sumOperator(place, parts))
  const rows = (field: 'inputPositions' | 'outputPositions', operator: OperatorStats | undefined): number =>
    operator?.[field] ?? 0
  const scans = operators.filter(({ operatorType }) => SCANS.has(operatorType))
  const processedInputPositions = scans.reduce((total, scan) => total + scan.outputPositions, 0)
  // Several scans share the batch's input; metadata count it by split, so each input pipeline is given its even part
  // when it cannot be told whose it is.
  const share = first.inputPipeline ? 1 / inputPipelines : 0
  const sum = (field: (batch: BatchFigures) => number): number =>
    parts.reduce((total, { batch }) => total + field(batch), 0)
  const rawInputBytes = Math.round(sum((batch) => batch.rawInputBytes) * share)
  return {
    pipelineId,
    inputPipeline: first.inputPipeline,
    outputPipeline: first.outputPipeline,
    memoryBytes: 0,
    rawInputBytes,
    rawInputPositions: Math.round(sum((batch) => batch.rawInputPositions) * share),
    processedInputBytes: rawInputBytes,
    processedInputPositions,
    outputBytes: first.outputPipeline ? sum((batch) => batch.outputBytes) : 0,
    outputPositions: first.outputPipeline
      ? sum((batch) => batch.outputPositions)
      : rows('outputPositions', operators.at(-1)),
    totalDrivers: drivers.length,
    queuedDrivers: 0,
    runningDrivers: 0,
    completedDrivers: drivers.length,
    scheduledNanos: drivers.reduce((total, { scheduledNanos }) => total + scheduledNanos, 0),
    cpuNanos: drivers.reduce((total, { cpuNanos }) => total + cpuNanos, 0),
    blockedNanos: drivers.reduce((total, { blockedNanos }) => total + blockedNanos, 0),
    operators,
    drivers,
  }
}

function timeOf({ operators }: ProfilePipeline): number {
  return operators.reduce((total, { timeSeconds }) => total + timeSeconds, 0)
}

/** A batch's CPU belongs to its pipelines by their operators' times. */
function driverOf({ batch, all, pipeline }: PipelineOfBatch): DriverStats {
  const seconds = timeOf(pipeline)
  const ofBatch = all.reduce((total, other) => total + timeOf(other), 0)
  const part = ofBatch > 0 ? seconds / ofBatch : 1 / all.length
  return {
    batch: batch.batch,
    startTime: new Date(batch.startedAt).toISOString(),
    endTime: new Date(batch.endedAt).toISOString(),
    queuedNanos: batch.queuedNanos,
    elapsedNanos: batch.wallNanos,
    scheduledNanos: Math.round(seconds * 1e9),
    cpuNanos: Math.round(batch.cpuNanos * part),
    // Back-pressure stops the pipeline that writes the output.
    blockedNanos: pipeline.outputPipeline ? batch.blockedNanos : 0,
  }
}

function sumOperator(place: number, parts: readonly PipelineOfBatch[]): OperatorStats {
  const all = parts.map(({ pipeline }) => pipeline.operators[place]!)
  const first = all[0]!
  const sum = (field: 'inputPositions' | 'outputPositions' | 'timeSeconds'): number =>
    all.reduce((total, operator) => total + operator[field], 0)
  const estimated = all.reduce((total, { estimatedPositions }) => total + (estimatedPositions ?? 0), 0)
  const isScan = SCANS.has(first.operatorType)
  const isOutput = first.operatorType === 'TaskOutputOperator'
  return {
    operatorId: place,
    operatorType: first.operatorType,
    engineOperator: first.engineOperator,
    inputPositions: sum('inputPositions'),
    outputPositions: sum('outputPositions'),
    ...(all.some(({ estimatedPositions }) => estimatedPositions !== undefined) && { estimatedPositions: estimated }),
    inputBytes: isScan ? parts.reduce((total, { batch }) => total + batch.rawInputBytes, 0) : 0,
    outputBytes: isOutput ? parts.reduce((total, { batch }) => total + batch.outputBytes, 0) : 0,
    timeNanos: Math.round(sum('timeSeconds') * 1e9),
    blockedNanos: isOutput ? parts.reduce((total, { batch }) => total + batch.blockedNanos, 0) : 0,
    addInputCalls: 0,
    getOutputCalls: 0,
    finishCalls: 0,
  }
}
