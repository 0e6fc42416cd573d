import { computes, stageOf, type QueryPlan, type Stage } from '../../../planner/query-plan.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import { secretsNotKept } from '../secrets/secrets-not-kept.ts'
import type { QueryCommand } from '../stream/decider.ts'
import { runOnCoordinator, type CoordinatorRunDeps } from './coordinator-run.ts'
import type { RunContext } from './run-context.ts'
import { finishTask, type FinishedTask } from './task-outcome.ts'
import { runWorkerStage, type WorkerStageDeps } from './worker-stage.ts'

/**
 * Runs a plan, or continues it: stages that have ended do not run again, and running tasks are followed.
 * @param planned the command that records the plan; undefined when the log has the plan
 * @returns undefined, once the result is published. If the rows of the plan do not go to the client: the task that
 * computed them, once it has ended. The caller then records that end.
 * @throws EngineError the failure of a task
 */
export async function runPlan(
  deps: CoordinatorRunDeps & WorkerStageDeps,
  run: RunContext,
  plan: QueryPlan,
  planned: QueryCommand | undefined,
): Promise<FinishedTask | undefined> {
  switch (plan.route) {
    case 'coordinator':
      if (plan.root.withheld) throw secretsNotKept()
      await runOnCoordinator(deps, run, plan.root, planned)
      return undefined
    case 'local':
      return runOnWorkers(deps, run, plan, planned)
    case 'delegated':
      throw new Error('A cluster carries a delegated plan out')
    default:
      return unreachable(plan.route)
  }
}

/**
 * Runs the stages of a tree on workers. A stage begins once the stages that it reads have ended; until then their pages
 * stay on the workers. Stages that do not read each other run at the same time.
 */
export async function runOnWorkers(
  deps: WorkerStageDeps,
  run: RunContext,
  { stages, root }: QueryPlan,
  planned: QueryCommand | undefined,
): Promise<FinishedTask | undefined> {
  let unrecorded = planned ? [planned] : []
  // The plan is recorded together with the first task.
  const takePlan = (): readonly QueryCommand[] => {
    const first = unrecorded
    unrecorded = []
    return first
  }
  const runInputs = (stage: Stage): Promise<(FinishedTask | undefined)[]> =>
    Promise.all(stage.inputs.map((input) => runSubtree(stageOf(stages, input))))
  const runSubtree = async (stage: Stage): Promise<FinishedTask | undefined> => {
    if (stage.output === 'exchange' && hasEnded(run, stage)) return undefined
    await runInputs(stage)
    const finished = await runWorkerStage(deps, run, stage, takePlan)
    if (stage.output !== 'exchange' || !finished) return finished
    await run.record([finishTask(finished)])
    return undefined
  }
  if (computes(root)) throw new Error('The root of a plan on workers computes nothing')
  const [finished] = await runInputs(root)
  return finished
}

/** Whether a task of the stage has finished, under this or an earlier coordinator. */
function hasEnded(run: RunContext, { id }: Stage): boolean {
  const query = run.aggregate.intended
  return (
    query.kind !== 'NONE' && [...query.tasks.values()].some((task) => task.stage === id && task.state === 'FINISHED')
  )
}
