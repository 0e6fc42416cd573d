import type { Clock } from '../../shared/clock.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { ActiveWorker, WorkerDirectory, WorkerNode } from './workers.ts'
import type { NodeId } from '../../shared/ids.ts'

/** A worker and its load from this coordinator. */
export interface Candidate extends ActiveWorker {
  /** The number of tasks that run on it. */
  readonly running: number
  /** The number of the placement that last chose it, counted over all placements; 0 for never. */
  readonly placed: number
}

const GB = 1024 ** 3

/**
 * The worker with the least load for its size: tasks per core and per gigabyte, the larger of the two. Among equals,
 * first a worker with an idle engine, then the worker that has waited longest for a task.
 */
export function leastLoaded<T extends Candidate>(candidates: readonly T[]): T | undefined {
  return candidates.reduce<T | undefined>(
    (best, one) => (best === undefined || compare(one, best) < 0 ? one : best),
    undefined,
  )
}

function compare(a: Candidate, b: Candidate): number {
  return loadOf(a) - loadOf(b) || engineless(a) - engineless(b) || a.placed - b.placed
}

/** Load by whole cores and gigabytes, so that similar machines are equal. */
function loadOf({ running, cores = 1, memoryBytes = GB }: Candidate): number {
  const parts = Math.min(Math.max(1, Math.floor(cores)), Math.max(1, Math.floor(memoryBytes / GB)))
  return (running + 1) / parts
}

function engineless({ freeEngines }: Candidate): number {
  return freeEngines === 0 ? 1 : 0
}

/** A slot for a task on a worker, taken until it is left. */
export interface WorkerSlot {
  readonly node: WorkerNode
  /** Frees the slot: the task no longer runs there. Safe to call twice. */
  leave(): void
}

export interface PlacementOptions {
  readonly workers: Pick<WorkerDirectory, 'active'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** How long a query waits for a worker, milliseconds. */
  readonly workerWaitMs: number
}

const LOOK_MS = 20

/** Chooses the workers of tasks: the worker with the least load. */
export class Placement {
  readonly #options: PlacementOptions
  readonly #running = new Map<NodeId, number>()
  readonly #placed = new Map<NodeId, number>()
  #placements = 0

  constructor(options: PlacementOptions) {
    this.#options = options
  }

  /**
   * Waits for a worker and takes a slot on it.
   * @param avoid a worker that just lost the task: it is taken only when there is no other
   * @throws EngineError NO_NODES_AVAILABLE when there is none for too long
   */
  async assign(signal: AbortSignal, avoid?: string): Promise<WorkerSlot> {
    const { clock, workerWaitMs } = this.#options
    const deadline = clock.monotonicMs() + workerWaitMs
    for (;;) {
      const node = this.#choose(avoid)
      // Counted without an await after the choice, so that the next choice sees it.
      if (node) return this.take(node)
      signal.throwIfAborted()
      if (clock.monotonicMs() > deadline)
        throw new EngineError('NO_NODES_AVAILABLE', 'No nodes available to run query', { retry: 'later' })
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }

  /** Takes a slot on this worker, on which a task already runs. */
  take({ nodeId, url }: WorkerNode): WorkerSlot {
    let left = false
    this.#running.set(nodeId, this.runningOn(nodeId) + 1)
    this.#placed.set(nodeId, ++this.#placements)
    return {
      node: { nodeId, url },
      leave: () => {
        if (left) return
        left = true
        const running = this.runningOn(nodeId) - 1
        if (running > 0) this.#running.set(nodeId, running)
        else this.#running.delete(nodeId)
      },
    }
  }

  runningOn(nodeId: NodeId): number {
    return this.#running.get(nodeId) ?? 0
  }

  #choose(avoid: string | undefined): WorkerNode | undefined {
    const active = this.#options.workers.active().filter(({ leaving }) => leaving !== true)
    const others = active.filter(({ nodeId }) => nodeId !== avoid)
    this.#forgetGone(active)
    return leastLoaded(
      (others.length > 0 ? others : active).map((worker) => ({
        ...worker,
        running: this.runningOn(worker.nodeId),
        placed: this.#placed.get(worker.nodeId) ?? 0,
      })),
    )
  }

  /** Drops entries of workers that are gone, so that the map stays bounded. */
  #forgetGone(active: readonly WorkerNode[]): void {
    if (this.#placed.size <= 2 * active.length + 16) return
    const there = new Set(active.map(({ nodeId }) => nodeId))
    for (const nodeId of this.#placed.keys()) if (!there.has(nodeId)) this.#placed.delete(nodeId)
  }
}
