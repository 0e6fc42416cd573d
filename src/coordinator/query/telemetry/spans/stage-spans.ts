import { splitsOfStatement } from '../../../../execution/api/fragment.ts'
import { attributes as names } from '../../../../telemetry/attribute-names.ts'
import { entitySpanId } from '../../../../telemetry/trace-context.ts'
import { stageTimes, type StageTimes } from '../../statistics/totals.ts'
import { taskSpans } from './task-spans.ts'
import type { SpanDraft, TracedQuery } from './traced-query.ts'

/**
 * The spans of every stage, with its tasks below.
 * @param withRequest also makes a stand-in for the span of each request that created a task
 */
export function stageSpans(traced: TracedQuery, withRequest: boolean): readonly SpanDraft[] {
  const tasks = [...traced.query.tasks.values()]
  return stageTimes(traced.query).flatMap((stage) => {
    const ofStage = tasks.filter((task) => task.stage === stage.id)
    const span = stageSpan(traced, stage, ofStage.length)
    return [span, ...ofStage.flatMap((task) => taskSpans(traced, task, span.spanId, withRequest))]
  })
}

function stageSpan({ query, executionSpanId, endMs }: TracedQuery, stage: StageTimes, tasks: number): SpanDraft {
  const startMs = Date.parse(stage.scheduledAt ?? query.plannedAt ?? query.createdAt)
  const plan = query.planned?.stages.find(({ id }) => id === stage.id)
  return {
    name: 'stage',
    kind: 'INTERNAL',
    spanId: entitySpanId('stage', `${query.queryId}.${stage.id}`),
    parentSpanId: executionSpanId,
    startMs,
    endMs: stage.endedAt ? Date.parse(stage.endedAt) : endMs,
    attributes: {
      [names.stageId]: `${query.queryId}.${stage.id}`,
      [names.stagePartitioning]: plan?.distribution ?? 'single',
      [names.stageTasks]: tasks,
      [names.splits]: splitsOfStatement(plan?.fragment, plan?.splits ?? []).length,
    },
    status: 'UNSET',
    events: [{ name: 'stage_state', atMs: startMs, attributes: { [names.state]: stage.state } }],
  }
}
