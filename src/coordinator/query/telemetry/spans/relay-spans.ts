import { attributes as names } from '../../../../telemetry/attribute-names.ts'
import { entitySpanId } from '../../../../telemetry/trace-context.ts'
import type { TracedTask } from './traced-task.ts'
import type { SpanDraft, TracedQuery } from './traced-query.ts'

/** The spans of the root's relay: fetching from the tasks of the stage that it reads, and publishing the result. */
export function relaySpans(
  traced: TracedQuery,
  { task, stats, spanId, startMs, endMs }: TracedTask,
): readonly SpanDraft[] {
  const exchange = stats.pipelines
    .flatMap(({ operators }) => operators)
    .find(({ engineOperator }) => engineOperator === 'EXCHANGE')
  if (!exchange) return []
  const { query, traceId } = traced
  const inputs = query.planned?.stages.find(({ id }) => id === task.stage)?.inputs ?? []
  const producers = [...query.tasks.values()].filter(
    ({ stage, state }) => inputs.includes(stage) && state === 'FINISHED',
  )
  return [
    {
      name: 'exchange',
      kind: 'CLIENT',
      spanId: entitySpanId('exchange', task.taskId),
      parentSpanId: spanId,
      startMs,
      endMs,
      attributes: {
        [names.taskId]: task.taskId,
        [names.exchangePages]: query.pages.length,
        [names.exchangeBytes]: stats.outputBytes,
        [names.exchangeBlockedNanos]: stats.blockedNanos,
        [names.exchangeRetries]: producers.filter((one) => one.retryOf !== undefined).length,
      },
      links: producers.map((one) => ({ traceId, spanId: entitySpanId('task', one.taskId) })),
      status: 'UNSET',
    },
    {
      name: 'publish',
      kind: 'INTERNAL',
      spanId: entitySpanId('publish', query.queryId),
      parentSpanId: traced.executionSpanId,
      startMs,
      endMs,
      attributes: { [names.pages]: query.pages.length, [names.bytes]: stats.outputBytes },
      status: 'UNSET',
    },
  ]
}
