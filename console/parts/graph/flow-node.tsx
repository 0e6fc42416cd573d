import { Handle, Position, type Node, type NodeProps } from '@xyflow/react'
import { StateBadge } from '../state-badge.tsx'
import type { GraphNode } from './graph-data.ts'
import classes from './graph.module.css'

/** A box of a graph: title, state, lines, and a bar for its share of the time. */
export function FlowNode({ data }: NodeProps<Node<{ readonly node: GraphNode }, 'box'>>) {
  const { title, state, lines, explanation, share } = data.node
  return (
    <div className={classes.node} title={explanation}>
      <Handle type="source" position={Position.Top} isConnectable={false} className={classes.handle ?? ''} />
      <Handle type="target" position={Position.Bottom} isConnectable={false} className={classes.handle ?? ''} />
      <div className={classes.title}>
        <span className={classes.name}>{title}</span>
        {state === undefined ? null : <StateBadge state={state} />}
      </div>
      {lines.map((line, index) => (
        <div key={index} className={classes.line}>
          {line}
        </div>
      ))}
      {share === undefined ? null : <div className={classes.share} style={{ width: `${100 * share}%` }} />}
    </div>
  )
}
