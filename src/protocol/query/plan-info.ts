import { estimatePlan } from '../../coordinator/query/statistics/plan-estimates.ts'
import type { KnownQuery } from '../../coordinator/query/stream/state.ts'
import type { PlanOutline } from '../../coordinator/query/stream/events.ts'
import { outputsOf } from '../../readmodels/queries/columns-read.ts'
import type { PlanNodeInfo, QueryInfo } from '../info/schemas/query.ts'

type Planned = NonNullable<KnownQuery['planned']>

/** The recorded plan with the estimates of its nodes. @returns undefined for a statement without a plan */
export function planInfo({ outline, stages }: Planned): PlanNodeInfo | undefined {
  if (!outline) return undefined
  const estimates = estimatePlan(outline, stages)
  const shown = (node: PlanOutline): PlanNodeInfo => ({
    name: node.name,
    details: node.details,
    layout: node.layout,
    estimate: { ...estimates.get(node) },
    children: node.children.map(shown),
  })
  return shown(outline)
}

/** The sources of each output column, and the columns that decide about rows. */
export function lineageInfo(planned: Planned): QueryInfo['lineage'] {
  return {
    columns: outputsOf(planned).map(({ name, sources }) => ({ name, sources: sources.map((one) => ({ ...one })) })),
    rows: planned.lineage?.rows ?? [],
  }
}
