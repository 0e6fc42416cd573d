import type { NodeId } from '../../shared/ids.ts'
/** The workers that may take tasks now; membership (`coordinator/nodes`) provides them. */
export interface WorkerDirectory {
  /** Active workers, neither suspect nor failed. */
  active(): readonly ActiveWorker[]
  /** The worker with this url; a worker that has answered is also known by its url. */
  byUrl(url: string): WorkerNode | undefined
  /**
   * The worker with this id at its current address: after a restart it may have another address, and still its pages.
   */
  byId(nodeId: NodeId): WorkerNode | undefined
  /** Called whenever a worker joins, fails or leaves. */
  onChange(listener: () => void): void
}

export interface WorkerNode {
  readonly nodeId: NodeId
  readonly url: string
}

/** The capacity of a worker, as far as it reports it. */
export interface ActiveWorker extends WorkerNode {
  readonly cores?: number
  readonly memoryBytes?: number
  /** The number of idle engines. */
  readonly freeEngines?: number
  /** Present when the worker takes no new tasks. */
  readonly leaving?: true
}
