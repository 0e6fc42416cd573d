/** A graph of boxes with lines of text, drawn from the sources at the bottom to the result at the top. */
export interface GraphData {
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly GraphEdge[]
}

export interface GraphNode {
  /** Unique in the graph. */
  readonly id: string
  readonly title: string
  readonly state?: string
  /** Texts below the title, the most important first. */
  readonly lines: readonly string[]
  /** Everything about the node, in one text; the node shows it as its title. */
  readonly explanation: string
  /** The node's part of the time of all nodes, 0 to 1. */
  readonly share?: number
}

export interface GraphEdge {
  /** Id of the node that gives rows. */
  readonly from: string
  /** Id of the node that takes them. */
  readonly to: string
  readonly label?: string
  /** The edge's rows as a part of the rows of the edge with the most rows, 0 to 1: the width of its line. */
  readonly weight?: number
}

/** The part of each edge's rows in the rows of the edge with the most rows. */
export function weighted(edges: readonly (GraphEdge & { readonly rows: number | undefined })[]): readonly GraphEdge[] {
  const most = edges.reduce((max, { rows }) => Math.max(max, rows ?? 0), 0)
  return edges.map(({ rows, ...edge }) => ({ ...edge, weight: most === 0 || rows === undefined ? 0 : rows / most }))
}
