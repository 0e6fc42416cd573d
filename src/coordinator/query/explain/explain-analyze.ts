import type { OperatorStats, PipelineStats, TaskStats } from '../../../execution/api/task.ts'
import type { Stage } from '../../../planner/query-plan.ts'
import { formatDuration, formatSize } from '../../../shared/durations.ts'
import { estimateText } from '../statistics/plan-estimates.ts'

export interface AnalyzedRun {
  readonly stage: Stage
  readonly stats: TaskStats
}

/** The text of EXPLAIN ANALYZE: Trino's frame, with the operators that ran and their figures. */
export function explainAnalyzeText(
  run: AnalyzedRun,
  phases: { readonly analysisNanos: number; readonly planningNanos: number },
  verbose: boolean,
): string {
  const { stage, stats } = run
  const lines = [
    `Queued: ${formatDuration(stats.queuedNanos)}, Analysis: ${formatDuration(phases.analysisNanos)}, Planning: ${formatDuration(phases.planningNanos)}, Execution: ${formatDuration(stats.elapsedNanos)}`,
    `Fragment ${stage.id} [${stage.distribution === 'coordinator' ? 'COORDINATOR_ONLY' : 'SINGLE'}]`,
    `    CPU: ${formatDuration(stats.cpuNanos)}${stats.cpuExact ? '' : ' (shared)'}, Scheduled: ${formatDuration(stats.scheduledNanos)}, Blocked: ${formatDuration(stats.blockedNanos)}, Input: ${rows(stats.processedInputPositions)} (${formatSize(stats.processedInputBytes)}), Physical input: ${rows(stats.rawInputPositions)} (${formatSize(stats.rawInputBytes)}), Output: ${rows(stats.outputPositions)} (${formatSize(stats.outputBytes)})`,
    `    Peak memory: ${formatSize(stats.peakMemoryBytes)}, Spilled: ${formatSize(stats.spilledBytes)}, Batches: ${stats.completedSplits}`,
    `    Output layout: [${(stage.fragment?.output ?? []).map((column) => `${column.name}:${column.type}`).join(', ')}]`,
    '    Output partitioning: SINGLE []',
  ]
  // Operators of a query in a rule would show figures of tables that the user may not read.
  if (!stats.profiled) lines.push('    Operators are not shown: the access rules of a table here read other tables')
  for (const pipeline of stats.pipelines.toReversed()) lines.push(...pipelineText(pipeline, verbose))
  return `${lines.join('\n')}\n`
}

function pipelineText(pipeline: PipelineStats, verbose: boolean): string[] {
  const head = `    Pipeline ${pipeline.pipelineId}: Input: ${rows(pipeline.processedInputPositions)}, Output: ${rows(pipeline.outputPositions)}, Drivers: ${pipeline.totalDrivers}`
  // The figures list sources first; a plan is read from its output down.
  return [head, ...pipeline.operators.toReversed().flatMap((operator, depth) => operatorText(operator, depth, verbose))]
}

function operatorText(operator: OperatorStats, depth: number, verbose: boolean): string[] {
  const indent = `    ${'   '.repeat(depth)}`
  const lines = [
    `${indent}└─ ${operator.operatorType.replace(/Operator$/, '')}[${operator.engineOperator}]`,
    `${indent}       Time: ${formatDuration(operator.timeNanos)}, Input: ${rows(operator.inputPositions)}, Output: ${rows(operator.outputPositions)}`,
    // The estimate of the engine's optimiser.
    `${indent}       ${estimateText(operator.estimatedPositions === undefined ? {} : { rows: operator.estimatedPositions })}`,
  ]
  if (verbose)
    lines.push(
      `${indent}       Operator: ${operator.operatorId}, Input size: ${formatSize(operator.inputBytes)}, Output size: ${formatSize(operator.outputBytes)}, Blocked: ${formatDuration(operator.blockedNanos)}`,
    )
  return lines
}

function rows(count: number): string {
  return count === 1 ? '1 row' : `${count} rows`
}
