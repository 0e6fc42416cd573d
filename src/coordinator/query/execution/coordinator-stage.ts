import { hash } from 'node:crypto'
import type { TaskStats } from '../../../execution/api/task.ts'
import type { EngineResult } from '../../../execution/engine/engine.ts'
import type { UnpublishedPage } from './publish-pages.ts'
import { oneDriverStats } from '../statistics/one-driver-stats.ts'

/** A result page made in the coordinator: its bytes are the JSON array of its rows. */
export interface MadePage {
  readonly bytes: Buffer
  readonly rows: number
  readonly sha256: string
}

/** The page in the form in which it is published. @param taskToken its position in the output of its task */
export function toPublish({ bytes, rows, sha256 }: MadePage, taskToken: number): UnpublishedPage {
  return { rows, bytes: bytes.length, sha256, taskToken, data: bytes }
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
  return { bytes, rows: count, sha256: hash('sha256', bytes) }
}

/** A run in the coordinator itself, as far as its figures are known without a profiler. */
export interface CoordinatorWork {
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly endedAt: number
  readonly rows: number
  readonly bytes: number
  readonly splits: number
  /** The name of the operator that makes the rows: `ValuesOperator`, `ExplainAnalyzeOperator` … */
  readonly source: string
  readonly engine?: EngineResult
}

/** Figures of a task that ran on the coordinator only: a source and the output. */
export function coordinatorTaskStats(work: CoordinatorWork): TaskStats {
  const { engine, createdAt, endedAt, rows, bytes } = work
  const wallNanos = Math.round(engine?.wallNanos ?? 0)
  return oneDriverStats({
    createdAt,
    startedAt: engine?.startedAt ?? createdAt,
    endedAt,
    rows,
    bytes,
    rawRows: 0,
    rawBytes: 0,
    splits: Math.max(1, work.splits),
    wallNanos,
    cpuNanos: Math.round(engine?.cpuNanos ?? 0),
    scheduledNanos: wallNanos,
    cpuExact: engine?.cpuExact ?? false,
    blockedNanos: 0,
    peakMemoryBytes: Math.round(engine?.peakMemoryBytes ?? 0),
    profiled: false,
    operators: [
      { operatorType: work.source, engineOperator: 'COLUMN_DATA_SCAN', timeNanos: wallNanos },
      { operatorType: 'TaskOutputOperator', engineOperator: 'RESULT' },
    ],
  })
}
