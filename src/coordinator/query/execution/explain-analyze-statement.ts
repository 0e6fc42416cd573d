import { splitsOfStatement, type Fragment } from '../../../execution/api/fragment.ts'
import type { TaskStats, TaskStatus, TaskUpdate } from '../../../execution/api/task.ts'
import { planStages } from '../../../planner/plan-stages.ts'
import type { StagePlan } from '../../../planner/stage-plan.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { taskId as makeTaskId } from '../../../shared/ids.ts'
import type { BoundStatement } from '../../../sql/front-end.ts'
import { listSplits } from '../../dispatch/catalog-metadata.ts'
import type { WorkerNode } from '../../scheduler/workers.ts'
import type { QueryCommand } from '../stream/decider.ts'
import { explainAnalyzeText } from '../explain/explain-analyze.ts'
import { publishRow, type CoordinatorRunDeps } from './coordinator-run.ts'
import { tablesRead } from './query-statement.ts'
import type { RunContext } from './run-context.ts'
import { engineError, failureOfTask, queryErrorOf } from './task-outcome.ts'
import type { WorkerStageDeps } from './worker-stage.ts'

/** Runs the statement, reports the figures of each operator, and discards the rows. */
export async function runExplainAnalyze(
  deps: CoordinatorRunDeps & WorkerStageDeps,
  run: RunContext,
  analyzed: Extract<BoundStatement, { kind: 'explain' }>,
  analysisNanos: number,
): Promise<void> {
  const inner = analyzed.statement
  if (inner.kind !== 'query')
    throw new EngineError('NOT_SUPPORTED', 'EXPLAIN ANALYZE of a statement that changes something is not supported')
  const planStart = deps.clock.monotonicMs()
  const input = await listSplits(deps.catalogs, inner.query)
  // The operators run on a worker, whatever the statement is.
  const stages = planStages({ ...inner.query, simple: false }, inner.columns, input)
  const stage = stages.find(({ fragment }) => fragment !== undefined)!
  const planningNanos = Math.round((deps.clock.monotonicMs() - planStart) * 1e6)
  const plan = run.planned({
    queryType: 'EXPLAIN',
    route: 'local',
    columns: analyzed.columns,
    tables: tablesRead(inner),
    stages,
    analysisNanos,
    planningNanos,
  })
  const stats = await runForFigures(deps, run, stage, plan)
  const text = explainAnalyzeText({ stage, stats }, { analysisNanos, planningNanos }, analyzed.verbose)
  await publishRow(deps, run, JSON.stringify([text]), 'ExplainAnalyzeOperator')
}

/**
 * Runs a stage for its figures alone: its pages are acknowledged as they come and are not delivered.
 * @returns the task's final figures
 * @throws EngineError the task's failure. A task lost with its worker is not retried: its figures would not be those of
 * one run.
 */
async function runForFigures(
  deps: WorkerStageDeps,
  run: RunContext,
  stage: StagePlan,
  plan: QueryCommand,
): Promise<TaskStats> {
  const { fragment } = stage
  if (!fragment) throw new Error('a worker stage has a fragment')
  const slot = await deps.placement.place(run.signal)
  try {
    return await runPlaced(deps, run, { stage, fragment, node: slot.node }, plan)
  } finally {
    slot.leave()
  }
}

async function runPlaced(
  deps: WorkerStageDeps,
  run: RunContext,
  placed: { readonly stage: StagePlan; readonly fragment: Fragment; readonly node: WorkerNode },
  plan: QueryCommand,
): Promise<TaskStats> {
  const { stage, fragment, node } = placed
  const { id } = stage
  const splits = await run.splitsOf(stage)
  run.signal.throwIfAborted()
  const taskId = makeTaskId(run.queryId, id, 0)
  const create: QueryCommand = {
    type: 'CreateTask',
    data: {
      taskId,
      stage: id,
      nodeId: node.nodeId,
      nodeUrl: node.url,
      splits: splitsOfStatement(fragment, splits).length,
      attempt: 0,
    },
  }
  const traceparent = run.spanOf(id)
  const update: TaskUpdate = {
    session: { queryId: run.queryId, user: run.user, startTimeMillis: run.startTimeMillis },
    fragment,
    splits: [...splits],
    noMoreSplits: true,
    outputBuffers: { buffers: ['0'] },
    attempt: 0,
    profile: true,
    ...run.limits.forTask(),
    batchAttempts: run.limits.attempts,
    ...(traceparent === undefined ? {} : { traceparent }),
  }
  const appended = run.record([plan, create])
  appended.catch(() => {})
  const forget = (): void => {
    deps.hub.forget(node.url, taskId)
    void deps.client.deleteTask(node.url, taskId, false).catch(() => {})
  }
  try {
    const stats = await new Promise<TaskStats>((resolve, reject) => {
      const onStatus = (status: TaskStatus): void => {
        run.onStats(taskId, status.stats)
        const last = status.pages.at(-1)
        if (last) void deps.client.acknowledge(node.url, taskId, last.token + 1).catch(() => {})
        if (status.state === 'FINISHED') resolve(status.stats)
        else if (status.state === 'FAILED' || status.state === 'ABORTED' || status.state === 'CANCELED') {
          reject(engineError(failureOfTask(taskId, status)))
        }
      }
      if (run.signal.aborted) return reject(run.signal.reason)
      run.signal.addEventListener('abort', () => reject(run.signal.reason), { once: true })
      deps.hub.listen(node.url, taskId, {
        onStatus,
        onLost: (error) => reject(queryErrorOf(error)),
      })
      deps.client.createTask(node.url, taskId, update).then(onStatus, (error: unknown) => reject(queryErrorOf(error)))
    })
    await appended
    await run.record([
      { type: 'FinishTask', data: { taskId, stage: id, nodeId: node.nodeId, nodeUrl: node.url, stats } },
    ])
    return stats
  } finally {
    forget()
  }
}
