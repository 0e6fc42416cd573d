import { z } from 'zod'

/** A query that finished on the primary, as its last event shows it. */
const finishedQuerySchema = z.object({
  queryId: z.string(),
  elapsedMs: z.number().describe('Without the time in the queue'),
})
export type FinishedQuery = Readonly<z.infer<typeof finishedQuerySchema>>

const count = z.number().int().min(0)
/** The numbers of finished queries, and of those without a verdict. */
const shadowCountsSchema = z.object({
  finished: count.describe('All queries that finished and that the user may see'),
  writes: count.describe('Queries that changed something'),
  notSampled: count,
  dropped: count.describe('Queries that found the queue full'),
  ignored: count.describe('Queries of replays, and queries that the filter leaves out'),
})
export type ShadowCounts = Readonly<z.infer<typeof shadowCountsSchema>>

/** A point from which a shadow continues: every query up to `after` is counted or open. */
export const shadowPositionSchema = z.object({
  after: z.string().optional().describe('Id of the last event that was read; absent: none was read'),
  counts: shadowCountsSchema,
  open: z.array(finishedQuerySchema).describe('Queries that wait or run'),
})
export type ShadowPosition = Readonly<z.infer<typeof shadowPositionSchema>>

export const SHADOW_BEGINNING: ShadowPosition = {
  counts: { finished: 0, writes: 0, notSampled: 0, dropped: 0, ignored: 0 },
  open: [],
}

/**
 * The queries that wait to be mirrored. The side that follows the log never waits: a query that finds the queue full is
 * dropped and counted.
 */
export class MirrorQueue {
  readonly #size: number
  readonly #counts: { -readonly [K in keyof ShadowCounts]: ShadowCounts[K] }
  /** Queries that wait or run, in the order of the log. */
  readonly #open: Map<string, FinishedQuery>
  readonly #waiting: FinishedQuery[]
  #after: string | undefined
  #wake: (() => void) | undefined

  /**
   * @param from the point from which an earlier shadow continues; its open queries come first
   * @param size the most queries that wait
   */
  constructor(from: ShadowPosition, size: number) {
    this.#size = size
    this.#after = from.after
    this.#counts = { ...from.counts }
    this.#open = new Map(from.open.map((query) => [query.queryId, query]))
    this.#waiting = [...this.#open.values()]
  }

  /**
   * Counts a finished query and lets it wait, unless it is left out.
   * @param after id of its event
   * @param leftOut why it is not mirrored
   */
  offer(query: FinishedQuery, after: string, leftOut?: 'writes' | 'notSampled'): void {
    this.#after = after
    this.#counts.finished++
    if (leftOut !== undefined) this.#counts[leftOut]++
    else if (this.#waiting.length >= this.#size) this.#counts.dropped++
    else {
      this.#open.set(query.queryId, query)
      this.#waiting.push(query)
      this.#wake?.()
    }
  }

  /** Stores that the log has no further finished query up to an event. @param after the id of the event */
  reach(after: string): void {
    this.#after = after
  }

  /** The next query; it stays open until `settle`. @returns undefined once the signal aborts */
  async take(signal: AbortSignal): Promise<FinishedQuery | undefined> {
    while (!signal.aborted) {
      const query = this.#waiting.shift()
      if (query) return query
      await this.#offered(signal)
    }
    return undefined
  }

  /** Ends the work on a query. @param ignored whether the filter leaves the query out */
  settle({ queryId }: FinishedQuery, ignored = false): void {
    this.#open.delete(queryId)
    if (ignored) this.#counts.ignored++
  }

  get position(): ShadowPosition {
    return {
      ...(this.#after !== undefined && { after: this.#after }),
      counts: { ...this.#counts },
      open: [...this.#open.values()],
    }
  }

  get counts(): ShadowCounts {
    return this.#counts
  }

  /** The number of queries that wait or run. */
  get open(): number {
    return this.#open.size
  }

  /** Resolves once a query is offered or the signal aborts. All callers that wait then look for a query again. */
  #offered(signal: AbortSignal): Promise<void> {
    const earlier = this.#wake
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener('abort', wake)
        if (this.#wake === wake) this.#wake = undefined
        earlier?.()
        resolve()
      }
      this.#wake = wake
      signal.addEventListener('abort', wake)
    })
  }
}
