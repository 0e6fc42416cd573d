import '@xyflow/react/dist/base.css'
import { useComputedColorScheme } from '@mantine/core'
import { useWindowEvent } from '@mantine/hooks'
import {
  Controls,
  Position,
  ReactFlow,
  type Edge,
  type Node,
  type NodeTypes,
  type ReactFlowInstance,
} from '@xyflow/react'
import { useMemo, useRef } from 'react'
import type { GraphData, GraphEdge, GraphNode } from './graph-data.ts'
import { FlowNode } from './flow-node.tsx'
import classes from './graph.module.css'
import { layOut, type NodeBox } from './layout.ts'

type BoxNode = Node<{ readonly node: GraphNode }, 'box'>

/** A graph with more nodes is too wide for the page: it begins at its root. */
const MOST_FITTED = 60

const FIT = { maxZoom: 1 }
const NODE_TYPES: NodeTypes = { box: FlowNode }

/**
 * Draws a graph. Loaded lazily: the libraries for it are large. New figures change texts only; a new structure is laid
 * out again.
 */
export default function FlowGraph({ label, graph }: { readonly label: string; readonly graph: GraphData }) {
  const colors = useComputedColorScheme('light')
  const structure = structureOf(graph)
  const boxes = layOut(graph, structure)
  const isSmall = graph.nodes.length <= MOST_FITTED
  const drawn = useRef<ReactFlowInstance<BoxNode>>(undefined)
  // In a narrower window the boxes would be out of sight.
  useWindowEvent('resize', () => void (isSmall && drawn.current?.fitView(FIT)))
  const nodes = useMemo(() => graph.nodes.flatMap((node) => boxNode(node, boxes.get(node.id))), [graph, boxes])
  const edges = useMemo(() => graph.edges.map(flowEdge), [graph])
  return (
    <div className={classes.frame} role="region" aria-label={label}>
      <ReactFlow
        key={structure}
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        colorMode={colors}
        fitView={isSmall}
        fitViewOptions={FIT}
        onInit={(flow) => {
          drawn.current = flow
          const root = boxes.get(graph.nodes[0]?.id ?? '')
          if (!isSmall && root) void flow.setCenter(root.x + root.width / 2, root.y + 200, { zoom: 0.8 })
        }}
        minZoom={0.02}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        onlyRenderVisibleElements={!isSmall}
        preventScrolling={false}
      >
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  )
}

function structureOf({ nodes, edges }: GraphData): string {
  return JSON.stringify([nodes.map(({ id, lines }) => [id, lines.length]), edges.map(({ from, to }) => [from, to])])
}

function boxNode(node: GraphNode, box: NodeBox | undefined): readonly BoxNode[] {
  if (!box) return []
  const { x, y, width, height } = box
  const handle = { x: width / 2, width: 1, height: 1 }
  return [
    {
      id: node.id,
      type: 'box',
      position: { x, y },
      width,
      height,
      data: { node },
      ariaRole: 'group',
      // The library's description is about selecting and removing boxes, which the console does not do.
      domAttributes: {
        'aria-roledescription': 'step',
        'aria-label': node.explanation,
        'aria-describedby': undefined,
      } as object,
      // With its size and handles the node needs no measuring, and edges are there at once.
      handles: [
        { ...handle, type: 'source', position: Position.Top, y: 0 },
        { ...handle, type: 'target', position: Position.Bottom, y: height },
      ],
    },
  ]
}

function flowEdge({ from, to, label, weight = 0 }: GraphEdge): Edge {
  return {
    id: `${from}→${to}`,
    source: from,
    target: to,
    ...(label === undefined ? {} : { label }),
    labelShowBg: true,
    className: classes.edge ?? '',
    style: { strokeWidth: 1 + 5 * weight },
  }
}
