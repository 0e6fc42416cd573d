import { parseQueryId, type QueryId, type TaskId, parseNodeId } from '../../src/shared/ids.ts'
import type { QueryEvent, QueryEventOf } from '../../src/coordinator/query/stream/events.ts'
import { queryEventVersions } from '../../src/coordinator/query/stream/events.ts'
import type { Event, EventLog } from '../../src/events/event-log.ts'
import type { TaskStats } from '../../src/execution/api/task.ts'
import { failureOf } from '../../src/shared/engine-error.ts'

/** The figures of a task, all different, so that tests notice a field with the value of another. */
export function taskStats(over: Partial<TaskStats> = {}): TaskStats {
  return {
    createTime: '2026-03-01T10:00:00.010Z',
    startTime: '2026-03-01T10:00:00.020Z',
    endTime: '2026-03-01T10:00:00.220Z',
    elapsedNanos: 210_000_000,
    queuedNanos: 10_000_000,
    totalDrivers: 5,
    queuedDrivers: 0,
    runningDrivers: 1,
    completedDrivers: 4,
    totalSplits: 7,
    queuedSplits: 1,
    runningSplits: 2,
    completedSplits: 3,
    memoryBytes: 2048,
    peakMemoryBytes: 4096,
    spilledBytes: 17,
    scheduledNanos: 150_000_000,
    cpuNanos: 120_000_000,
    cpuExact: true,
    wallNanos: 200_000_000,
    blockedNanos: 5_000_000,
    rawInputBytes: 10_240,
    rawInputPositions: 25,
    processedInputBytes: 5120,
    processedInputPositions: 24,
    outputBytes: 1000,
    outputPositions: 23,
    profiled: true,
    pipelines: [
      {
        pipelineId: 0,
        inputPipeline: true,
        outputPipeline: true,
        memoryBytes: 0,
        rawInputBytes: 10_240,
        rawInputPositions: 25,
        processedInputBytes: 5120,
        processedInputPositions: 24,
        outputBytes: 1000,
        outputPositions: 23,
        totalDrivers: 1,
        queuedDrivers: 0,
        runningDrivers: 0,
        completedDrivers: 1,
        scheduledNanos: 150_000_000,
        cpuNanos: 120_000_000,
        blockedNanos: 5_000_000,
        operators: [
          operator(0, 'ScanFilterAndProjectOperator', 'TABLE_SCAN', 25, 24),
          operator(1, 'TaskOutputOperator', 'RESULT', 24, 23),
        ],
        drivers: [
          {
            batch: 0,
            startTime: '2026-03-01T10:00:00.020Z',
            endTime: '2026-03-01T10:00:00.220Z',
            queuedNanos: 10_000_000,
            elapsedNanos: 200_000_000,
            scheduledNanos: 150_000_000,
            cpuNanos: 120_000_000,
            blockedNanos: 5_000_000,
          },
        ],
      },
    ],
    ...over,
  }
}

function operator(operatorId: number, operatorType: string, engineOperator: string, rowsIn: number, rowsOut: number) {
  return {
    operatorId,
    operatorType,
    engineOperator,
    inputPositions: rowsIn,
    outputPositions: rowsOut,
    estimatedPositions: 30,
    inputBytes: 5120,
    outputBytes: 1000,
    timeNanos: 75_000_000,
    blockedNanos: 0,
    addInputCalls: 0,
    getOutputCalls: 0,
    finishCalls: 0,
  }
}

export type QueryLifeOptions = {
  readonly sql?: string
  readonly user?: string
  readonly source?: string
  /** Other fields of the session. */
  readonly session?: Partial<QueryEventOf<'QueryCreated'>['data']['session']>
  /** The time of QueryCreated in milliseconds since the epoch. @default 2026-03-01T10:00:00Z */
  readonly startMillis?: number
  readonly end?: 'finished' | 'failed' | 'killed' | 'open'
  /** Whether stage 1 runs on a worker and stage 0 relays, or stage 0 runs alone. */
  readonly worker?: boolean
}

export const zeroTotals: QueryEventOf<'QueryFinished'>['data']['totals'] = {
  elapsedNanos: 0,
  queuedNanos: 0,
  analysisNanos: 0,
  planningNanos: 0,
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
  outputPositions: 0,
  outputBytes: 0,
  totalTasks: 0,
  totalDrivers: 0,
  completedDrivers: 0,
  totalSplits: 0,
  completedSplits: 0,
}

export const finishedTotals: typeof zeroTotals = {
  elapsedNanos: 300_000_000,
  queuedNanos: 1_000_000,
  analysisNanos: 2_000_000,
  planningNanos: 3_000_000,
  scheduledNanos: 150_000_000,
  cpuNanos: 120_000_000,
  blockedNanos: 5_000_000,
  wallNanos: 200_000_000,
  peakMemoryBytes: 4096,
  spilledBytes: 17,
  rawInputPositions: 25,
  rawInputBytes: 10_240,
  processedInputPositions: 24,
  processedInputBytes: 5120,
  outputPositions: 23,
  outputBytes: 1000,
  totalTasks: 2,
  totalDrivers: 5,
  completedDrivers: 4,
  totalSplits: 7,
  completedSplits: 3,
}

/** The events of one query as a coordinator writes them, 20 ms apart. */
export function queryLife(queryId: string, options: QueryLifeOptions = {}): QueryEvent[] {
  const { sql = 'SELECT name FROM nation', user = 'alice', end = 'finished', worker = true } = options
  let at = options.startMillis ?? Date.parse('2026-03-01T10:00:00.000Z')
  const time = (): string => new Date((at += 20) - 20).toISOString()
  const nodeUrl = 'http://127.0.0.1:18081'
  const events: QueryEvent[] = [
    {
      type: 'QueryCreated',
      time: time(),
      data: {
        sql,
        redacted: false,
        headerFamily: 'Trino',
        baseUri: 'http://127.0.0.1:8080',
        session: {
          user,
          groups: [],
          roles: {},
          source: options.source ?? 'quipu-test',
          catalog: 'tpch',
          schema: 'tiny',
          timeZone: 'UTC',
          properties: {},
          preparedStatements: {},
          capabilities: ['PARAMETRIC_DATETIME'],
          clientTags: ['nightly'],
          resourceEstimates: {},
          remoteUserAddress: '127.0.0.1',
          userAgent: 'vitest',
          ...options.session,
        },
        resourceGroup: 'global',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        sampled: true,
      },
    },
    {
      type: 'QueryPlanned',
      time: time(),
      data: {
        queryType: 'SELECT',
        route: worker ? 'local' : 'coordinator',
        columns: [
          { name: 'name', type: 'varchar(25)', typeSignature: { rawType: 'varchar', arguments: [] }, lineage: [] },
        ],
        tables: [{ catalog: 'tpch', schema: 'tiny', table: 'nation', columns: ['name'], mode: 'READ' }],
        stages: worker
          ? [
              { id: 0, distribution: 'coordinator', inputs: [1], splits: [] },
              { id: 1, distribution: 'single', inputs: [], splits: [] },
            ]
          : [{ id: 0, distribution: 'coordinator', inputs: [], splits: [] }],
        ordered: false,
        parseNanos: 400_000,
        analysisNanos: 1_600_000,
        planningNanos: 3_000_000,
        warnings: [],
        executionStartedAt: new Date(at).toISOString(),
      },
    },
  ]
  if (worker) {
    events.push({
      type: 'TaskCreated',
      time: time(),
      data: {
        taskId: `${queryId}.1.0` as TaskId,
        stage: 1,
        nodeId: parseNodeId('worker-1'),
        nodeUrl,
        splits: 7,
        attempt: 0,
      },
    })
    events.push({
      type: 'TaskFinished',
      time: time(),
      data: {
        taskId: `${queryId}.1.0` as TaskId,
        stage: 1,
        nodeId: parseNodeId('worker-1'),
        nodeUrl,
        stats: taskStats(),
      },
    })
  }
  if (end === 'open') return events
  if (end === 'failed' || end === 'killed')
    return [
      ...events,
      {
        type: 'QueryFailed',
        time: time(),
        data: {
          ...(end === 'failed'
            ? { failure: failureOf('DIVISION_BY_ZERO', 'Division by zero') }
            : {
                failure: failureOf('ADMINISTRATIVELY_KILLED', 'Query killed. Message: too large'),
                endedBy: { user: 'kim', originalUser: 'root2', remoteAddress: '10.1.2.3', how: 'killed' },
              }),
          stages: [],
          totals: finishedTotals,
        },
      },
    ]
  return [
    ...events,
    {
      type: 'TaskFinished',
      time: time(),
      data: {
        taskId: `${queryId}.0.0` as TaskId,
        stage: 0,
        nodeId: parseNodeId('coordinator'),
        nodeUrl: 'http://127.0.0.1:8080',
        stats: taskStats({ rawInputPositions: 23, rawInputBytes: 1000, profiled: false }),
      },
    },
    {
      type: 'ResultPagesPublished',
      time: time(),
      data: {
        taskId: `${queryId}.0.0` as TaskId,
        batch: 0,
        firstToken: 0,
        pages: [{ rows: 23, bytes: 1000, sha256: 'ab'.repeat(32), kept: 'log', taskToken: 0 }],
        lastOfBatch: true,
        lastOfResult: true,
      },
    },
    {
      type: 'QueryFinished',
      time: time(),
      data: {
        rows: 23,
        bytes: 1000,
        ordered: false,
        responseHeaders: [],
        warnings: [],
        partial: false,
        stages: (worker ? [0, 1] : [0]).map((id) => ({
          id,
          state: 'FINISHED' as const,
          scheduledAt: '2026-03-01T10:00:00.040Z',
          startedAt: '2026-03-01T10:00:00.060Z',
          endedAt: '2026-03-01T10:00:00.280Z',
        })),
        totals: finishedTotals,
      },
    },
  ]
}

export function toLogEvents(events: readonly QueryEvent[], traceparent?: string): Event[] {
  return events.map(({ type, time, data }) => ({
    type,
    v: queryEventVersions[type],
    time,
    data,
    ...(traceparent === undefined ? {} : { traceparent }),
  }))
}

/** Makes a valid query id from a number. */
export function testQueryId(number: number): QueryId {
  return parseQueryId(`20260301_100000_${String(number).padStart(5, '0')}_00001`)
}

/** Appends the events of many queries, `together` queries at a time, interleaved as by a busy coordinator. */
export async function appendLives(
  log: Pick<EventLog, 'append'>,
  lives: readonly { readonly queryId: string; readonly events: readonly QueryEvent[] }[],
  together = 16,
): Promise<void> {
  const waiting = [...lives]
  const open: { queryId: string; events: Event[]; sequence: number }[] = []
  while (waiting.length > 0 || open.length > 0) {
    while (open.length < together && waiting.length > 0) {
      const { queryId, events } = waiting.shift()!
      open.push({ queryId, events: toLogEvents(events), sequence: 0 })
    }
    await Promise.all(
      open.map(async (one) => {
        const [event] = one.events.splice(0, 1)
        if (event) await log.append(one.queryId, one.sequence++, [event])
      }),
    )
    for (const done of open.filter((one) => one.events.length === 0)) open.splice(open.indexOf(done), 1)
  }
}
