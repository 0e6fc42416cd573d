import { useMemo } from 'react'
import type { PlanNodeInfo } from '../../../../src/protocol/info/schemas/query.ts'
import { LazyGraph } from '../../../parts/graph/lazy-graph.tsx'
import { Problem } from '../../../parts/problem.tsx'
import { planGraph } from '../../query/graphs/plan-graph.ts'

/** The plan of the statement in the editor, as a graph. */
export function StatementPlan({
  plan,
  error,
}: {
  readonly plan: PlanNodeInfo | undefined
  readonly error: Error | null
}) {
  const graph = useMemo(() => planGraph(plan), [plan])
  if (error) return <Problem error={error} />
  return plan ? <LazyGraph label="Plan of the statement" graph={graph} empty="The statement has no plan." /> : null
}
