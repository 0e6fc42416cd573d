import type { DriverStats, OperatorStats, PipelineStats, TaskStats, TaskStatus } from '../../execution/api/task.ts'
import { plannedPipelines, type PlannedOperator, type PlannedPlan } from '../../execution/worker/planned-pipelines.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'
import { percentilesOf } from './distribution.ts'
import { workFigures } from './work-figures.ts'
import type { OperatorSummary, PipelineInfo, TaskInfo } from '../info/schemas/task.ts'

/** The source of task info. The coordinator has it from a worker's status, from memory, or from a read model. */
export type TaskInfoSource = Omit<TaskStatus, 'pages' | 'inlinePages' | 'instanceId' | 'attempt'>

/**
 * Makes the task info, with durations and sizes as text.
 * @param self address of the task resource, or the word `unknown`
 * @param plan plan of the task, where it is available; it shows the operators of a task without a profile
 */
export function taskInfo(source: TaskInfoSource, self: string, plan?: PlannedPlan): TaskInfo {
  const { failure, bufferState, pagesSent, bufferedPages } = source
  return {
    taskId: source.taskId,
    version: source.version,
    state: source.state,
    self,
    lastHeartbeat: source.lastHeartbeat,
    outputBuffers: {
      state: bufferState,
      masterSequenceId: 0,
      pagesAdded: pagesSent + bufferedPages,
      buffers: [{ bufferId: '0', finished: bufferState === 'FINISHED', bufferedPages, pagesSent }],
    },
    noMoreSplits: source.noMoreSplits,
    stats: taskInfoStats(withPipelines(source, plan)),
    failures: failure ? [failureInfo(failure)] : [],
    outputs: {},
  }
}

/**
 * Adds planned pipelines. A task that began has pipelines, whether or not it was profiled; a cancelled one has those of
 * its profile only.
 */
function withPipelines({ state, stats }: TaskInfoSource, plan: PlannedPlan | undefined): TaskStats {
  const isCanceled = state === 'CANCELED' || state === 'ABORTED'
  if (stats.profiled || stats.pipelines.length > 0 || stats.startTime === undefined || isCanceled) return stats
  return { ...stats, pipelines: [...plannedPipelines(stats, plan)] }
}

function failureInfo(failure: NonNullable<TaskStatus['failure']>) {
  const { errorName: name, errorCode: code, errorType: type, message, location } = failure
  return { type: name, message, errorCode: { code, name, type }, ...(location && { location }) }
}

function taskInfoStats(stats: TaskStats): TaskInfo['stats'] {
  return {
    createTime: stats.createTime,
    ...(stats.startTime !== undefined && { startTime: stats.startTime }),
    ...(stats.endTime !== undefined && { endTime: stats.endTime }),
    elapsedTime: formatDuration(stats.elapsedNanos),
    queuedTime: formatDuration(stats.queuedNanos),
    ...figures(stats),
    cpuExact: stats.cpuExact,
    profiled: stats.profiled,
    pipelines: stats.pipelines.map(pipelineInfo),
  }
}

function figures(stats: TaskStats | PipelineStats) {
  return { ...workFigures(stats), memoryReservation: formatSize(stats.memoryBytes) }
}

function pipelineInfo(pipeline: PipelineStats): PipelineInfo {
  const { operators, drivers } = pipeline
  const operatorNanos = operators.reduce((total, { timeNanos }) => total + timeNanos, 0)
  return {
    pipelineId: pipeline.pipelineId,
    inputPipeline: pipeline.inputPipeline,
    outputPipeline: pipeline.outputPipeline,
    ...figures(pipeline),
    queuedTime: percentilesOf(drivers.map(({ queuedNanos }) => queuedNanos)),
    elapsedTime: percentilesOf(drivers.map(({ elapsedNanos }) => elapsedNanos)),
    operatorSummaries: operators.map((operator) =>
      operatorSummary(operator, operatorNanos > 0 ? (pipeline.cpuNanos * operator.timeNanos) / operatorNanos : 0),
    ),
    drivers: drivers.map(driverInfo),
  }
}

const ZERO = formatDuration(0)

/** The engine's profiler gives one time for each operator, shown as getOutput. The other times are unknown and 0. */
function operatorSummary(
  operator: OperatorStats & Pick<PlannedOperator, 'unknown'>,
  cpuNanos: number,
): OperatorSummary {
  return {
    operatorId: operator.operatorId,
    operatorType: operator.operatorType,
    engineOperator: operator.engineOperator,
    addInputCalls: operator.addInputCalls,
    addInputWall: ZERO,
    addInputCpu: ZERO,
    addInputUser: ZERO,
    inputDataSize: formatSize(operator.inputBytes),
    inputPositions: operator.inputPositions,
    getOutputCalls: operator.getOutputCalls,
    getOutputWall: formatDuration(operator.timeNanos),
    getOutputCpu: formatDuration(cpuNanos),
    getOutputUser: ZERO,
    outputDataSize: formatSize(operator.outputBytes),
    outputPositions: operator.outputPositions,
    blockedWall: formatDuration(operator.blockedNanos),
    finishCalls: operator.finishCalls,
    finishWall: ZERO,
    finishCpu: ZERO,
    finishUser: ZERO,
    memoryReservation: formatSize(0),
    ...(operator.estimatedPositions !== undefined && { estimatedPositions: operator.estimatedPositions }),
    ...(operator.unknown && { unknown: operator.unknown }),
    ...(operator.exchange && { info: operator.exchange }),
  }
}

function driverInfo(driver: DriverStats) {
  return {
    batch: driver.batch,
    startTime: driver.startTime,
    endTime: driver.endTime,
    queuedTime: formatDuration(driver.queuedNanos),
    elapsedTime: formatDuration(driver.elapsedNanos),
    totalScheduledTime: formatDuration(driver.scheduledNanos),
    totalCpuTime: formatDuration(driver.cpuNanos),
    totalBlockedTime: formatDuration(driver.blockedNanos),
  }
}
