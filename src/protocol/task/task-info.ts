import type {
  Distribution,
  DriverStats,
  OperatorStats,
  PipelineStats,
  TaskStats,
  TaskStatus,
} from '../../execution/api/task.ts'
import { plannedPipelines, type PlannedOperator, type PlannedPlan } from '../../execution/worker/planned-pipelines.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'
import { percentilesOf } from './distribution.ts'
import { workFigures, type WorkFigures } from './work-figures.ts'
import type { TaskId } from '../../shared/ids.ts'

/** Task info as the REST interface shows it: durations and sizes as text. */
export interface TaskInfo {
  readonly taskId: TaskId
  readonly version: number
  readonly state: TaskStatus['state']
  readonly self: string
  readonly lastHeartbeat: string
  readonly outputBuffers: {
    readonly state: TaskStatus['bufferState']
    readonly masterSequenceId: number
    readonly pagesAdded: number
    readonly buffers: readonly {
      readonly bufferId: string
      readonly finished: boolean
      readonly bufferedPages: number
      readonly pagesSent: number
    }[]
  }
  readonly noMoreSplits: readonly string[]
  readonly stats: TaskInfoStats
  readonly failures: readonly TaskInfoFailure[]
  readonly outputs: Readonly<Record<string, never>>
}

interface TaskInfoFailure {
  readonly type: string
  readonly message: string
  readonly errorCode: { readonly code: number; readonly name: string; readonly type: string }
  readonly location?: { readonly lineNumber: number; readonly columnNumber: number }
}

interface Figures extends WorkFigures {
  readonly memoryReservation: string
}

interface TaskInfoStats extends Figures {
  readonly createTime: string
  readonly startTime?: string
  readonly endTime?: string
  readonly elapsedTime: string
  readonly queuedTime: string
  /** False when tasks shared the engine, so that its CPU time was divided in proportion to scheduled time. */
  readonly cpuExact: boolean
  /**
   * False when the profiler was off: the pipelines are those of the plan, with the figures that are known without a
   * profile.
   */
  readonly profiled: boolean
  readonly pipelines: readonly PipelineInfo[]
}

interface PipelineInfo extends Figures {
  readonly pipelineId: number
  readonly inputPipeline: boolean
  readonly outputPipeline: boolean
  /** Nanoseconds, over the pipeline's drivers. */
  readonly queuedTime: Distribution
  readonly elapsedTime: Distribution
  readonly operatorSummaries: readonly OperatorSummary[]
  readonly drivers: readonly DriverInfo[]
}

interface OperatorSummary {
  readonly operatorId: number
  readonly operatorType: string
  readonly engineOperator: string
  readonly addInputCalls: number
  readonly addInputWall: string
  readonly addInputCpu: string
  readonly addInputUser: string
  readonly inputDataSize: string
  readonly inputPositions: number
  readonly getOutputCalls: number
  readonly getOutputWall: string
  readonly getOutputCpu: string
  readonly getOutputUser: string
  readonly outputDataSize: string
  readonly outputPositions: number
  readonly blockedWall: string
  readonly finishCalls: number
  readonly finishWall: string
  readonly finishCpu: string
  readonly finishUser: string
  readonly memoryReservation: string
  /** Counts that are unknown, for an operator that was not profiled: they are 0 here. */
  readonly unknown?: NonNullable<PlannedOperator['unknown']>
  readonly info?: NonNullable<OperatorStats['exchange']>
}

interface DriverInfo {
  readonly batch: number
  readonly startTime: string
  readonly endTime: string
  readonly queuedTime: string
  readonly elapsedTime: string
  readonly totalScheduledTime: string
  readonly totalCpuTime: string
  readonly totalBlockedTime: string
}

/** The source of task info. The coordinator has it from a worker's status, from memory, or from a read model. */
export type TaskInfoSource = Omit<TaskStatus, 'pages' | 'inlinePages' | 'instanceId' | 'attempt'>

/**
 * Makes the task info.
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

function failureInfo(failure: NonNullable<TaskStatus['failure']>): TaskInfoFailure {
  const { errorName: name, errorCode: code, errorType: type, message, location } = failure
  return { type: name, message, errorCode: { code, name, type }, ...(location && { location }) }
}

function taskInfoStats(stats: TaskStats): TaskInfoStats {
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

function figures(stats: TaskStats | PipelineStats): Figures {
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
    ...(operator.unknown && { unknown: operator.unknown }),
    ...(operator.exchange && { info: operator.exchange }),
  }
}

function driverInfo(driver: DriverStats): DriverInfo {
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
