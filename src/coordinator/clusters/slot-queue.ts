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
  /** A cluster that just failed: taken only where no other one of the target is open. */
  readonly avoid: string | undefined
  /** Called once with the name of the cluster, when its slot is taken. */
  readonly onSlot: (cluster: string) => void
}

/**
 * The slots of all clusters, and the statements that wait for them. Users take turns: after each slot the user goes
 * behind all others that wait. The statements of a user are served in the order in which they came.
 *
 * No statement waits while a slot that it may have is free, if the caller calls `serve` after each change of the open
 * clusters.
 */
export class SlotQueue {
  readonly #open: () => readonly OpenCluster[]
  readonly #running = new Map<string, number>()
  /** The number of the last slot that each cluster gave; the number of all slots so far. */
  readonly #given = new Map<string, number>()
  #gave = 0
  /** In the order in which users are served. */
  readonly #users = new Map<string, Set<Waiter>>()
  readonly #waiting = new Map<string, number>()

  constructor(open: () => readonly OpenCluster[]) {
    this.#open = open
  }

  runningAt(cluster: string): number {
    return this.#running.get(cluster) ?? 0
  }

  /** How many wait for a slot at the cluster; those that wait for its group count. */
  waitingFor({ name, group }: Pick<OpenCluster, 'name' | 'group'>): number {
    return this.waitingOf({ group }) + this.waitingOf({ cluster: name })
  }

  waitingOf(target: ClusterTarget): number {
    return this.#waiting.get(keyOf(target)) ?? 0
  }

  /** All that wait. */
  *waiters(): Generator<Waiter> {
    for (const waiting of this.#users.values()) yield* waiting
  }

  /** Takes a slot now, or as soon as one is free. @returns stops waiting; does nothing once a slot was taken */
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

  /** Gives free slots to those that wait. Call it whenever the open clusters changed. */
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
        // The last key of a map is the user that was served last.
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

  /** The cluster with the fewest statements for its weight; among equals the one that waited longest. */
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
