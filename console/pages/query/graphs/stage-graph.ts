import type { StageInfo } from '../../../../src/protocol/info/schemas/query.ts'
import { weighted, type GraphData } from '../../../parts/graph/graph-data.ts'
import { countedAs, nanosOf, shownCount, shownDuration, shownText } from '../../../parts/units.ts'
import { allStages, shortId } from '../stage-list.ts'

/** The stages of a query: each gives its rows to the stage above it. */
export function stageGraph(root: StageInfo | undefined): GraphData {
  const stages = allStages(root)
  const cpuOfAll = stages.reduce((sum, { stageStats }) => sum + (nanosOf(stageStats.totalCpuTime) ?? 0), 0)
  const edges = stages.flatMap((stage) =>
    stage.subStages.map((input) => ({
      from: input.stageId,
      to: stage.stageId,
      rows: input.stageStats.outputPositions,
      label: rowsAndBytes(input.stageStats.outputPositions, input.stageStats.outputDataSize),
    })),
  )
  return { nodes: stages.map((stage) => stageNode(stage, cpuOfAll)), edges: weighted(edges) }
}

function stageNode(stage: StageInfo, cpuOfAll: number) {
  const { stageStats: stats } = stage
  const cpu = nanosOf(stats.totalCpuTime) ?? 0
  const tasks = `${shownCount(stats.completedTasks)} of ${countedAs(stats.totalTasks, 'task')}, ${shownCount(stats.completedSplits)} of ${countedAs(stats.totalSplits, 'split')}`
  const rows = `in ${rowsAndBytes(stats.processedInputPositions, stats.processedInputDataSize)}`
  const times = `CPU ${shownDuration(cpu)}, blocked ${shownText(stats.totalBlockedTime)}`
  return {
    id: stage.stageId,
    title: `Stage ${shortId(stage.stageId)}`,
    state: stage.state,
    lines: [tasks, rows, times],
    explanation: `Stage ${shortId(stage.stageId)}, ${stage.state}: ${tasks}; ${rows}; ${times}`,
    ...(cpuOfAll > 0 && { share: cpu / cpuOfAll }),
  }
}

/** Rows and bytes of an edge: `1,200 rows · 34 kB`. */
export function rowsAndBytes(rows: number, size: string): string {
  return `${countedAs(rows, 'row')} · ${shownText(size)}`
}
