import type { NodeId } from '../../shared/ids.ts'
/** Which workers may take tasks now; membership (`coordinator/nodes`) provides it. */
export interface WorkerDirectory {
  /** Active workers, neither suspect nor failed. */
  active(): readonly ActiveWorker[]
  /** A worker that answered is known under its url as well. */
  byUrl(url: string): WorkerNode | undefined
  /** Where a worker is now: started again, it may have another address and still its pages. */
  byId(nodeId: NodeId): WorkerNode | undefined
  /** Called whenever a worker joins, fails or leaves. */
  onChange(listener: () => void): void
}

export interface WorkerNode {
  readonly nodeId: NodeId
  readonly url: string
}

/** What a worker says of itself, as far as it does. */
export interface ActiveWorker extends WorkerNode {
  readonly cores?: number
  readonly memoryBytes?: number
  /** Engines that wait for work. */
  readonly freeEngines?: number
  /** It takes no new tasks. */
  readonly leaving?: true
}
