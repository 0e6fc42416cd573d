import type { TaskStats } from '../../../execution/api/task.ts'
import type { RemoteFigures } from '../../clusters/relay/remote-figures.ts'
import { oneDriverStats } from '../statistics/one-driver-stats.ts'

/** The figures of a delegated statement that the relay measured. */
export interface RelayedWork {
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly endedAt: number
  /** The answers with rows that were passed on, and their bytes as JSON. */
  readonly pages: number
  readonly bytes: number
  /** The rows that were passed on; undefined if an answer was too large to count them, or a former process passed some on. */
  readonly rows: number | undefined
  /** The newest `stats` of the cluster's answers, unchanged. */
  readonly stats: Readonly<Record<string, unknown>>
}

/**
 * The figures of the task at a cluster. Each comes from the cluster's figures of the query, or else from its answers.
 * @param figures undefined where this gateway may not see them
 */
export function remoteTaskStats(work: RelayedWork, figures: RemoteFigures | undefined): TaskStats {
  const { createdAt, endedAt, bytes, pages } = work
  const ofAnswer = (name: string): number => {
    const value = work.stats[name]
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0
  }
  const rows = relayedRows(work, figures)
  const millis = (of: number | undefined, name: string): number => Math.round((of ?? ofAnswer(name)) * 1e6)
  const cpuNanos = millis(figures?.cpuMillis, 'cpuTimeMillis')
  const stats = oneDriverStats({
    createdAt,
    startedAt: createdAt,
    endedAt,
    rows,
    bytes,
    rawRows: figures?.inputRows ?? ofAnswer('processedRows'),
    rawBytes: figures?.physicalInputBytes ?? ofAnswer('physicalInputBytes'),
    splits: figures?.totalSplits ?? ofAnswer('totalSplits'),
    wallNanos: Math.max(0, endedAt - createdAt) * 1e6,
    scheduledNanos: millis(figures?.scheduledMillis, 'wallTimeMillis'),
    cpuNanos,
    cpuExact: true,
    blockedNanos: 0,
    peakMemoryBytes: figures?.peakMemoryBytes ?? ofAnswer('peakMemoryBytes'),
    profiled: false,
    operators: [
      { operatorType: 'ClusterOperator', engineOperator: 'CLUSTER', outputBytes: bytes, getOutputCalls: pages },
    ],
  })
  return { ...stats, spilledBytes: figures?.spilledBytes ?? ofAnswer('spilledBytes') }
}

/** The number of rows of the result; 0 if neither this server nor its cluster gives it. */
export function relayedRows({ rows }: Pick<RelayedWork, 'rows'>, figures: RemoteFigures | undefined): number {
  return rows ?? figures?.outputRows ?? 0
}

/** The figures of a task that still runs, from an answer of its cluster. */
export function runningTaskStats(work: RelayedWork): TaskStats {
  const { endTime: _, ...stats } = remoteTaskStats(work, undefined)
  return { ...stats, completedSplits: Number(work.stats['completedSplits'] ?? 0) }
}
