import type { PipelineStats, TaskStats } from '../../execution/api/task.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'

/** The work of a pipeline, a task or all tasks of a stage, as the REST interface shows it. */
export interface WorkFigures {
  readonly totalDrivers: number
  readonly queuedDrivers: number
  readonly runningDrivers: number
  readonly completedDrivers: number
  readonly totalScheduledTime: string
  readonly totalCpuTime: string
  readonly totalBlockedTime: string
  readonly rawInputDataSize: string
  readonly rawInputPositions: number
  readonly processedInputDataSize: string
  readonly processedInputPositions: number
  readonly outputDataSize: string
  readonly outputPositions: number
}

const counts = [
  'totalDrivers',
  'queuedDrivers',
  'runningDrivers',
  'completedDrivers',
  'scheduledNanos',
  'cpuNanos',
  'blockedNanos',
  'rawInputBytes',
  'rawInputPositions',
  'processedInputBytes',
  'processedInputPositions',
  'outputBytes',
  'outputPositions',
] as const satisfies readonly (keyof TaskStats & keyof PipelineStats)[]

export type WorkCounts = Readonly<Record<(typeof counts)[number], number>>

export function workFigures(work: WorkCounts): WorkFigures {
  return {
    totalDrivers: work.totalDrivers,
    queuedDrivers: work.queuedDrivers,
    runningDrivers: work.runningDrivers,
    completedDrivers: work.completedDrivers,
    totalScheduledTime: formatDuration(work.scheduledNanos),
    totalCpuTime: formatDuration(work.cpuNanos),
    totalBlockedTime: formatDuration(work.blockedNanos),
    rawInputDataSize: formatSize(work.rawInputBytes),
    rawInputPositions: work.rawInputPositions,
    processedInputDataSize: formatSize(work.processedInputBytes),
    processedInputPositions: work.processedInputPositions,
    outputDataSize: formatSize(work.outputBytes),
    outputPositions: work.outputPositions,
  }
}

export function sumOfWork(all: readonly WorkCounts[]): WorkCounts {
  const sums = Object.fromEntries(counts.map((name) => [name, all.reduce((total, one) => total + one[name], 0)]))
  return sums as Record<(typeof counts)[number], number>
}
