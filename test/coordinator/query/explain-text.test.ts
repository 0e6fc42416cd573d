import { expect, it } from 'vitest'
import { explainText } from '../../../src/coordinator/query/explain-text.ts'
import type { AnalyzedStatement, PlanNode } from '../../../src/sql/front-end.ts'

const scan = (table: string): PlanNode => ({
  name: 'TableScan',
  details: { table: `tpch:tiny:${table}` },
  layout: ['key:bigint'],
  children: [],
})
const outline: PlanNode = {
  name: 'Output',
  details: {},
  layout: ['count:bigint'],
  children: [
    {
      name: 'InnerJoin',
      details: {},
      layout: ['key:bigint'],
      children: [{ name: 'Filter', details: {}, layout: ['key:bigint'], children: [scan('orders')] }, scan('customer')],
    },
  ],
}

it('draws the tree of a plan', () => {
  const explained = {
    kind: 'explain',
    planType: 'LOGICAL',
    format: 'TEXT',
    statement: { kind: 'query', query: { outline } },
  } as unknown as Extract<AnalyzedStatement, { kind: 'explain' }>
  expect(explainText(explained, [])).toBe(`Output
│   Layout: [count:bigint]
└─ InnerJoin
   │   Layout: [key:bigint]
   ├─ Filter
   │  │   Layout: [key:bigint]
   │  └─ TableScan[table = tpch:tiny:orders]
   │         Layout: [key:bigint]
   └─ TableScan[table = tpch:tiny:customer]
          Layout: [key:bigint]`)
})
