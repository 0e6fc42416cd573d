import { describe, expect, it } from 'vitest'
import type { TaskStats } from '../../../src/execution/api/task.ts'
import {
  plannedPipelines,
  type PlannedNode,
  type PlannedPipeline,
  type PlannedScan,
} from '../../../src/execution/worker/planned-pipelines.ts'

function node(name: string, children: PlannedNode[] = [], details: Record<string, string> = {}): PlannedNode {
  return { name, details, layout: ['x:bigint'], children }
}
const scanOf = (table: string): PlannedNode => node('TableScan', [], { table })

function statsOf(figures: Partial<TaskStats>): TaskStats {
  const none = { memoryBytes: 0, peakMemoryBytes: 0, spilledBytes: 0, wallNanos: 0, blockedNanos: 0, queuedNanos: 0 }
  const drivers = { totalDrivers: 2, queuedDrivers: 0, runningDrivers: 0, completedDrivers: 2 }
  const splits = { totalSplits: 2, queuedSplits: 0, runningSplits: 0, completedSplits: 2 }
  return {
    createTime: '2026-01-01T00:00:00.000Z',
    startTime: '2026-01-01T00:00:00.000Z',
    elapsedNanos: 9,
    scheduledNanos: 8,
    cpuNanos: 7,
    cpuExact: true,
    ...none,
    ...drivers,
    ...splits,
    rawInputBytes: 1000,
    rawInputPositions: 100,
    processedInputBytes: 1000,
    processedInputPositions: 100,
    outputBytes: 50,
    outputPositions: 5,
    profiled: false,
    pipelines: [],
    ...figures,
  }
}

/** Formats each operator as `type in→out`, with `?` for an unknown number. */
function shown(pipelines: readonly PlannedPipeline[]): string[][] {
  return pipelines.map(({ operators }) =>
    operators.map(({ operatorType, inputPositions, outputPositions, unknown = [] }) => {
      const rowsIn = unknown.includes('inputPositions') ? '?' : inputPositions
      return `${operatorType} ${rowsIn}→${unknown.includes('outputPositions') ? '?' : outputPositions}`
    }),
  )
}

describe('The planned pipelines of a task without a profile', () => {
  const a: PlannedScan = { table: 'c:s:a', rows: 60, bytes: 600 }
  const b: PlannedScan = { table: 'c:s:b', rows: 40, bytes: 400 }
  const join = node('InnerJoin', [scanOf('c:s:a'), node('Filter', [scanOf('c:s:b')])])
  const grouped = node('Aggregate', [join], { keys: '[x]' })
  const outline = node('Output', [node('Sort', [grouped])])

  it('are cut at blocking operators, and show the row counts that splits and output determine', () => {
    expect(shown(plannedPipelines(statsOf({}), { outline, scans: [a, b] }))).toEqual([
      ['TableScanOperator 40→40', 'FilterAndProjectOperator 40→?', 'HashBuilderOperator ?→0'],
      ['TableScanOperator 60→60', 'LookupJoinOperator 60→?', 'HashAggregationOperator ?→0'],
      ['HashAggregationOperator 0→5', 'OrderByOperator 5→0'],
      ['OrderByOperator 0→5', 'TaskOutputOperator 5→5'],
    ])
  })

  it('add up to the figures of the task', () => {
    const stats = statsOf({})
    const pipelines = plannedPipelines(stats, { outline, scans: [a, b] })
    const fields = [
      'rawInputPositions',
      'rawInputBytes',
      'cpuNanos',
      'scheduledNanos',
      'outputBytes',
      'totalDrivers',
    ] as const
    for (const field of fields)
      expect([field, pipelines.reduce((sum, pipeline) => sum + pipeline[field], 0)]).toEqual([field, stats[field]])
    expect(pipelines.map(({ inputPipeline }) => inputPipeline)).toEqual([true, true, false, false])
    expect(pipelines.map(({ outputPipeline }) => outputPipeline)).toEqual([false, false, false, true])
    expect(pipelines.at(-1)!.operators.at(-1)).toMatchObject({ engineOperator: 'Output', outputBytes: 50 })
  })

  it('show no row counts if the task did not run all splits', () => {
    const [build] = shown(plannedPipelines(statsOf({ rawInputPositions: 70 }), { outline, scans: [a, b] }))
    expect(build![0]).toBe('TableScanOperator ?→?')
    const one = plannedPipelines(statsOf({ rawInputPositions: 70, outputPositions: 70 }), {
      outline: node('Output', [scanOf('c:s:a')]),
      scans: [a],
    })
    expect(shown(one)).toEqual([['TableScanOperator 70→70', 'TaskOutputOperator 70→70']])
  })

  it('show no row counts between the scan and a LIMIT, which may leave rows unread', () => {
    const limited = node('Output', [node('Limit', [node('Project', [scanOf('c:s:a')])], { count: '5' })])
    expect(shown(plannedPipelines(statsOf({}), { outline: limited, scans: [{ ...a, rows: 100 }] }))).toEqual([
      ['TableScanOperator 100→?', 'FilterAndProjectOperator ?→?', 'LimitOperator ?→5', 'TaskOutputOperator 5→5'],
    ])
  })

  it('show the scans of a WITH query, which the plan omits', () => {
    const withQuery = node('Output', [node('CteScan', [], { cte: '0' })])
    expect(shown(plannedPipelines(statsOf({}), { outline: withQuery, scans: [{ ...a, rows: 100 }] }))).toEqual([
      ['TableScanOperator 100→?', 'LocalExchangeSinkOperator ?→?'],
      ['LocalExchangeSourceOperator 5→5', 'TaskOutputOperator 5→5'],
    ])
  })

  it('show one scan for all tables if the plan is missing', () => {
    expect(shown(plannedPipelines(statsOf({})))).toEqual([
      ['ScanFilterAndProjectOperator 100→5', 'TaskOutputOperator 5→5'],
    ])
  })
})
