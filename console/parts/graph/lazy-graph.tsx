import { lazy, Suspense } from 'react'
import type { GraphData } from './graph-data.ts'
import { Explained } from '../explained.tsx'
import { EXPLANATIONS } from '../explanations.ts'

const FlowGraph = lazy(() => import('./flow-graph.tsx'))

/** A graph; the code that draws it is loaded when the first graph is shown. */
export function LazyGraph({
  label,
  graph,
  empty,
}: {
  readonly label: string
  readonly graph: GraphData
  /** Shown where the graph has no boxes. */
  readonly empty: string
}) {
  if (graph.nodes.length === 0) return <p>{empty}</p>
  return (
    <div data-explains>
      <Explained by={EXPLANATIONS.graph}>How to read this graph</Explained>
      <Suspense fallback={<p>The graph is being drawn.</p>}>
        <FlowGraph label={label} graph={graph} />
      </Suspense>
    </div>
  )
}
