import type { OperatorStats, PipelineStats, TaskStats, TaskStatus, TaskUpdate } from '../../execution/api/task.ts'
import type { StagePlan } from '../../planner/stage-plan.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'
import { EngineError, failureOf } from '../../shared/engine-error.ts'
import { taskId as makeTaskId } from '../../shared/ids.ts'
import { estimateText } from './plan-estimates.ts'
import type { QueryCommand } from './decider.ts'
import { chooseWorker, engineError, type WorkerStageDeps, type WorkerStageInput } from './worker-stage.ts'

/**
 * Runs a stage for its figures alone: its pages are acknowledged as they come and nobody gets them.
 * @returns the task's final figures
 * @throws EngineError the task's failure; a task lost with its worker is not run again, since its figures would not be
 * those of one run
 */
export async function runForFigures(
  deps: WorkerStageDeps,
  input: Omit<WorkerStageInput, 'finish' | 'onPageBytes' | 'onRunning'>,
  plan: QueryCommand,
): Promise<TaskStats> {
  const { fragment, id } = input.stage
  if (!fragment) throw new Error('a worker stage has a fragment')
  const node = await chooseWorker(deps, input.signal)
  const splits = await input.splitsOf(input.stage)
  input.signal.throwIfAborted()
  const taskId = makeTaskId(input.queryId, id, 0)
  const create: QueryCommand = {
    type: 'CreateTask',
    data: { taskId, stage: id, nodeId: node.nodeId, nodeUrl: node.url, splits: splits.length, attempt: 0 },
  }
  const update: TaskUpdate = {
    session: { queryId: input.queryId, user: input.user, startTimeMillis: input.startTimeMillis },
    fragment,
    splits: [...splits],
    noMoreSplits: true,
    outputBuffers: { buffers: ['0'] },
    attempt: 0,
    profile: true,
    remainingMillis: input.remainingMillis,
    ...(input.traceparent === undefined ? {} : { traceparent: input.traceparent }),
  }
  const appended = input.record([plan, create])
  appended.catch(() => {})
  const forget = (): void => {
    deps.hub.forget(node.url, taskId)
    void deps.client.deleteTask(node.url, taskId, false).catch(() => {})
  }
  try {
    const stats = await new Promise<TaskStats>((resolve, reject) => {
      const onStatus = (status: TaskStatus): void => {
        input.onStats(taskId, status.stats)
        const last = status.pages.at(-1)
        if (last) void deps.client.acknowledge(node.url, taskId, last.token + 1).catch(() => {})
        if (status.state === 'FINISHED') resolve(status.stats)
        else if (status.state === 'FAILED' || status.state === 'ABORTED' || status.state === 'CANCELED') {
          const { location, ...rest } = status.failure ?? failureOf('REMOTE_TASK_FAILED', `Task ${taskId} ended early`)
          reject(engineError(location ? { ...rest, location } : rest))
        }
      }
      if (input.signal.aborted) return reject(input.signal.reason)
      input.signal.addEventListener('abort', () => reject(input.signal.reason), { once: true })
      deps.hub.listen(node.url, taskId, {
        onStatus,
        onLost: (reason) => reject(new EngineError('REMOTE_HOST_GONE', reason)),
      })
      deps.client.createTask(node.url, taskId, update).then(onStatus, reject)
    })
    await appended
    await input.record([
      { type: 'FinishTask', data: { taskId, stage: id, nodeId: node.nodeId, nodeUrl: node.url, stats } },
    ])
    return stats
  } finally {
    forget()
  }
}

export interface AnalyzedRun {
  readonly stage: StagePlan
  readonly stats: TaskStats
}

/** The text of EXPLAIN ANALYZE: Trino's frame, with the operators that ran and what each did. */
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
  for (const pipeline of stats.pipelines.toReversed()) lines.push(...pipelineText(pipeline, verbose))
  return `${lines.join('\n')}\n`
}

function pipelineText(pipeline: PipelineStats, verbose: boolean): string[] {
  const head = `    Pipeline ${pipeline.pipelineId}: Input: ${rows(pipeline.processedInputPositions)}, Output: ${rows(pipeline.outputPositions)}, Drivers: ${pipeline.totalDrivers}`
  // Sources come first in the figures; a plan is read from its output down.
  return [head, ...pipeline.operators.toReversed().flatMap((operator, depth) => operatorText(operator, depth, verbose))]
}

function operatorText(operator: OperatorStats, depth: number, verbose: boolean): string[] {
  const indent = `    ${'   '.repeat(depth)}`
  const lines = [
    `${indent}└─ ${operator.operatorType.replace(/Operator$/, '')}[${operator.engineOperator}]`,
    `${indent}       Time: ${formatDuration(operator.timeNanos)}, Input: ${rows(operator.inputPositions)}, Output: ${rows(operator.outputPositions)}`,
    // What the engine's optimiser expected.
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
