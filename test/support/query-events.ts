import { parseQueryId, taskId, parseNodeId } from '../../src/shared/ids.ts'
import type { QueryEvent, QueryEventOf, QueryEventType } from '../../src/coordinator/query/stream/events.ts'
import { coordinatorTaskStats } from '../../src/coordinator/query/execution/coordinator-stage.ts'
import { failureOf } from '../../src/shared/engine-error.ts'

export const QUERY_ID = parseQueryId('20260102_030405_00006_00001')
export const WORKER_TASK = taskId(QUERY_ID, 1, 0)
export const ROOT_TASK = taskId(QUERY_ID, 0, 0)
const START = Date.parse('2026-01-02T03:04:05.000Z')

export function at(seconds: number): string {
  return new Date(START + seconds * 1000).toISOString()
}

export const taskStats = coordinatorTaskStats({
  createdAt: START,
  endedAt: START + 1000,
  rows: 3,
  bytes: 30,
  splits: 1,
  source: 'ValuesOperator',
})

const totals = {
  elapsedNanos: 1e9,
  queuedNanos: 0,
  analysisNanos: 1e6,
  planningNanos: 1e6,
  scheduledNanos: 0,
  cpuNanos: 0,
  blockedNanos: 0,
  wallNanos: 0,
  peakMemoryBytes: 0,
  spilledBytes: 0,
  rawInputPositions: 0,
  rawInputBytes: 0,
  processedInputPositions: 0,
  processedInputBytes: 0,
  outputPositions: 3,
  outputBytes: 30,
  totalTasks: 1,
  totalDrivers: 1,
  completedDrivers: 1,
  totalSplits: 1,
  completedSplits: 1,
}

/** One plausible event of every type, as in a query with one worker stage. */
export const sampleData: { [T in QueryEventType]: QueryEventOf<T>['data'] } = {
  QueryCreated: {
    sql: 'SELECT 1',
    redacted: false,
    headerFamily: 'Trino',
    baseUri: 'http://127.0.0.1:8080',
    session: {
      user: 'alice',
      groups: [],
      roles: {},
      timeZone: 'UTC',
      properties: {},
      preparedStatements: {},
      capabilities: [],
      clientTags: [],
      resourceEstimates: {},
      remoteUserAddress: '127.0.0.1',
    },
    resourceGroup: 'global',
    sampled: false,
  },
  QueryQueued: { resourceGroup: 'global', reason: 'full', position: 1 },
  QueryHeld: { act: 'a1', reason: 'later', by: { user: 'root', remoteAddress: '10.0.0.1' } },
  QueryReleased: { act: 'a2', reason: 'now', by: { user: 'root' } },
  QueryAdmitted: { resourceGroup: 'global', queuedNanos: 5 },
  QueryPlanned: {
    queryType: 'SELECT',
    route: 'local',
    columns: [{ name: 'a', type: 'bigint', typeSignature: { rawType: 'bigint', arguments: [] }, lineage: [] }],
    tables: [],
    stages: [
      { id: 0, distribution: 'coordinator', inputs: [1], splits: [] },
      { id: 1, distribution: 'single', inputs: [], splits: [] },
    ],
    ordered: false,
    parseNanos: 0,
    analysisNanos: 1,
    planningNanos: 1,
    warnings: [],
  },
  TaskCreated: {
    taskId: WORKER_TASK,
    stage: 1,
    nodeId: parseNodeId('w1'),
    nodeUrl: 'http://w1',
    splits: 1,
    attempt: 0,
  },
  TaskFailed: { taskId: WORKER_TASK, failure: failureOf('REMOTE_TASK_FAILED', 'lost') },
  TaskRetried: { taskId: WORKER_TASK, newTaskId: taskId(QUERY_ID, 1, 1), reason: 'worker_lost' },
  TaskCanceled: { taskId: WORKER_TASK, reason: 'canceled' },
  TaskFinished: { taskId: WORKER_TASK, stage: 1, nodeId: parseNodeId('w1'), nodeUrl: 'http://w1', stats: taskStats },
  QueryProgressed: { tasks: [{ taskId: WORKER_TASK, state: 'RUNNING', stats: taskStats }] },
  ResultPagesPublished: {
    taskId: WORKER_TASK,
    batch: 0,
    firstToken: 0,
    pages: [{ rows: 3, bytes: 30, sha256: 'ab', kept: 'log', taskToken: 0 }],
    lastOfBatch: true,
    lastOfResult: true,
  },
  ResultsDelivered: { token: 0, rows: 3, bytes: 30 },
  ResultPagesLost: { tokens: [0], reason: 'gone' },
  WritePrepared: {
    catalog: 'lake',
    schema: 's',
    table: 't',
    operation: 'insert',
    rows: 0,
    bytes: 0,
    prepared: {
      catalog: 'lake',
      queryId: QUERY_ID,
      change: { kind: 'insert', schema: 's', table: 't' },
      baseVersion: 1,
      columns: [],
      files: [],
    },
  },
  WriteCommitted: { outcome: 'committed' },
  QueryRecovered: { count: 1, phase: 'RUNNING', epoch: 2 },
  QueryFinished: {
    rows: 3,
    bytes: 30,
    ordered: false,
    responseHeaders: [],
    warnings: [],
    partial: false,
    stages: [],
    totals,
  },
  QueryFailed: { failure: failureOf('DIVISION_BY_ZERO', 'Division by zero'), stages: [], totals },
}

export const queryEventTypes = Object.keys(sampleData) as QueryEventType[]

export function event<T extends QueryEventType>(
  type: T,
  seconds = 0,
  data?: Partial<QueryEventOf<T>['data']>,
): QueryEvent {
  return { type, time: at(seconds), data: { ...sampleData[type], ...data } } as QueryEvent
}
