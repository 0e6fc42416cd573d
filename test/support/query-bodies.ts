import type { QueryInfo, QueryListItem } from '../../src/protocol/info/wire-schemas.ts'

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
