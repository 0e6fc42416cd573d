import type { QueryInfo, QueryListItem, StageInfo } from '../../src/protocol/info/schemas/query.ts'
import type { StatementStats } from '../../src/protocol/info/schemas/statement.ts'
import type { OperatorSummary, TaskInfo } from '../../src/protocol/info/schemas/task.ts'

const listedStats = {
  createTime: '2026-11-21T21:44:46.088Z',
  lastHeartbeat: '2026-11-21T21:44:46.088Z',
  elapsedTime: '1.00ms',
  queuedTime: '0.00ns',
  analysisTime: '0.00ns',
  planningTime: '0.00ns',
  totalScheduledTime: '0.00ns',
  totalCpuTime: '0.00ns',
  totalBlockedTime: '0.00ns',
  totalTasks: 1,
  totalDrivers: 1,
  completedDrivers: 1,
  totalSplits: 1,
  completedSplits: 1,
  peakTotalMemoryReservation: '0B',
  spilledDataSize: '0B',
  rawInputDataSize: '0B',
  processedInputDataSize: '0B',
  outputDataSize: '0B',
  rawInputPositions: 0,
  processedInputPositions: 0,
  outputPositions: 1,
} satisfies QueryListItem['queryStats']

/** An element of `GET /v1/query`, for a page that reads it. */
export function listedQuery(queryId: string, changes: Partial<QueryListItem> = {}): QueryListItem {
  return {
    queryId,
    session: { user: 'ana', startTime: 0 },
    state: 'FINISHED',
    self: `http://localhost/v1/query/${queryId}`,
    query: 'SELECT 1',
    resourceGroupId: ['global'],
    queryStats: listedStats,
    ...changes,
  }
}

/** The body of `GET /v1/query/{id}`, for a page that reads it. */
export function queryBody(queryId: string, changes: Partial<QueryInfo> = {}): QueryInfo {
  return {
    queryId,
    session: { user: 'ana', startTime: 0, remoteUserAddress: '127.0.0.1' },
    resourceGroupId: ['global'],
    state: 'RUNNING',
    self: `http://localhost/v1/query/${queryId}`,
    fieldNames: [],
    fieldTypes: [],
    query: 'SELECT 1',
    queryStats: {
      ...listedStats,
      runningTasks: 0,
      completedTasks: 1,
      queuedDrivers: 0,
      runningDrivers: 0,
      totalMemoryReservation: '0B',
    },
    warnings: [],
    recoveries: 0,
    finalQueryInfo: false,
    ...changes,
  }
}

const noWork = {
  totalDrivers: 0,
  queuedDrivers: 0,
  runningDrivers: 0,
  completedDrivers: 0,
  totalScheduledTime: '0.00ns',
  totalCpuTime: '0.00ns',
  totalBlockedTime: '0.00ns',
  rawInputDataSize: '0B',
  rawInputPositions: 0,
  processedInputDataSize: '0B',
  processedInputPositions: 0,
  outputDataSize: '0B',
  outputPositions: 0,
}

/** A stage of `queryBody`, for a page that reads it. */
export function stageBody(
  stageId: string,
  subStages: readonly StageInfo[] = [],
  tasks: readonly TaskInfo[] = [],
  stats: Partial<StageInfo['stageStats']> = {},
): StageInfo {
  return {
    stageId,
    state: 'RUNNING',
    done: false,
    self: `http://localhost/v1/stage/${stageId}`,
    types: [],
    stageStats: {
      totalTasks: tasks.length,
      runningTasks: 0,
      completedTasks: 0,
      totalSplits: 0,
      queuedSplits: 0,
      runningSplits: 0,
      completedSplits: 0,
      ...noWork,
      totalMemoryReservation: '0B',
      ...stats,
    },
    tasks,
    subStages,
  }
}

/** A profiled task with one pipeline of these operators. */
export function taskBody(taskId: string, operators: readonly Partial<OperatorSummary>[]): TaskInfo {
  const times = { count: 0, maxError: 0, total: 0, min: 0, max: 0, p01: 0, p05: 0, p10: 0, p25: 0, p50: 0, p75: 0 }
  const distribution = { ...times, p90: 0, p95: 0, p99: 0 }
  return {
    taskId,
    version: 1,
    state: 'RUNNING',
    self: `http://worker-1:9001/v1/task/${taskId}`,
    lastHeartbeat: '2026-11-21T21:44:46.088Z',
    outputBuffers: { state: 'OPEN', masterSequenceId: 0, pagesAdded: 0, buffers: [] },
    noMoreSplits: [],
    stats: {
      createTime: '2026-11-21T21:44:46.088Z',
      startTime: '2026-11-21T21:44:46.100Z',
      elapsedTime: '1.00s',
      queuedTime: '0.00ns',
      ...noWork,
      memoryReservation: '0B',
      profiled: true,
      pipelines: [
        {
          inputPipeline: true,
          outputPipeline: true,
          ...noWork,
          memoryReservation: '0B',
          queuedTime: distribution,
          elapsedTime: distribution,
          operatorSummaries: operators.map((operator, operatorId) => operatorBody(operatorId, operator)),
          drivers: [],
        },
      ],
    },
    failures: [],
    outputs: {},
  }
}

function operatorBody(operatorId: number, changes: Partial<OperatorSummary>): OperatorSummary {
  const none = '0.00ns'
  return {
    operatorId,
    operatorType: 'TableScanOperator',
    engineOperator: 'TABLE_SCAN',
    addInputCalls: 0,
    getOutputCalls: 0,
    finishCalls: 0,
    addInputWall: none,
    addInputCpu: none,
    addInputUser: none,
    getOutputWall: none,
    getOutputCpu: none,
    getOutputUser: none,
    blockedWall: none,
    finishWall: none,
    finishCpu: none,
    finishUser: none,
    inputDataSize: '0B',
    outputDataSize: '0B',
    memoryReservation: '0B',
    inputPositions: 0,
    outputPositions: 0,
    ...changes,
  }
}

/** The statistics in an answer to a statement. */
export function answerStats(state: StatementStats['state'], processedRows: number): StatementStats {
  return {
    state,
    queued: false,
    scheduled: true,
    nodes: 1,
    totalSplits: 1,
    queuedSplits: 0,
    runningSplits: 0,
    completedSplits: 1,
    cpuTimeMillis: 1,
    wallTimeMillis: 1,
    queuedTimeMillis: 0,
    elapsedTimeMillis: 5,
    processedRows,
    processedBytes: 100,
    spilledBytes: 0,
    peakMemoryBytes: 0,
  }
}
