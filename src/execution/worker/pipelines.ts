import { unreachable } from '../../shared/unreachable.ts'
import type { OperatorStats, PipelineStats } from '../api/task.ts'
import type { DuckDbOperator, DuckDbProfile } from '../engine/engine.ts'
import { LOCAL_EXCHANGE_SINK, LOCAL_EXCHANGE_SOURCE, readsInput, operatorShape } from './operator-names.ts'

export interface PipelineOptions {
  /** Whether a scan reads pages of other tasks. @default never */
  isPages?(operator: DuckDbOperator): boolean
}

/**
 * An operator before it gets its number; operators are listed from the output to the source while the tree is walked.
 */
interface Operator {
  readonly type: string
  readonly engineType: string
  readonly rowsIn: number
  readonly rowsOut: number
  readonly seconds: number
  readonly estimatedRows: number | undefined
}

interface Walk {
  readonly done: PipelineStats[]
  readonly isPages: (operator: DuckDbOperator) => boolean
}

const NANOS = 1e9

/**
 * DuckDB's operator tree in Trino's names, cut into pipelines at the operators that read all their input before they
 * give a row. Leaves first: a pipeline comes after those that feed it, and the output's pipeline comes last. An
 * operator that ends one pipeline and begins the next is in both: the first has its input rows and its time, the second
 * its output rows, so sums over all are right.
 *
 * The profile gives operators, rows and times. It has no bytes, CPU, memory and drivers: they are zero here. The raw
 * input of the splits later replaces the rows of the scans.
 */
export function pipelinesOf(profile: DuckDbProfile, options: PipelineOptions = {}): PipelineStats[] {
  const walk: Walk = { done: [], isPages: options.isPages ?? (() => false) }
  const root = profile.children[0]
  if (!root) return []
  const shape = operatorShape(root, walk.isPages)
  const body = shape.kind === 'output' ? root.children[0] : root
  const rows = body?.rowsOut ?? 0
  const output: Operator = {
    type: shape.kind === 'output' ? shape.name : 'TaskOutputOperator',
    engineType: shape.kind === 'output' ? root.type : 'RESULT_COLLECTOR',
    rowsIn: rows,
    rowsOut: rows,
    seconds: shape.kind === 'output' ? root.timingSeconds : 0,
    estimatedRows: undefined,
  }
  walkPipeline(walk, body, output, true)
  return walk.done
}

/** Walks from `from` down to the sources. Lists the pipelines that it finds before this one, which ends in `sink`. */
function walkPipeline(walk: Walk, from: DuckDbOperator | undefined, sink: Operator, isOutput: boolean): void {
  const operators: Operator[] = [sink]
  const isInput = from ? walkOperator(walk, from, operators) : false
  operators.reverse()
  walk.done.push(pipelineStats(walk.done.length, operators, isInput, isOutput))
}

/**
 * Adds the operator and all operators below it in the same pipeline. @returns whether the pipeline reads the task's
 * input
 */
function walkOperator(walk: Walk, operator: DuckDbOperator, into: Operator[]): boolean {
  const shape = operatorShape(operator, walk.isPages)
  const [first, second, third] = operator.children
  const { rowsOut } = operator
  const rowsIn = operator.children.reduce((sum, child) => sum + child.rowsOut, 0)
  const named = (type: string, figures: { rowsIn: number; rowsOut: number; seconds: number }): Operator => ({
    type,
    engineType: operator.type,
    estimatedRows: operator.estimatedRows,
    ...figures,
  })
  const seconds = operator.timingSeconds
  const exchangeSource = (rows: number): Operator =>
    named(LOCAL_EXCHANGE_SOURCE, { rowsIn: rows, rowsOut: rows, seconds: 0 })
  const exchangeSink = (rows: number): Operator =>
    named(LOCAL_EXCHANGE_SINK, { rowsIn: rows, rowsOut: rows, seconds: 0 })

  switch (shape.kind) {
    case 'source':
      into.push(named(shape.name, { rowsIn: rowsOut, rowsOut, seconds }))
      return readsInput(shape)
    case 'output':
    case 'pass':
      addMerged(into, named(shape.name, { rowsIn, rowsOut, seconds }))
      return first ? walkOperator(walk, first, into) : false
    case 'breaker':
      into.push(named(shape.name, { rowsIn: 0, rowsOut, seconds: 0 }))
      walkPipeline(walk, first, named(shape.name, { rowsIn, rowsOut: 0, seconds }), false)
      return false
    case 'join': {
      const build = second?.rowsOut ?? 0
      walkPipeline(walk, second, named(shape.build, { rowsIn: build, rowsOut: 0, seconds: 0 }), false)
      into.push(named(shape.probe, { rowsIn: first?.rowsOut ?? 0, rowsOut, seconds }))
      return first ? walkOperator(walk, first, into) : false
    }
    case 'union':
      for (const child of operator.children) walkPipeline(walk, child, exchangeSink(child.rowsOut), false)
      into.push({ ...exchangeSource(rowsOut), seconds })
      return false
    case 'cte':
      walkPipeline(walk, first, { ...exchangeSink(first?.rowsOut ?? 0), seconds }, false)
      return second ? walkOperator(walk, second, into) : false
    case 'delimJoin': {
      // Two operators read the left input: the grouping of distinct keys (without children), and the join's own scan of
      // it.
      const left: Operator[] = [{ ...exchangeSink(first?.rowsOut ?? 0), seconds }]
      if (third) {
        const keys = { rowsIn: first?.rowsOut ?? 0, rowsOut: third.rowsOut, seconds: third.timingSeconds }
        left.push({
          type: 'HashAggregationOperator',
          engineType: third.type,
          estimatedRows: third.estimatedRows,
          ...keys,
        })
      }
      const isInput = first ? walkOperator(walk, first, left) : false
      left.reverse()
      walk.done.push(pipelineStats(walk.done.length, left, isInput, false))
      if (!second) return false
      const readsTables = walkOperator(walk, second, into)
      const last = into[into.length - 1]!
      if (last.type !== 'ValuesOperator') return readsTables
      // DuckDB shows the join's own scan of the left input as a scan of constants.
      into[into.length - 1] = { ...last, type: LOCAL_EXCHANGE_SOURCE }
      return false
    }
    default:
      return unreachable(shape)
  }
}

/**
 * Adds an operator; merges neighbouring filters and projections into one FilterAndProject, named for the filter if
 * there is one.
 */
function addMerged(into: Operator[], operator: Operator): void {
  const above = into[into.length - 1]
  if (operator.type !== 'FilterAndProjectOperator' || above?.type !== operator.type) {
    into.push(operator)
    return
  }
  into[into.length - 1] = {
    type: above.type,
    engineType: above.engineType === 'FILTER' ? above.engineType : operator.engineType,
    rowsIn: operator.rowsIn,
    rowsOut: above.rowsOut,
    seconds: above.seconds + operator.seconds,
    estimatedRows: above.estimatedRows,
  }
}

function pipelineStats(
  pipelineId: number,
  operators: readonly Operator[],
  inputPipeline: boolean,
  outputPipeline: boolean,
): PipelineStats {
  const source = operators[0]!
  const sink = operators[operators.length - 1]!
  const inputRows = inputPipeline ? source.rowsOut : 0
  return {
    pipelineId,
    inputPipeline,
    outputPipeline,
    memoryBytes: 0,
    rawInputBytes: 0,
    rawInputPositions: inputRows,
    processedInputBytes: 0,
    processedInputPositions: inputRows,
    outputBytes: 0,
    outputPositions: sink.rowsIn,
    totalDrivers: 0,
    queuedDrivers: 0,
    runningDrivers: 0,
    completedDrivers: 0,
    scheduledNanos: Math.round(operators.reduce((sum, { seconds }) => sum + seconds, 0) * NANOS),
    cpuNanos: 0,
    blockedNanos: 0,
    operators: operators.map(operatorStats),
    drivers: [],
  }
}

function operatorStats(operator: Operator, operatorId: number): OperatorStats {
  return {
    operatorId,
    operatorType: operator.type,
    engineOperator: operator.engineType,
    inputPositions: operator.rowsIn,
    outputPositions: operator.rowsOut,
    ...(operator.estimatedRows === undefined ? {} : { estimatedPositions: operator.estimatedRows }),
    inputBytes: 0,
    outputBytes: 0,
    timeNanos: Math.round(operator.seconds * NANOS),
    blockedNanos: 0,
    addInputCalls: 0,
    getOutputCalls: 0,
    finishCalls: 0,
  }
}

/**
 * Adds the figures of a batch to those of earlier batches of the task. Batches of one fragment nearly always have one
 * plan; a pipeline without a counterpart of the same operators is listed behind the others.
 */
export function addPipelines(sum: readonly PipelineStats[], batch: readonly PipelineStats[]): PipelineStats[] {
  const result = [...sum]
  const taken = new Set<number>()
  for (const pipeline of batch) {
    const found = result.findIndex(
      (other, index) => !taken.has(index) && index < sum.length && signature(other) === signature(pipeline),
    )
    if (found < 0) {
      result.push({ ...pipeline, pipelineId: result.length })
    } else {
      taken.add(found)
      result[found] = addPipeline(result[found]!, pipeline)
    }
  }
  return result
}

function signature({ operators, outputPipeline }: PipelineStats): string {
  return `${outputPipeline} ${operators.map(({ operatorType, engineOperator }) => `${operatorType} ${engineOperator}`).join()}`
}

function addPipeline(a: PipelineStats, b: PipelineStats): PipelineStats {
  return {
    pipelineId: a.pipelineId,
    inputPipeline: a.inputPipeline || b.inputPipeline,
    outputPipeline: a.outputPipeline,
    memoryBytes: Math.max(a.memoryBytes, b.memoryBytes),
    rawInputBytes: a.rawInputBytes + b.rawInputBytes,
    rawInputPositions: a.rawInputPositions + b.rawInputPositions,
    processedInputBytes: a.processedInputBytes + b.processedInputBytes,
    processedInputPositions: a.processedInputPositions + b.processedInputPositions,
    outputBytes: a.outputBytes + b.outputBytes,
    outputPositions: a.outputPositions + b.outputPositions,
    totalDrivers: a.totalDrivers + b.totalDrivers,
    queuedDrivers: a.queuedDrivers + b.queuedDrivers,
    runningDrivers: a.runningDrivers + b.runningDrivers,
    completedDrivers: a.completedDrivers + b.completedDrivers,
    scheduledNanos: a.scheduledNanos + b.scheduledNanos,
    cpuNanos: a.cpuNanos + b.cpuNanos,
    blockedNanos: a.blockedNanos + b.blockedNanos,
    operators: a.operators.map((operator, index) => addOperator(operator, b.operators[index]!)),
    drivers: [...a.drivers, ...b.drivers],
  }
}

function addOperator(a: OperatorStats, b: OperatorStats): OperatorStats {
  const estimated = a.estimatedPositions !== undefined || b.estimatedPositions !== undefined
  return {
    ...a,
    inputPositions: a.inputPositions + b.inputPositions,
    outputPositions: a.outputPositions + b.outputPositions,
    ...(estimated ? { estimatedPositions: (a.estimatedPositions ?? 0) + (b.estimatedPositions ?? 0) } : {}),
    inputBytes: a.inputBytes + b.inputBytes,
    outputBytes: a.outputBytes + b.outputBytes,
    timeNanos: a.timeNanos + b.timeNanos,
    blockedNanos: a.blockedNanos + b.blockedNanos,
    addInputCalls: a.addInputCalls + b.addInputCalls,
    getOutputCalls: a.getOutputCalls + b.getOutputCalls,
    finishCalls: a.finishCalls + b.finishCalls,
  }
}
