import { SegmentedControl } from '@mantine/core'
import { useMemo, useState } from 'react'
import type { QueryInfo } from '../../../../src/protocol/info/schemas/query.ts'
import { LazyGraph } from '../../../parts/graph/lazy-graph.tsx'
import { operatorGraph } from './operator-graph.ts'
import { planGraph } from './plan-graph.ts'
import { stageGraph } from './stage-graph.ts'

const KINDS = [
  {
    value: 'stages',
    label: 'Stages',
    empty: 'No stages: the query is not planned here yet, failed before its plan, or runs at a cluster.',
  },
  { value: 'operators', label: 'Operators', empty: 'No operators: no task has reported figures of operators.' },
  { value: 'plan', label: 'Plan', empty: 'No plan: the query is not planned yet, or failed before its plan.' },
] as const
type Kind = (typeof KINDS)[number]['value']

/** The query as a graph: its stages, the operators that ran, or its plan. */
export function Graphs({ query }: { readonly query: QueryInfo }) {
  const [kind, setKind] = useState<Kind>('stages')
  const graph = useMemo(() => graphOf(query, kind), [query, kind])
  return (
    <section aria-label="Graph">
      <SegmentedControl
        my="xs"
        aria-label="What the graph shows"
        value={kind}
        onChange={(chosen) => setKind(KINDS.find(({ value }) => value === chosen)?.value ?? 'stages')}
        data={KINDS.map(({ value, label }) => ({ value, label }))}
      />
      <LazyGraph
        label={`Graph of ${kind}`}
        graph={graph}
        empty={KINDS.find(({ value }) => value === kind)?.empty ?? ''}
      />
    </section>
  )
}

function graphOf(query: QueryInfo, kind: Kind) {
  switch (kind) {
    case 'stages':
      return stageGraph(query.outputStage)
    case 'operators':
      return operatorGraph(query.outputStage)
    case 'plan':
      return planGraph(query.plan)
  }
}
