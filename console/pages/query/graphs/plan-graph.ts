import type { PlanNodeInfo } from '../../../../src/protocol/info/schemas/query.ts'
import type { GraphData, GraphEdge, GraphNode } from '../../../parts/graph/graph-data.ts'
import { countedAs, shownSize } from '../../../parts/units.ts'

/** The plan as EXPLAIN shows it, with estimates from the sizes of the tables. */
export function planGraph(root: PlanNodeInfo | undefined): GraphData {
  const nodes: GraphNode[] = []
  const edges: GraphEdge[] = []
  const add = (node: PlanNodeInfo): string => {
    const id = String(nodes.length)
    nodes.push(planNode(id, node))
    for (const child of node.children) edges.push({ from: add(child), to: id })
    return id
  }
  if (root) add(root)
  return { nodes, edges }
}

function planNode(id: string, { name, details, layout, estimate }: PlanNodeInfo): GraphNode {
  const lines = Object.entries(details).map(([key, value]) => `${key}: ${value}`)
  const rows = countedAs(estimate.rows === undefined ? undefined : Math.round(estimate.rows), 'row')
  const bytes = estimate?.bytes === undefined ? '' : ` · ${shownSize(estimate.bytes)}`
  const shown = [...lines.slice(0, 3), `estimated ${rows}${bytes}`]
  return {
    id,
    title: name,
    lines: shown,
    explanation: [name, ...lines, `columns: ${layout.join(', ')}`, shown.at(-1)].join('; '),
  }
}
