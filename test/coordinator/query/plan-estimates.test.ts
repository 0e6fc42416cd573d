import { bytesOfColumn } from '../../../src/execution/api/fragment.ts'
import { expect, it } from 'vitest'
import { estimateJson, estimatePlan, estimateText } from '../../../src/coordinator/query/statistics/plan-estimates.ts'
import type { Stage } from '../../../src/planner/query-plan.ts'
import type { PlanNode } from '../../../src/planner/planned-statement.ts'

const node = (name: string, children: PlanNode[] = [], details: Record<string, string> = {}): PlanNode => ({
  name,
  details,
  layout: ['k:bigint'],
  children,
})
const scan = (table: string, name = 'TableScan'): PlanNode => node(name, [], { table: `c:s:${table}` })

const scanOf = (table: string) => ({ catalog: 'c', schema: 's', table, handle: {}, columns: ['k', 'v'] })
const split = (index: number, rows?: number) => ({
  scan: index,
  catalog: 'c',
  data: {},
  ...(rows === undefined ? {} : { rows, columnBytes: { k: rows, v: rows, unread: 9 } }),
})
/** Stages over the tables `a` (two splits, 30 rows), `b` (4 rows) and `unknown` (no row count). */
const stages: readonly Stage[] = [
  { id: 0, output: 'client', distribution: 'coordinator', inputs: [1], splits: [] },
  {
    id: 1,
    output: 'client',
    distribution: 'single',
    inputs: [],
    splits: [split(0, 10), split(0, 20), split(1, 4), split(2)],
    fragment: {
      sql: '',
      scans: [scanOf('a'), scanOf('b'), scanOf('unknown')],
      output: [],
      streams: false,
      ordered: false,
      estimate: { small: true },
      risky: false,
    },
  },
]
const rowsOf = (plan: PlanNode): number | undefined => estimatePlan(plan, stages).get(plan)?.rows

it.each<[string, PlanNode, number | undefined]>([
  ['a table', scan('a'), 30],
  ['a table whose source does not say', scan('unknown'), undefined],
  ['a table that no stage reads', scan('elsewhere'), undefined],
  ['a projected table', scan('b', 'ScanProject'), 4],
  ['a filtered table', scan('a', 'ScanFilter'), undefined],
  ['a filter', node('Filter', [scan('a')]), undefined],
  ['a projection', node('Project', [scan('a')]), 30],
  ['values', node('Values', [], { rows: '3' }), 3],
  ['a limit above', node('Limit', [scan('b')], { count: '10' }), 4],
  ['a limit below', node('Limit', [scan('a')], { count: '10' }), 10],
  ['a limit over an unknown table', node('TopN', [scan('unknown')], { count: '10' }), 10],
  ['LIMIT ALL', node('Limit', [scan('a')], { count: 'ALL' }), 30],
  ['LIMIT ALL over an unknown table', node('Limit', [scan('unknown')], { count: 'ALL' }), undefined],
  ['one group', node('Aggregate', [scan('unknown')], { type: 'FINAL' }), 1],
  ['groups', node('Aggregate', [scan('a')], { type: 'FINAL', keys: '[k]' }), undefined],
  ['a cross join', node('CrossJoin', [scan('a'), scan('b')]), 120],
  ['a cross join with an unknown table', node('CrossJoin', [scan('a'), scan('unknown')]), undefined],
  ['a join by key', node('InnerJoin', [scan('a'), scan('b')]), undefined],
  ['a union', node('Union', [scan('a'), scan('b')]), 34],
  ['a union without duplicates', { ...node('Aggregate', [node('Union', [scan('a')])]), layout: [] }, undefined],
  ['a sample', node('Sample', [scan('a')], { ratio: '0.5' }), 15],
  ['sorted rows', node('Output', [node('Sort', [scan('a')])]), 30],
])('`estimatePlan` estimates the rows of %s', (_what, plan, rows) => {
  expect(rowsOf(plan)).toBe(rows)
})

it('`estimatePlan` counts only the bytes of the columns that the scan reads', () => {
  expect(estimatePlan(scan('a'), stages).values().next().value).toEqual({ rows: 30, bytes: 60 })
})

it('`estimateText` shows unknown figures as "?", `estimateJson` as "NaN"', () => {
  expect(estimateText({ rows: 30, bytes: 2048 })).toBe('Estimates: {rows: 30 (2.00kB), cpu: ?, memory: ?, network: ?}')
  expect(estimateJson({ rows: 30 })).toMatchObject({ outputRowCount: 30, outputSizeInBytes: 'NaN' })
})

it('`bytesOfColumn` returns undefined for a column without figures, even for "constructor" and "__proto__"', () => {
  const columns = ['a', 'constructor', '__proto__']
  expect(columns.map((column) => bytesOfColumn({ columnBytes: { a: 1 } }, column))).toEqual([1, undefined, undefined])
})
