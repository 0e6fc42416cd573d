import { expect, it } from 'vitest'
import { explainText } from '../../../src/coordinator/query/explain/explain-text.ts'
import type { PlannedStatement, PlanNode } from '../../../src/planner/planned-statement.ts'

const scan = (table: string): PlanNode => ({
  name: 'TableScan',
  details: { table },
  layout: ['k:bigint'],
  children: [],
})
const outline: PlanNode = {
  name: 'Output',
  details: {},
  layout: ['k:bigint'],
  children: [{ name: 'InnerJoin', details: {}, layout: ['k:bigint'], children: [scan('a'), scan('b')] }],
}
const query: Extract<PlannedStatement, { kind: 'query' }> = {
  kind: 'query',
  queryType: 'SELECT',
  columns: [],
  query: {
    sql: '',
    scans: [],
    wire: [],
    streams: false,
    ordered: false,
    risky: false,
    simple: true,
    outline,
    reads: [{ catalog: 'c', schema: 's', table: 'a', columns: ['k'] }],
    views: [],
    literalRow: undefined,
  },
  lineage: { columns: [], rows: [] },
  warnings: [],
}
const explained = (planType: 'LOGICAL' | 'VALIDATE' | 'IO', format: 'TEXT' | 'JSON' | 'GRAPHVIZ' = 'TEXT') =>
  explainText(
    {
      kind: 'explain',
      queryType: 'EXPLAIN',
      analyze: false,
      verbose: false,
      planType,
      format,
      statement: query,
      columns: [],
      warnings: [],
    },
    [],
  )

const UNKNOWN = 'Estimates: {rows: ? (?), cpu: ?, memory: ?, network: ?}'

it('`explainText` draws a logical plan as a tree', () => {
  expect(explained('LOGICAL')).toBe(
    [
      'Output',
      '│   Layout: [k:bigint]',
      `│   ${UNKNOWN}`,
      '└─ InnerJoin',
      '   │   Layout: [k:bigint]',
      `   │   ${UNKNOWN}`,
      '   ├─ TableScan[table = a]',
      '   │      Layout: [k:bigint]',
      `   │      ${UNKNOWN}`,
      '   └─ TableScan[table = b]',
      '          Layout: [k:bigint]',
      `          ${UNKNOWN}`,
    ].join('\n'),
  )
})

it('`explainText` returns the plan as JSON and Graphviz, the validity, and the tables read', () => {
  expect(JSON.parse(String(explained('LOGICAL', 'JSON')))).toMatchObject({
    name: 'Output',
    children: [{ name: 'InnerJoin', children: [{ name: 'TableScan' }, { name: 'TableScan' }] }],
  })
  const drawn = String(explained('LOGICAL', 'GRAPHVIZ'))
  expect(drawn.match(/plannode_\d+\[/g)).toHaveLength(4)
  expect(drawn.match(/ -> /g)).toHaveLength(3)
  expect(explained('VALIDATE')).toBe(true)
  expect(JSON.parse(String(explained('IO')))).toMatchObject({
    inputTableColumnInfos: [{ table: { catalog: 'c', schemaTable: { schema: 's', table: 'a' } } }],
  })
})
