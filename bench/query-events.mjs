// The events of one query as a coordinator writes them: a stage on a worker, profiled, and the relay above it.
const time = () => new Date().toISOString()

function figures(over = {}) {
  return {
    totalDrivers: 1,
    queuedDrivers: 0,
    runningDrivers: 0,
    completedDrivers: 1,
    scheduledNanos: 1_500_000,
    cpuNanos: 1_200_000,
    blockedNanos: 0,
    rawInputBytes: 2048,
    rawInputPositions: 25,
    processedInputBytes: 2048,
    processedInputPositions: 25,
    outputBytes: 400,
    outputPositions: 25,
    memoryBytes: 0,
    ...over,
  }
}

function operator(operatorId, operatorType, engineOperator) {
  return {
    operatorId,
    operatorType,
    engineOperator,
    inputPositions: 25,
    outputPositions: 25,
    inputBytes: 2048,
    outputBytes: 400,
    timeNanos: 700_000,
    blockedNanos: 0,
    addInputCalls: 0,
    getOutputCalls: 0,
    finishCalls: 0,
  }
}

function stats() {
  const now = time()
  return {
    createTime: now,
    startTime: now,
    endTime: now,
    elapsedNanos: 2_000_000,
    queuedNanos: 0,
    ...figures(),
    totalSplits: 1,
    queuedSplits: 0,
    runningSplits: 0,
    completedSplits: 1,
    peakMemoryBytes: 65_536,
    spilledBytes: 0,
    cpuExact: true,
    wallNanos: 2_000_000,
    profiled: true,
    pipelines: [
      {
        pipelineId: 0,
        inputPipeline: true,
        outputPipeline: true,
        ...figures(),
        operators: [
          operator(0, 'ScanFilterAndProjectOperator', 'TABLE_SCAN'),
          operator(1, 'FilterAndProjectOperator', 'PROJECTION'),
          operator(2, 'TaskOutputOperator', 'RESULT'),
        ],
        drivers: [],
      },
    ],
  }
}

export function queryEvents(number) {
  const queryId = `20260301_100000_${String(number % 100_000).padStart(5, '0')}_${String(1 + Math.floor(number / 100_000)).padStart(5, '0')}`
  const nodeUrl = 'http://127.0.0.1:8081'
  const split = { scan: 0, catalog: 'tpch', data: { file: 'nation.parquet', groups: [0] }, rows: 25, bytes: 2048 }
  const totals = {
    ...Object.fromEntries(
      ['elapsed', 'queued', 'analysis', 'planning', 'scheduled', 'cpu', 'blocked', 'wall'].map((one) => [
        `${one}Nanos`,
        1_000_000,
      ]),
    ),
    peakMemoryBytes: 65_536,
    spilledBytes: 0,
    rawInputPositions: 25,
    rawInputBytes: 2048,
    processedInputPositions: 25,
    processedInputBytes: 2048,
    outputPositions: 25,
    outputBytes: 400,
    totalTasks: 2,
    totalDrivers: 2,
    completedDrivers: 2,
    totalSplits: 2,
    completedSplits: 2,
  }
  const data = {
    QueryCreated: {
      sql: `SELECT name, regionkey FROM nation WHERE regionkey < 3 AND nationkey <> ${number} ORDER BY name`,
      redacted: false,
      headerFamily: 'Trino',
      baseUri: 'http://127.0.0.1:8080',
      session: {
        user: `user${number % 20}`,
        groups: [],
        roles: {},
        source: 'bench',
        catalog: 'tpch',
        schema: 'tiny',
        timeZone: 'UTC',
        properties: {},
        preparedStatements: {},
        capabilities: ['PARAMETRIC_DATETIME'],
        clientTags: [],
        resourceEstimates: {},
        remoteUserAddress: '127.0.0.1',
      },
      resourceGroup: 'global',
      sampled: false,
    },
    QueryPlanned: {
      queryType: 'SELECT',
      route: 'local',
      columns: ['name', 'regionkey'].map((name) => ({ name, type: 'varchar(25)', typeSignature: {}, lineage: [] })),
      tables: [{ catalog: 'tpch', schema: 'tiny', table: 'nation', columns: ['name', 'regionkey'], mode: 'READ' }],
      stages: [
        { id: 0, distribution: 'coordinator', inputs: [1], splits: [] },
        { id: 1, distribution: 'single', inputs: [], splits: [split] },
      ],
      ordered: true,
      parseNanos: 100_000,
      analysisNanos: 400_000,
      planningNanos: 200_000,
      warnings: [],
    },
    TaskCreated: { taskId: `${queryId}.1.0`, stage: 1, nodeId: 'worker-1', nodeUrl, splits: 1, attempt: 0 },
    TaskFinished: { taskId: `${queryId}.1.0`, stage: 1, nodeId: 'worker-1', nodeUrl, stats: stats() },
    RelayFinished: { taskId: `${queryId}.0.0`, stage: 0, nodeId: 'coordinator', nodeUrl, stats: stats() },
    ResultPagesPublished: {
      taskId: `${queryId}.0.0`,
      batch: 0,
      firstToken: 0,
      pages: [{ rows: 25, bytes: 400, sha256: 'ab'.repeat(32), kept: 'log', taskToken: 0 }],
      lastOfBatch: true,
      lastOfResult: true,
    },
    QueryFinished: {
      rows: 25,
      bytes: 400,
      ordered: true,
      responseHeaders: [],
      warnings: [],
      partial: false,
      stages: [
        { id: 0, state: 'FINISHED' },
        { id: 1, state: 'FINISHED' },
      ],
      totals,
    },
  }
  const events = Object.entries(data).map(([type, payload]) => ({
    type: type === 'RelayFinished' ? 'TaskFinished' : type,
    v: 1,
    time: time(),
    data: payload,
  }))
  return { queryId, events }
}
