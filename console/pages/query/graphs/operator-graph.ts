import type { StageInfo } from '../../../../src/protocol/info/schemas/query.ts'
import { weighted, type GraphData, type GraphEdge, type GraphNode } from '../../../parts/graph/graph-data.ts'
import { countedAs, shownCount, shownDuration, shownSize } from '../../../parts/units.ts'
import { pipelinesOf, type OperatorFigures, type Pipeline } from '../operators/operator-figures.ts'
import { allStages } from '../stage-list.ts'

type RowsEdge = GraphEdge & { readonly rows: number | undefined }

/** The operators that ran, joined along their pipelines. A stage without operators yet is left out. */
export function operatorGraph(root: StageInfo | undefined): GraphData {
  const stages = allStages(root)
  const byStage = new Map(stages.map((stage) => [stage.stageId, pipelinesOf(stage)]))
  const operators = [...byStage.values()].flat(2)
  const nanosOfAll = operators.reduce((total, { nanos = 0 }) => total + nanos, 0)
  const inside = [...byStage.values()].flatMap((pipelines) => [
    ...pipelines.flatMap(alongPipeline),
    ...joined(pipelines),
  ])
  const between = stages.flatMap((stage) =>
    stage.subStages.flatMap((input) => stageEdge(byStage.get(input.stageId), byStage.get(stage.stageId))),
  )
  return {
    nodes: operators.map((operator) => operatorNode(operator, nanosOfAll)),
    edges: weighted([...inside, ...between]),
  }
}

function operatorNode(operator: OperatorFigures, nanosOfAll: number): GraphNode {
  const { nanos, estimatedRows, bytesOut } = operator
  const rows = `out ${countedAs(operator.rowsOut, 'row')}${bytesOut > 0 ? ` · ${shownSize(bytesOut)}` : ''}`
  const estimate = `estimated ${countedAs(estimatedRows, 'row')}${misjudged(operator)}`
  const share = nanos === undefined || nanosOfAll === 0 ? undefined : nanos / nanosOfAll
  const part = share === undefined ? '' : ` · ${(100 * share).toFixed(0)} %`
  const time = `time ${nanos === undefined ? 'not measured' : shownDuration(nanos)}${part}`
  const explanation = `${operator.name} of stage ${operator.stage} (${operator.engine}): in ${countedAs(operator.rowsIn, 'row')}; ${rows}; ${estimate}; ${time}`
  return {
    id: operator.id,
    title: operator.name,
    lines: [`stage ${operator.stage} · ${operator.engine}`, rows, estimate, time],
    explanation,
    ...(share !== undefined && { share }),
  }
}

/** Marks an estimate that is wrong by a factor of ten or more. */
function misjudged({ estimatedRows, rowsOut }: OperatorFigures): string {
  if (estimatedRows === undefined || rowsOut === undefined || rowsOut === 0) return ''
  const factor = Math.max(estimatedRows, 1) / rowsOut
  if (factor >= 10) return ` (${shownCount(Math.round(factor))} times too many)`
  return factor <= 0.1 ? ` (${shownCount(Math.round(1 / factor))} times too few)` : ''
}

function alongPipeline(pipeline: Pipeline): readonly RowsEdge[] {
  return pipeline.slice(1).map((operator, index) => rowsEdge(pipeline[index]!, operator, operator.rowsIn))
}

function rowsEdge(from: OperatorFigures, to: OperatorFigures, rows: number | undefined): RowsEdge {
  return { from: from.id, to: to.id, rows, label: countedAs(rows, 'row') }
}

/** Pairs of operators: a pipeline ends in the first operator, and the second takes its rows. */
const TAKERS: Readonly<Record<string, string>> = {
  HashBuilder: 'LookupJoin',
  SetBuilder: 'HashSemiJoin',
  NestedLoopBuild: 'NestedLoopJoin',
}

/**
 * Edges between pipelines. A pipeline comes after those that feed it, so their ends are taken like those of a stack:
 * the last end is taken first. Ends whose taker is not certain have no edge.
 */
function joined(pipelines: readonly Pipeline[]): readonly RowsEdge[] {
  const edges: RowsEdge[] = []
  const open: OperatorFigures[] = []
  for (const pipeline of pipelines) {
    const [source] = pipeline
    for (const operator of pipeline.slice(0, -1))
      for (const end of takenBy(operator, open, operator === source)) edges.push(rowsEdge(end, operator, end.rowsIn))
    const sink = pipeline.at(-1)
    if (sink && sink.name !== 'TaskOutput') open.push(sink)
  }
  return edges
}

function takenBy(operator: OperatorFigures, open: OperatorFigures[], isSource: boolean): readonly OperatorFigures[] {
  const last = open.at(-1)
  if (!last) return []
  if (TAKERS[last.name] === operator.name) return open.splice(-1)
  if (!isSource) return []
  if (last.name === operator.name) return open.splice(-1)
  if (operator.name !== 'LocalExchangeSource' || last.name !== 'LocalExchangeSink') return []
  if (operator.engine === last.engine) return unionInputs(operator, open)
  return open.filter(({ name }) => name === 'LocalExchangeSink').length === 1 ? [last] : []
}

/** The inputs of a union: as many of the last ends as together have the rows of the union. */
function unionInputs(union: OperatorFigures, open: OperatorFigures[]): readonly OperatorFigures[] {
  let rows = 0
  for (let count = 1; count <= open.length; count++) {
    const input = open.at(-count)!
    if (input.name !== 'LocalExchangeSink' || input.engine !== union.engine || input.rowsIn === undefined) return []
    rows += input.rowsIn
    if (count > 1 && rows === union.rowsOut) return open.splice(-count)
  }
  return []
}

/** From the output of a stage to the first operator of the stage that reads it. */
function stageEdge(from: readonly Pipeline[] = [], to: readonly Pipeline[] = []): readonly RowsEdge[] {
  const output = from.at(-1)?.at(-1)
  const input = to.find((pipeline) => pipeline[0]?.name === 'Exchange')?.[0]
  return output && input ? [rowsEdge(output, input, output.rowsOut)] : []
}
