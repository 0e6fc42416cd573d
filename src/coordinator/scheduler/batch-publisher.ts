import type { ClosedPage } from '../../execution/api/task.ts'

/** Pages of one batch that may be published now, in the order they were closed. */
export interface PublishableGroup {
  readonly batch: number
  readonly pages: readonly ClosedPage[]
  readonly lastOfBatch: boolean
}

/**
 * Decides when listed pages become part of the result. A streaming batch publishes as its pages close; any other when
 * it ends, or at 64 MB, or after as much time of output as it took to its first page, 2 s at most: that pins it, so it is
 * put off as long as that is cheap. A LIMIT gives rows at once, and may as well begin anew; a sort has much to lose.
 */
export interface BatchPublisher {
  /** @param ranMs how long their task has run */
  list(pages: readonly ClosedPage[], ranMs: number): void
  batchDone(batch: number): void
  /** Takes the next group out, or undefined when nothing may be published yet. */
  next(): PublishableGroup | undefined
  /** Milliseconds until `next` would give more because time has passed; undefined when only news can. */
  waitMs(): number | undefined
  /** Pages listed and not yet taken. */
  readonly pending: number
  /** Token of the first page that is not known yet: all pages before it are known. */
  readonly firstUnknown: number
  /** Whether a page is known that comes behind one that is not. */
  readonly hasGap: boolean
}

const HOLD_BYTES = 64 * 1024 * 1024
const LONGEST_HOLD_MS = 2000

/** What of a task's output was published before: its pages by their tokens, the batches they belong to. */
export interface PublishedBefore {
  readonly tokens: ReadonlySet<number>
  readonly batches: ReadonlySet<number>
}

export function createBatchPublisher(
  streams: boolean,
  monotonicMs: () => number,
  before: PublishedBefore = { tokens: new Set(), batches: new Set() },
): BatchPublisher {
  let listed: ClosedPage[] = []
  let nextToken = 0
  /** Pages behind one that is not known yet. The answer to a task's POST and the news of its worker may overtake each other. */
  const ahead = new Map<number, ClosedPage>()
  const done = new Set<number>()
  /** Batches that began to publish: the rest of their pages follow at once. */
  const begun = new Set<number>(before.batches)
  /** When those that have given pages are held no longer. */
  const until = new Map<number, number>()

  function publishable(batch: number): boolean {
    if (streams || done.has(batch) || begun.has(batch)) return true
    if (monotonicMs() >= (until.get(batch) ?? Infinity)) return true
    let held = 0
    for (const page of listed) if (page.batch === batch) held += page.bytes
    return held >= HOLD_BYTES
  }

  return {
    list(pages, ranMs) {
      // A repeated answer tells of pages again.
      for (const page of pages) if (page.token >= nextToken) ahead.set(page.token, page)
      for (;;) {
        const page = ahead.get(nextToken)
        const wasPublished = before.tokens.has(nextToken)
        if (!page && !wasPublished) return
        ahead.delete(nextToken++)
        if (!page || wasPublished) continue
        listed.push(page)
        if (!until.has(page.batch)) until.set(page.batch, monotonicMs() + Math.min(ranMs, LONGEST_HOLD_MS))
      }
    },
    batchDone: (batch) => void done.add(batch),
    next() {
      const first = listed.find((page) => publishable(page.batch))
      if (!first) return undefined
      const pages = listed.filter((page) => page.batch === first.batch)
      listed = listed.filter((page) => page.batch !== first.batch)
      begun.add(first.batch)
      return { batch: first.batch, pages, lastOfBatch: pages.some((page) => page.lastOfBatch) || done.has(first.batch) }
    },
    waitMs() {
      if (listed.length === 0) return undefined
      const soonest = Math.min(...listed.map(({ batch }) => until.get(batch) ?? Infinity))
      return Math.max(0, soonest - monotonicMs())
    },
    get pending() {
      return listed.length
    },
    get firstUnknown() {
      return nextToken
    },
    get hasGap() {
      return ahead.size > 0
    },
  }
}
