/**
 * Fields of an answer about the present that an answer with `asOf` lacks or has with another value, because no event
 * carries them. Paths from the root of the answer; `*` is any element or key, `**` any number of steps.
 */
export interface LiveFields {
  readonly always: readonly string[]
  /** Until the query, or the task, has ended in the log. */
  readonly whileOpen: readonly string[]
  /**
   * Unless the task finished successfully: the log has the outcome that was reported or decided, the worker has the
   * actual one.
   */
  readonly unlessFinished: readonly string[]
}

/** Figures that grow while a task runs. The log has them only from time to time (QueryProgressed). */
const FIGURES = [
  'totalDrivers',
  'queuedDrivers',
  'runningDrivers',
  'completedDrivers',
  'totalSplits',
  'queuedSplits',
  'runningSplits',
  'completedSplits',
  'totalMemoryReservation',
  'peakTotalMemoryReservation',
  'spilledDataSize',
  'totalScheduledTime',
  'totalCpuTime',
  'totalBlockedTime',
  'rawInputDataSize',
  'rawInputPositions',
  'processedInputDataSize',
  'processedInputPositions',
  'outputDataSize',
  'outputPositions',
] as const

/** Fields of `GET /v1/query/{queryId}`. */
export const liveQueryFields: LiveFields = {
  always: ['queryStats.lastHeartbeat'],
  whileOpen: [
    'queuedReason',
    ...['elapsedTime', 'queuedTime', 'executionTime', 'progressPercentage', ...FIGURES].map(
      (name) => `queryStats.${name}`,
    ),
    ...FIGURES.map((name) => `outputStage.**.stageStats.${name}`),
    'outputStage.**.tasks.*.stats',
  ],
  unlessFinished: [],
}

/**
 * Fields of `GET /v1/task/{taskId}`. The worker that has the task answers about the present: it counts its own
 * versions, knows its own pages, and is ahead of the log by the changes that it has not reported yet.
 */
export const liveTaskFields: LiveFields = {
  always: ['version', 'lastHeartbeat', 'outputBuffers', 'noMoreSplits'],
  whileOpen: [],
  unlessFinished: ['state', 'failures', 'stats'],
}
