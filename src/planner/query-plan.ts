import type { WriteTarget } from '../connectors/spi/table-writer.ts'
import type { Fragment, Split } from '../execution/api/fragment.ts'
import { ROOT_STAGE } from '../shared/ids.ts'
import type { PlanNode } from './planned-statement.ts'

/**
 * Where the pages of a stage go.
 *
 * - `client`: they are the pages of the query's result.
 * - `exchange`: they stay where the stage ran, for the stage that reads them.
 * - `table`: there are no pages. The rows become files, and the coordinator commits them.
 * - `none`: they are dropped. Only the figures of the stage are wanted (EXPLAIN ANALYZE).
 */
export type StageOutput = 'client' | 'exchange' | 'table' | 'none'

/** The stage of a delegated statement that its cluster runs. */
export const REMOTE_STAGE = 1

/** A part of a plan that runs as tasks. */
export interface Stage {
  readonly id: number
  /** The ids of the stages whose output it reads. */
  readonly inputs: readonly number[]
  /** Where its tasks run. `coordinator`: in the coordinator. `single`: in one task on a worker, or at a cluster. */
  readonly distribution: 'coordinator' | 'single'
  readonly output: StageOutput
  /**
   * The computation of its tasks. Absent for a root that computes nothing, for a stage at a cluster, and if it is not
   * stored.
   */
  readonly fragment?: Fragment
  /** For a fragment that is not stored because it contains secrets: the data needed to continue with its task. */
  readonly withheld?: { readonly streams: boolean; readonly target?: WriteTarget | undefined }
  readonly splits: readonly Split[]
  /** The operators of the fragment for EXPLAIN; absent in a plan that was read from the log. */
  readonly outline?: PlanNode
}

/** Where a plan runs. `local`: on workers. `coordinator`: in the coordinator. `delegated`: at a cluster. */
export type PlanRoute = 'local' | 'coordinator' | 'delegated'

/** The stages of a query, a tree. The coordinator runs the root. The other stages run on workers, or at a cluster. */
export interface QueryPlan {
  readonly route: PlanRoute
  /** Every stage once, the root first. */
  readonly stages: readonly Stage[]
  /** Stage 0. Without a fragment it relays its only input, or the coordinator makes its single row itself. */
  readonly root: Stage
}

/** The plan of a statement that a cluster runs as a whole. The root passes the cluster's answers on. */
export const DELEGATED_PLAN: QueryPlan = makePlan(
  'delegated',
  [
    { id: ROOT_STAGE, distribution: 'coordinator', inputs: [REMOTE_STAGE], splits: [] },
    { id: REMOTE_STAGE, distribution: 'single', inputs: [], splits: [] },
  ],
  'client',
)

/** The fields that give the shape of a plan; recorded stages have them too. */
type StageShape = Pick<Stage, 'id' | 'inputs'> & { readonly fragment?: unknown; readonly withheld?: unknown }

/**
 * Makes a plan. The `output` of each stage is derived from the tree.
 * @param result where the rows of the statement go
 */
export function makePlan(
  route: PlanRoute,
  stages: readonly Omit<Stage, 'output'>[],
  result: Exclude<StageOutput, 'exchange'>,
): QueryPlan {
  const resultId = resultStage(stages)?.id
  const outputOf = (id: number): StageOutput => {
    if (id === resultId) return result
    // A root that computes nothing gives the client the pages of its input, or a row about them.
    return id === ROOT_STAGE ? 'client' : 'exchange'
  }
  const made = stages.map((stage): Stage => ({ ...stage, output: outputOf(stage.id) }))
  return { route, stages: made, root: stageOf(made, ROOT_STAGE) }
}

/** The plan of one row that the coordinator makes itself, without an engine. */
export const ROW_PLAN: QueryPlan = makePlan(
  'coordinator',
  [{ id: ROOT_STAGE, distribution: 'coordinator', inputs: [], splits: [] }],
  'client',
)

/**
 * Whether an engine has work for the stage. Otherwise the stage relays, is a row of the coordinator, or runs at a
 * cluster.
 */
export function computes({ fragment, withheld }: Pick<StageShape, 'fragment' | 'withheld'>): boolean {
  return fragment !== undefined || withheld !== undefined
}

/** The stage that computes the rows of the statement: the root, or the input that the root relays. */
export function resultStage<S extends StageShape>(stages: readonly S[]): S | undefined {
  const root = stages.find(({ id }) => id === ROOT_STAGE)
  if (!root || computes(root)) return root
  const [input] = root.inputs
  return input === undefined ? root : stages.find(({ id }) => id === input)
}

/** @throws Error when the plan has no such stage */
export function stageOf<S extends Pick<Stage, 'id'>>(stages: readonly S[], id: number): S {
  const found = stages.find((stage) => stage.id === id)
  if (!found) throw new Error(`The plan has no stage ${id}`)
  return found
}

/** The ids of a stage and of all stages below it; empty when the plan has no such stage. */
export function subtreeOf(stages: readonly Pick<Stage, 'id' | 'inputs'>[], id: number): ReadonlySet<number> {
  const stage = stages.find((one) => one.id === id)
  return new Set(stage ? [id, ...stage.inputs.flatMap((input) => [...subtreeOf(stages, input)])] : [])
}
