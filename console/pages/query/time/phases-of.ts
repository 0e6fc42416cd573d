import type { QueryInfo } from '../../../../src/protocol/info/schemas/query.ts'
import type { TimeBar } from '../../../parts/time-bars.tsx'
import { nanosOf } from '../../../parts/units.ts'

/**
 * The phases of a query, each from the end of the one before: queued, analysis, planning, waiting for the first task,
 * execution. A phase that took no time is left out.
 */
export function phasesOf({ state, queryStats: stats }: QueryInfo): readonly TimeBar[] {
  const created = Date.parse(stats.createTime)
  const end = stats.endTime === undefined ? created + millisOf(stats.elapsedTime) : Date.parse(stats.endTime)
  const queued = created + millisOf(stats.queuedTime)
  const analyzed = queued + millisOf(stats.analysisTime)
  const planned = analyzed + millisOf(stats.planningTime)
  const started = stats.executionStartTime === undefined ? end : Date.parse(stats.executionStartTime)
  const failed = state === 'FAILED' ? { kind: 'failed' as const } : {}
  const bars: readonly TimeBar[] = [
    { name: 'Queued', from: created, to: queued, kind: 'wait' },
    { name: 'Analysis', from: queued, to: analyzed },
    { name: 'Planning', from: analyzed, to: planned },
    { name: 'Starting', from: planned, to: Math.max(planned, started), kind: 'wait' },
    { name: 'Execution', from: Math.max(planned, started), to: Math.max(planned, started, end), ...failed },
  ]
  return bars.filter(({ from, to }) => to > from)
}

function millisOf(duration: string): number {
  return (nanosOf(duration) ?? 0) / 1e6
}
