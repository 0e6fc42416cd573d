import type { StageInfo } from '../../../../src/protocol/info/schemas/query.ts'
import type { OperatorSummary, PipelineInfo } from '../../../../src/protocol/info/schemas/task.ts'
import { bytesOf, nanosOf } from '../../../parts/units.ts'
import { allStages, shortId } from '../stage-list.ts'

/** An operator of a stage, its figures summed over the tasks that ran it. */
export interface OperatorFigures {
  /** Unique in the query. */
  readonly id: string
  readonly stage: string
  /** Trino's name without the word Operator: `HashAggregation`. */
  readonly name: string
  /** The engine's name for it: `HASH_GROUP_BY`. */
  readonly engine: string
  /** Undefined where the engine did not count them. */
  readonly rowsIn: number | undefined
  readonly rowsOut: number | undefined
  /** Rows of the output as the engine's optimizer estimated them. */
  readonly estimatedRows: number | undefined
  readonly bytesOut: number
  /** Undefined where the engine did not measure it. */
  readonly nanos: number | undefined
}

/** Operators from the source to the sink. */
export type Pipeline = readonly OperatorFigures[]

/** The pipelines of a stage, in the order in which they run; those of several tasks are added. */
export function pipelinesOf(stage: StageInfo): readonly Pipeline[] {
  const sums = new Map<string, OperatorFigures[]>()
  for (const task of stage.tasks)
    for (const [index, pipeline] of task.stats.pipelines.entries()) {
      const key = `${index}:${pipeline.operatorSummaries.map(({ operatorType }) => operatorType).join()}`
      const own = figuresOf(stage, index, pipeline, task.stats.profiled)
      const sum = sums.get(key)
      sums.set(key, sum ? sum.map((one, at) => added(one, own[at])) : own)
    }
  return [...sums.values()].filter((pipeline) => pipeline.length > 0)
}

/** All operators of all stages. */
export function allOperators(root: StageInfo | undefined): readonly OperatorFigures[] {
  return allStages(root).flatMap((stage) => pipelinesOf(stage).flat())
}

function figuresOf(
  { stageId }: StageInfo,
  pipeline: number,
  { operatorSummaries }: PipelineInfo,
  profiled: boolean,
): OperatorFigures[] {
  return operatorSummaries.map((operator) => {
    const nanos = nanosOf(operator.getOutputWall) ?? 0
    return {
      id: `${stageId}/${pipeline}/${operator.operatorId}`,
      stage: shortId(stageId),
      name: operator.operatorType.replace(/Operator$/, ''),
      engine: operator.engineOperator,
      rowsIn: counted(operator, 'inputPositions'),
      rowsOut: counted(operator, 'outputPositions'),
      estimatedRows: operator.estimatedPositions,
      bytesOut: bytesOf(operator.outputDataSize) ?? 0,
      nanos: profiled || nanos > 0 ? nanos : undefined,
    }
  })
}

function counted(operator: OperatorSummary, name: 'inputPositions' | 'outputPositions'): number | undefined {
  return operator.unknown?.includes(name) ? undefined : operator[name]
}

function added(one: OperatorFigures, other: OperatorFigures | undefined): OperatorFigures {
  if (!other) return one
  return {
    ...one,
    rowsIn: sum(one.rowsIn, other.rowsIn),
    rowsOut: sum(one.rowsOut, other.rowsOut),
    estimatedRows: sum(one.estimatedRows, other.estimatedRows),
    bytesOut: one.bytesOut + other.bytesOut,
    nanos: sum(one.nanos, other.nanos),
  }
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b
}
