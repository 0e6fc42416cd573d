import type { QueryId } from '../../shared/ids.ts'

export interface PageRoomLimits {
  /** Bytes of one query's unacknowledged pages above which that query's engines stop. */
  readonly queryBytes: number
  /** The same for all queries together. */
  readonly totalBytes: number
}

/** Counts the bytes of pages on the disk, and lets engines wait until there are fewer. */
export class PageRoom {
  readonly #limits: PageRoomLimits
  readonly #byQuery = new Map<QueryId, number>()
  #all = 0
  #waiting: Waiter[] = []

  constructor(limits: PageRoomLimits) {
    this.#limits = limits
  }

  get usage(): { readonly bytes: number; readonly queries: number } {
    return { bytes: this.#all, queries: this.#byQuery.size }
  }

  /** @param bytes negative for removed pages */
  count(queryId: QueryId, bytes: number): void {
    this.#all += bytes
    const left = (this.#byQuery.get(queryId) ?? 0) + bytes
    if (left > 0) this.#byQuery.set(queryId, left)
    else this.#byQuery.delete(queryId)
    if (bytes < 0) this.#wake()
  }

  /** Pending while the query, or all queries together, hold more than their limit. */
  wait(queryId: QueryId): void | Promise<void> {
    if (this.#has(queryId)) return
    return new Promise((resolve) => this.#waiting.push({ queryId, resolve }))
  }

  #has(queryId: QueryId): boolean {
    const { queryBytes, totalBytes } = this.#limits
    return (this.#byQuery.get(queryId) ?? 0) < queryBytes && this.#all < totalBytes
  }

  #wake(): void {
    const still: Waiter[] = []
    for (const waiter of this.#waiting) {
      if (this.#has(waiter.queryId)) waiter.resolve()
      else still.push(waiter)
    }
    this.#waiting = still
  }
}

interface Waiter {
  readonly queryId: QueryId
  readonly resolve: () => void
}
