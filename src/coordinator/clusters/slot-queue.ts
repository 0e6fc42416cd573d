import type { ClusterTarget } from './cluster.ts'

/** A cluster that may get statements now. */
export interface OpenCluster {
  readonly name: string
  readonly group: string
  readonly weight: number
  readonly maxRunning: number | undefined
}

/** A statement that waits for a slot. */
export interface Waiter {
  readonly target: ClusterTarget
  readonly user: string
  /** A cluster that just failed. It is used only if no other cluster of the target is open. */
  readonly avoid: string | undefined
  /** Called once, with the name of the cluster, when the statement has its slot. */
  readonly onSlot: (cluster: string) => void
}

/**
 * The slots of all clusters, and the statements that wait for them. Users take turns: a user that got a slot goes to
 * the end of the line of users. The statements of one user get slots in the order in which they came.
 *
 * The caller must call `serve` after each change of the open clusters. Then no statement waits while a slot that it may
 * have is free.
 */
export class SlotQueue {
  readonly #open: () => readonly OpenCluster[]
  readonly #running = new Map<string, number>()
  /** The value of `#gave` at the last slot of each cluster. `#gave` counts all slots that were taken. */
  readonly #given = new Map<string, number>()
  #gave = 0
  /** The waiting statements by user, in the order in which users get slots. */
  readonly #users = new Map<string, Set<Waiter>>()
  readonly #waiting = new Map<string, number>()

  constructor(open: () => readonly OpenCluster[]) {
    this.#open = open
  }

  runningAt(cluster: string): number {
    return this.#running.get(cluster) ?? 0
  }

  /** How many statements wait for a slot at the cluster, those that wait for its group included. */
  waitingFor({ name, group }: Pick<OpenCluster, 'name' | 'group'>): number {
    return this.waitingOf({ group }) + this.waitingOf({ cluster: name })
  }

  waitingOf(target: ClusterTarget): number {
    return this.#waiting.get(keyOf(target)) ?? 0
  }

  /** All statements that wait. */
  *waiters(): Generator<Waiter> {
    for (const waiting of this.#users.values()) yield* waiting
  }

  /**
   * Takes a slot for a statement, now or as soon as one is free.
   * @returns a function that ends the waiting; it does nothing once the statement has a slot
   */
  push(waiter: Waiter): () => void {
    const key = keyOf(waiter.target)
    const waiting = this.#users.get(waiter.user) ?? new Set()
    waiting.add(waiter)
    this.#users.set(waiter.user, waiting)
    this.#waiting.set(key, this.waitingOf(waiter.target) + 1)
    this.serve()
    return () => void this.#remove(waiter)
  }

  /** Counts a statement that runs at the cluster, even beyond its limit. */
  take(cluster: string): void {
    this.#running.set(cluster, this.runningAt(cluster) + 1)
    this.#given.set(cluster, ++this.#gave)
  }

  leave(cluster: string): void {
    const running = this.runningAt(cluster) - 1
    if (running > 0) this.#running.set(cluster, running)
    else this.#running.delete(cluster)
    this.serve()
  }

  /** Gives free slots to waiting statements. Must be called after each change of the open clusters. */
  serve(): void {
    for (;;) {
      if (this.#users.size === 0) return
      const open = this.#open()
      if (!open.some((one) => this.#hasRoom(one))) return
      const next = this.#next(open)
      if (!next) return
      const { waiter, cluster } = next
      this.#remove(waiter)
      const others = this.#users.get(waiter.user)
      if (others) {
        // The user that was served last becomes the last key of the map.
        this.#users.delete(waiter.user)
        this.#users.set(waiter.user, others)
      }
      this.take(cluster)
      waiter.onSlot(cluster)
    }
  }

  #next(open: readonly OpenCluster[]): { readonly waiter: Waiter; readonly cluster: string } | undefined {
    for (const waiting of this.#users.values())
      for (const waiter of waiting) {
        const cluster = this.#choose(waiter, open)
        if (cluster !== undefined) return { waiter, cluster }
      }
    return undefined
  }

  /** The cluster with the fewest statements for its weight; among equals the one whose last slot is the oldest. */
  #choose({ target, avoid }: Waiter, open: readonly OpenCluster[]): string | undefined {
    const possible = open.filter((one) => isTarget(one, target))
    const others = possible.filter(({ name }) => name !== avoid)
    const load = ({ name, weight }: OpenCluster): number => (this.runningAt(name) + 1) / weight
    let best: OpenCluster | undefined
    for (const one of others.length > 0 ? others : possible) {
      if (!this.#hasRoom(one)) continue
      const difference = best ? load(one) - load(best) : -1
      if (difference < 0 || (difference === 0 && this.#givenBy(one) < this.#givenBy(best!))) best = one
    }
    return best?.name
  }

  #givenBy({ name }: OpenCluster): number {
    return this.#given.get(name) ?? 0
  }

  #hasRoom({ name, maxRunning = Infinity }: OpenCluster): boolean {
    return this.runningAt(name) < maxRunning
  }

  #remove(waiter: Waiter): void {
    const { user, target } = waiter
    const waiting = this.#users.get(user)
    if (!waiting?.delete(waiter)) return
    if (waiting.size === 0) this.#users.delete(user)
    const left = this.waitingOf(target) - 1
    if (left > 0) this.#waiting.set(keyOf(target), left)
    else this.#waiting.delete(keyOf(target))
  }
}

export function isTarget({ name, group }: Pick<OpenCluster, 'name' | 'group'>, target: ClusterTarget): boolean {
  return 'group' in target ? group === target.group : name === target.cluster
}

/** A text that identifies a target. */
export function keyOf(target: ClusterTarget): string {
  return 'group' in target ? `group ${target.group}` : `cluster ${target.cluster}`
}
