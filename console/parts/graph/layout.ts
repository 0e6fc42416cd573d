import { Graph, layout } from '@dagrejs/dagre'
import type { GraphData, GraphNode } from './graph-data.ts'

/** The size of a node, in pixels. */
export interface NodeBox {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const WIDTH = 230
const HEAD = 34
const LINE = 18

/** The height of a node follows from its lines, so that a layout needs no measured elements. */
function heightOf({ lines }: GraphNode): number {
  return HEAD + lines.length * LINE
}

/** Layouts by the structure of their graph, the latest last. */
const layouts = new Map<string, ReadonlyMap<string, NodeBox>>()
const MOST_LAYOUTS = 8

/**
 * Positions of all nodes by their id; a node lies above those that give it rows. A layout is kept outside of React: new
 * figures may interrupt a render before it is done, and it would begin again.
 * @param structure equal for graphs with the same nodes and edges
 */
export function layOut(graph: GraphData, structure: string): ReadonlyMap<string, NodeBox> {
  const found = layouts.get(structure) ?? layoutOf(graph)
  layouts.delete(structure)
  layouts.set(structure, found)
  const [oldest] = layouts.keys()
  if (layouts.size > MOST_LAYOUTS && oldest !== undefined) layouts.delete(oldest)
  return found
}

function layoutOf({ nodes, edges }: GraphData): ReadonlyMap<string, NodeBox> {
  const graph = new Graph()
  // Plans are trees, for which the fastest ranker gives the same layers as the others: a thousand nodes take 1 s, not 20.
  graph.setGraph({ rankdir: 'BT', nodesep: 24, ranksep: 56, ranker: 'longest-path' })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const node of nodes) graph.setNode(node.id, { width: WIDTH, height: heightOf(node) })
  for (const { from, to } of edges) graph.setEdge(from, to)
  layout(graph)
  return new Map(
    nodes.map((node) => {
      const { x = 0, y = 0 } = graph.node(node.id) as { readonly x?: number; readonly y?: number }
      const height = heightOf(node)
      return [node.id, { x: x - WIDTH / 2, y: y - height / 2, width: WIDTH, height }]
    }),
  )
}
