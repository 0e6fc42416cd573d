/**
 * What an answer about the present may have and an answer with `asOf` has not, or has otherwise: no event carries it.
 * Paths from the top of the answer; `*` is any element or key, `**` any number of steps.
 */
export interface LiveFields {
  readonly always: readonly string[]
  /** Until the query, or the task, has ended in the log. */
  readonly whileOpen: readonly string[]
  /** Unless it ended well: the log has what was told or decided, the worker what came of it. */
  readonly unlessFinished: readonly string[]
}

/** Figures that grow while a task runs; the log has them from time to time (QueryProgressed). */
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

/** Of `GET /v1/query/{queryId}`. */
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
 * Of `GET /v1/task/{taskId}`. The worker that has the task answers about the present: it counts its own versions,
 * knows its own pages, and is ahead of the log by what it has not told yet.
 */
export const liveTaskFields: LiveFields = {
  always: ['version', 'lastHeartbeat', 'outputBuffers', 'noMoreSplits'],
  whileOpen: [],
  unlessFinished: ['state', 'failures', 'stats'],
}
