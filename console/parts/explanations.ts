/** The meaning of a number. */
export interface Explanation {
  readonly text: string
  /** The unit of the number, if the number is shown without one. */
  readonly unit?: string
}

const TIME = 'The unit stands beside the number.'
const BYTES = 'The unit stands beside the number; kB, MB and GB are units of 1,024.'

/** The explanations of all numbers of the console. */
export const EXPLANATIONS = {
  // Queries
  queriesFound: {
    text: 'Queries that the filters choose, with their states; not only those on this page',
    unit: 'queries',
  },
  cpuFound: { text: `CPU time of all queries that the filters choose. ${TIME}` },
  readFound: { text: `Bytes that all queries that the filters choose read from tables. ${BYTES}` },
  resultFound: { text: 'Rows and bytes of the results of all queries that the filters choose', unit: 'rows' },
  costFound: { text: 'Cost of all queries that the filters choose, by the prices of the server', unit: 'currency' },
  elapsed: { text: `From the creation of the query to its end, or to now. ${TIME}` },
  queued: { text: `Time in which the query waited for its resource group. ${TIME}` },
  planning: { text: `Time to plan the query. ${TIME}` },
  cpu: { text: `CPU time of all tasks. ${TIME}` },
  scheduled: { text: `Time in which threads worked for the query, summed over the threads. ${TIME}` },
  blocked: { text: `Time in which tasks waited for input or for room for output, summed over the tasks. ${TIME}` },
  bytesRead: { text: `Bytes that the query read from tables. ${BYTES}` },
  rowsRead: { text: 'Rows that the query read from tables', unit: 'rows' },
  resultRows: { text: 'Rows of the result', unit: 'rows' },
  peakMemory: { text: `The most memory that the tasks held at once. ${BYTES}` },
  cost: {
    text: 'By the prices of the server: CPU time, bytes read, and hours of clusters; empty without prices',
    unit: 'currency',
  },
  splits: { text: 'Completed splits, of all splits: parts of tables that are read separately', unit: 'splits' },
  takeOvers: { text: 'How often a coordinator took the query over from another', unit: 'take-overs' },
  phases: { text: `How long each phase of the query took, from its creation. ${TIME}` },
  graph: {
    text: 'Rows flow from the bottom to the top. Numbers beside arrows and in boxes are rows, bytes and times, each with its unit; rows have none. The orange bar of a box is its part of the time of all boxes',
    unit: 'rows',
  },
  asOf: { text: 'Sequence of the event in the stream of the query, from 1', unit: 'events' },
  shownRows: { text: 'Rows of this page, of all rows that are here', unit: 'rows' },
  // Tasks and operators
  taskSplits: { text: 'Completed splits, of all splits of the task', unit: 'splits' },
  taskElapsed: { text: `From the creation of the task to its end, or to now. ${TIME}` },
  taskCpu: { text: `CPU time of the task. ${TIME}` },
  taskBlocked: { text: `Time in which the task waited for input or room for output. ${TIME}` },
  taskMemory: { text: `Memory that the task holds now; 0 once it has ended. ${BYTES}` },
  taskTimes: { text: `When each task ran, and for how long. ${TIME}` },
  rowsIn: { text: 'Rows of the input; ? where the engine did not count them', unit: 'rows' },
  rowsOut: { text: 'Rows of the output; ? where the engine did not count them', unit: 'rows' },
  bytesOut: { text: `Bytes of the output. Only scans and outputs among the operators count them. ${BYTES}` },
  share: { text: 'Part of the time of all operators', unit: '%' },
  operatorTime: {
    text: `Time that the engine's profiler measured, summed over threads; ? where a task was not profiled. ${TIME}`,
  },
  estimatedRows: {
    text: "Rows of the output as the engine's optimizer estimated them before it ran",
    unit: 'rows',
  },
  splitRows: { text: 'Rows of the split as the plan counts them; empty where it does not know them', unit: 'rows' },
  splitBytes: { text: `Bytes of the split as the plan counts them. ${BYTES}` },
  stage: { text: 'Number of the stage in the plan', unit: 'number' },
  scan: { text: 'Number of the scan in its stage, from 0', unit: 'index' },
  // Comparison
  compared: { text: 'The figure of this query. The unit stands beside the number, or in the name of the figure' },
  factor: { text: 'The second figure divided by the first', unit: 'times' },
  // Events
  sequence: { text: 'Position of the event in its stream, from 1', unit: 'events' },
  after: { text: `Time since the event before it in this list. ${TIME}` },
  kinds: { text: 'Number of events of each kind', unit: 'events' },
  // Groups
  weight: { text: 'Share of the group among those beside it, for weighted policies', unit: 'parts' },
  groupRunning: { text: 'Running queries, of those that the group allows at once', unit: 'queries' },
  groupQueued: { text: 'Queued queries, of those that the group allows at once', unit: 'queries' },
  groupMemory: { text: `Memory that queries of the group hold now. ${BYTES}` },
  groupCpu: { text: `CPU time that counts against the limits of the group. ${TIME}` },
  waits: { text: `How long the query has waited. ${TIME}` },
  openQueries: { text: 'Queries that are open, of all resource groups', unit: 'queries' },
  // Cluster
  epoch: { text: 'Number of the coordinator that writes the log: each new writer has a higher one', unit: 'epoch' },
  lag: { text: `Events that the read models do not have yet, and the age of the oldest. ${TIME}`, unit: 'events' },
  deadLetters: { text: 'Events that could not be applied to the read models', unit: 'events' },
  restarts: { text: 'How often the supervisor started processes again', unit: 'restarts' },
  workers: { text: 'Workers by state', unit: 'workers' },
  throughput: {
    text: 'Queries that ended a second, of those that were created since this page was opened',
    unit: 'queries a second',
  },
  cpuRate: {
    text: 'CPU time a second of queries that were created since this page was opened: 2 means that two cores work',
    unit: 'cores',
  },
  openSince: { text: 'Open queries that were created since this page was opened', unit: 'queries' },
  age: { text: `Time since the worker joined. ${TIME}` },
  workerTasks: { text: 'Tasks of open queries on the worker that have not ended', unit: 'tasks' },
  cores: { text: "Cores of the worker's machine or container", unit: 'cores' },
  workerMemory: { text: `Memory of the worker's machine or container. ${BYTES}` },
  requests: {
    text: 'Requests to this worker, weighted so that those of the last minute count most',
    unit: 'requests',
  },
  failures: {
    text: 'Failed requests to this worker, weighted so that those of the last minute count most',
    unit: 'requests',
  },
  clusterRunning: { text: 'Statements that run there, of those that may run at once', unit: 'statements' },
  clusterWaiting: { text: 'Statements that wait for this cluster', unit: 'statements' },
  // SQL
  processedRows: { text: 'Rows that the statement read so far', unit: 'rows' },
  processedBytes: { text: `Bytes that the statement read so far. ${BYTES}` },
  updateCount: { text: 'Rows that the statement changed', unit: 'rows' },
  // Audits
  findings: { text: 'Faults that the audit found, by kind', unit: 'findings' },
  auditEvents: { text: 'Valid events that the audit read', unit: 'events' },
  auditQueries: { text: 'Queries that the audit checked, and those of them without an end', unit: 'queries' },
  auditAnchors: { text: 'Anchors in the log, and those whose signature was verified with a key', unit: 'anchors' },
  auditTables: { text: 'Tables of the read models that were compared with the log; 0: none', unit: 'tables' },
  auditPeriods: { text: 'Archived periods of the log whose files were read', unit: 'periods' },
  auditTime: { text: `How long the audit took. ${TIME}` },
  anchorNumber: { text: 'Number of the anchor in this log, from 1', unit: 'anchors' },
  anchorHeads: { text: 'Streams that changed since the anchor before', unit: 'streams' },
  anchorEvents: { text: 'Valid events below the anchor', unit: 'events' },
  // Replays
  recordedTime: {
    text: `The recorded time of the query without its time in the queue, or the time of its run. ${TIME}`,
  },
  otherTime: { text: `The time on the other server, from the POST to the last page. ${TIME}` },
  // Answers of the record
  queries: { text: 'Number of queries', unit: 'queries' },
  cpuSeconds: { text: `CPU time of these queries. ${TIME}` },
  scannedBytes: { text: `Bytes that these queries read from tables. ${BYTES}` },
  rowsOfTable: { text: 'Rows of the table; NULL where you may not see all of them', unit: 'rows' },
  bytesOfTable: { text: `Size of the table; NULL where you may not see all rows. ${BYTES}` },
  attempts: { text: 'Attempts within the minute', unit: 'attempts' },
  statements: { text: 'Statements to replay', unit: 'statements' },
  erasedRecords: { text: 'Events of the system that the erasure removed', unit: 'events' },
  erasureWaiting: { text: 'Queries that the erasure did not remove because they had not ended', unit: 'queries' },
  erasureSearched: { text: 'Locations that were searched after the erasure', unit: 'locations' },
  resultNumber: { text: 'A value of the result, with the unit that the statement gives it' },
} as const satisfies Readonly<Record<string, Explanation>>

/** Explanations of the columns of answers of the record, by their names in SQL. */
export const RECORD_COLUMNS: Readonly<Record<string, Explanation>> = {
  queries: EXPLANATIONS.queries,
  cpu_seconds: EXPLANATIONS.cpuSeconds,
  scanned_bytes: EXPLANATIONS.scannedBytes,
  cost: EXPLANATIONS.cost,
  row_count: EXPLANATIONS.rowsOfTable,
  bytes: EXPLANATIONS.bytesOfTable,
  attempts: EXPLANATIONS.attempts,
  sequence: EXPLANATIONS.sequence,
  epoch: EXPLANATIONS.epoch,
  statements: EXPLANATIONS.statements,
  records: EXPLANATIONS.erasedRecords,
  waiting: EXPLANATIONS.erasureWaiting,
  searched: EXPLANATIONS.erasureSearched,
}

/** An explanation as one text. */
export function explanationText({ text, unit }: Explanation): string {
  return unit === undefined ? text : `${text}. Unit: ${unit}`
}
