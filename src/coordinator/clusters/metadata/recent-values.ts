import { howToRetry } from '../../../shared/quipu-error.ts'

/** The part of a cluster's catalogs that a value is about: a schema, a catalog, or the whole cluster. */
export interface MetadataScope {
  readonly catalog?: string
  readonly schema?: string
}

/** Values that a cluster gave, one for each scope. */
export interface RecentValues<T> {
  /**
   * Gives the last value while it is fresh (60 s), and else reads a new one. Callers of the same scope share a read. If
   * the cluster does not answer, the last value is given until it is 10 minutes old.
   * @param read rejects with an error that may be retried if the cluster is away
   * @throws the error of `read`
   */
  get(scope: MetadataScope, read: () => Promise<T>): Promise<T>
  /** Forgets the values within a scope. The value of a read that is under way is not kept. */
  drop(changed: MetadataScope): void
}

export interface RecentValuesOptions<T> {
  /** The memory that a value takes, in rows; one more is added, so that empty values count too. */
  readonly weightOf: (value: T) => number
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

const FRESH_MS = 60_000
const STALE_MS = 600_000
/** After a failed read the old value is given for this time, so that not every statement waits for the cluster. */
const ASK_AGAIN_MS = 5_000
const MOST_ROWS = 200_000

interface Entry<T> {
  readonly scope: MetadataScope
  readonly value: T
  readonly weight: number
  readonly readAt: number
  readonly freshUntil: number
}

/** A read that is under way. */
interface Read {
  readonly scope: MetadataScope
  /** Whether `drop` was called after the read began: its value may be older than the change, and is not kept. */
  dropped: boolean
}

export function createRecentValues<T>({ weightOf, now }: RecentValuesOptions<T>): RecentValues<T> {
  /** In the order of their last use: the first ones are removed when there is no room. */
  const entries = new Map<string, Entry<T>>()
  const reads = new Map<string, { readonly run: Read; readonly value: Promise<T> }>()
  let weight = 0

  function remove(key: string): void {
    weight -= entries.get(key)?.weight ?? 0
    entries.delete(key)
  }

  function put(key: string, entry: Entry<T>): void {
    remove(key)
    entries.set(key, entry)
    weight += entry.weight
    for (const oldest of entries.keys()) {
      if (weight <= MOST_ROWS || oldest === key) break
      remove(oldest)
    }
  }

  async function finish(key: string, run: Read, read: () => Promise<T>): Promise<T> {
    const before = entries.get(key)
    try {
      const value = await read()
      const readAt = now()
      if (!run.dropped)
        put(key, { scope: run.scope, value, weight: 1 + weightOf(value), readAt, freshUntil: readAt + FRESH_MS })
      return value
    } catch (error) {
      const holds = before !== undefined && now() - before.readAt < STALE_MS
      if (!holds || howToRetry(error) === 'never') {
        if (!run.dropped) remove(key)
        throw error
      }
      if (!run.dropped) put(key, { ...before, freshUntil: now() + ASK_AGAIN_MS })
      return before.value
    }
  }

  return {
    async get(scope, read) {
      const key = JSON.stringify([scope.catalog, scope.schema])
      const known = entries.get(key)
      if (known && now() < known.freshUntil) {
        entries.delete(key)
        entries.set(key, known)
        return known.value
      }
      const running = reads.get(key)
      if (running) return running.value
      const run = { scope, dropped: false }
      const value = finish(key, run, read).finally(() => {
        if (!run.dropped) reads.delete(key)
      })
      reads.set(key, { run, value })
      return value
    },
    drop(changed) {
      for (const [key, { scope }] of entries) if (isWithin(scope, changed)) remove(key)
      for (const [key, { run }] of reads) {
        if (!isWithin(run.scope, changed)) continue
        run.dropped = true
        reads.delete(key)
      }
    },
  }
}

function isWithin(scope: MetadataScope, outer: MetadataScope): boolean {
  return (
    (outer.catalog === undefined || outer.catalog === scope.catalog) &&
    (outer.schema === undefined || outer.schema === scope.schema)
  )
}
