import type { ClosedPage } from '../../execution/api/task.ts'

/** Pages of one batch that may be published now, in the order in which they were closed. */
export interface PublishableGroup {
  readonly batch: number
  readonly pages: readonly ClosedPage[]
  readonly lastOfBatch: boolean
}

/**
 * Decides when listed pages become part of the result. A streaming batch publishes pages as they close. Any other batch
 * publishes when it ends, or at 64 MB, or once it has waited for as long as its task ran before its first page, 2 s at
 * most. Publishing pins a batch, so it is delayed while a restart is cheap: a LIMIT gives rows at once and may as well
 * start again; a sort has much to lose.
 */
export interface BatchPublisher {
  /** @param ranMs how long the task of the pages has run */
  list(pages: readonly ClosedPage[], ranMs: number): void
  batchDone(batch: number): void
  /** Removes and returns the next group; undefined when nothing may be published yet. */
  next(): PublishableGroup | undefined
  /** Milliseconds until `next` returns more because time has passed; undefined when only news can change it. */
  waitMs(): number | undefined
  /** The number of pages that are listed and not yet taken. */
  readonly pending: number
  /** The token of the first unknown page: all pages before it are known. */
  readonly firstUnknown: number
  /** Whether a known page follows an unknown one. */
  readonly hasGap: boolean
}

const HOLD_BYTES = 64 * 1024 * 1024
const LONGEST_HOLD_MS = 2000

/** The part of a task's output that was published before: its pages by token, and their batches. */
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
  /** Pages after an unknown page. The answer to a task's POST and the worker's news may overtake each other. */
  const ahead = new Map<number, ClosedPage>()
  const done = new Set<number>()
  /** Batches that began to publish: the rest of their pages follow at once. */
  const begun = new Set<number>(before.batches)
  /** When the pages of each batch stop being held back. */
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
      // A repeated answer lists pages again.
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
