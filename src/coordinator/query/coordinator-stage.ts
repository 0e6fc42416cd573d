import { createHash } from 'node:crypto'
import type { TaskStats } from '../../execution/api/task.ts'
import type { EngineResult } from '../../execution/engine/engine.ts'

/** A result page made in the coordinator: its bytes are the JSON array of its rows. */
export interface MadePage {
  readonly bytes: Buffer
  readonly rows: number
  readonly sha256: string
}

const NEWLINE = 0x0a
const COMMA = 0x2c

/**
 * Cuts joined rows (`[…],\n[…]`) into pages of about `pageBytes`; a row is never split. JSON text has no raw newline,
 * so `,\n` stands between rows only.
 */
export function cutPages(rows: Buffer, count: number, pageBytes: number): readonly MadePage[] {
  if (rows.length === 0) return []
  if (rows.length <= pageBytes) return [makePage(rows, count)]
  const pages: MadePage[] = []
  let start = 0
  let rowsOfPage = 0
  for (let end = rows.indexOf(NEWLINE); ; end = rows.indexOf(NEWLINE, end + 1)) {
    const stop = end < 0 ? rows.length : end
    rowsOfPage++
    if (end < 0 || stop - start >= pageBytes) {
      const last = rows[stop - 1] === COMMA ? stop - 1 : stop
      if (last > start) pages.push(makePage(rows.subarray(start, last), rowsOfPage))
      start = stop + 1
      rowsOfPage = 0
    }
    if (end < 0) return pages
  }
}

function makePage(rows: Buffer, count: number): MadePage {
  const bytes = Buffer.allocUnsafe(rows.length + 2)
  bytes[0] = 0x5b
  rows.copy(bytes, 1)
  bytes[rows.length + 1] = 0x5d
  return { bytes, rows: count, sha256: createHash('sha256').update(bytes).digest('hex') }
}

/** What ran in the coordinator itself, as far as its figures are known without a profiler. */
export interface CoordinatorWork {
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly endedAt: number
  readonly rows: number
  readonly bytes: number
  readonly splits: number
  /** What the operator that makes the rows is called: `ValuesOperator`, `ExplainAnalyzeOperator` … */
  readonly source: string
  readonly engine?: EngineResult
}

/** Figures of a coordinator-only task: one pipeline of a source and the output, one driver. */
export function coordinatorTaskStats(work: CoordinatorWork): TaskStats {
  const createTime = new Date(work.createdAt).toISOString()
  const startTime = new Date(Math.min(work.engine?.startedAt ?? work.createdAt, work.endedAt)).toISOString()
  const endTime = new Date(work.endedAt).toISOString()
  const elapsedNanos = Math.max(0, work.endedAt - work.createdAt) * 1e6
  const wallNanos = Math.round(work.engine?.wallNanos ?? 0)
  const cpuNanos = Math.round(work.engine?.cpuNanos ?? 0)
  const splits = Math.max(1, work.splits)
  const operator = (operatorId: number, operatorType: string, engineOperator: string, timeNanos: number) => ({
    operatorId,
    operatorType,
    engineOperator,
    inputPositions: work.rows,
    outputPositions: work.rows,
    inputBytes: work.bytes,
    outputBytes: work.bytes,
    timeNanos,
    blockedNanos: 0,
    addInputCalls: 0,
    getOutputCalls: 0,
    finishCalls: 1,
  })
  const figures = {
    memoryBytes: 0,
    rawInputBytes: 0,
    rawInputPositions: 0,
    processedInputBytes: 0,
    processedInputPositions: work.rows,
    outputBytes: work.bytes,
    outputPositions: work.rows,
    totalDrivers: 1,
    queuedDrivers: 0,
    runningDrivers: 0,
    completedDrivers: 1,
    scheduledNanos: wallNanos,
    cpuNanos,
    blockedNanos: 0,
  }
  return {
    ...figures,
    createTime,
    startTime,
    endTime,
    elapsedNanos,
    queuedNanos: 0,
    totalSplits: splits,
    queuedSplits: 0,
    runningSplits: 0,
    completedSplits: splits,
    peakMemoryBytes: Math.round(work.engine?.peakMemoryBytes ?? 0),
    spilledBytes: 0,
    cpuExact: work.engine?.cpuExact ?? false,
    wallNanos,
    profiled: false,
    pipelines: [
      {
        pipelineId: 0,
        inputPipeline: true,
        outputPipeline: true,
        ...figures,
        operators: [
          operator(0, work.source, 'COLUMN_DATA_SCAN', wallNanos),
          operator(1, 'TaskOutputOperator', 'RESULT', 0),
        ],
        drivers: [
          {
            batch: 0,
            startTime,
            endTime,
            queuedNanos: 0,
            elapsedNanos,
            scheduledNanos: wallNanos,
            cpuNanos,
            blockedNanos: 0,
          },
        ],
      },
    ],
  }
}
