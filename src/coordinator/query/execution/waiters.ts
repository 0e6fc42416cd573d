import { deferred } from '../../../shared/deferred.ts'
import { WaitList } from '../../../shared/wait-list.ts'

/** The waits of a query: its answers wait for its plan and for news, the query waits for its client. */
export class Waiters {
  readonly #news = new WaitList()
  readonly #planKnown = deferred()
  readonly #follow = deferred()
  #followed: boolean
  #revision = 0

  /** @param followed whether a client asked an earlier coordinator for a nextUri */
  constructor(followed: boolean) {
    this.#followed = followed
  }

  /** Increases with every change that an answer should show. */
  get revision(): number {
    return this.#revision
  }

  /** Wakes the waiting answers: there is something new. */
  wake(): void {
    this.#revision++
    this.#news.wake()
  }

  /** Resolves when there is something newer than revision `since`, or after `ms`. */
  news(since: number, ms: number): Promise<void> {
    if (this.#revision !== since) return Promise.resolve()
    return this.#news.wait(ms)
  }

  /** Resolves when the plan, or the failure, is known. */
  get planKnown(): Promise<void> {
    return this.#planKnown.promise
  }

  planIsKnown(): void {
    this.#planKnown.resolve()
  }

  get followed(): boolean {
    return this.#followed
  }

  follow(): void {
    this.#followed = true
    this.#follow.resolve()
  }

  /** Resolves when the client asks this coordinator for a nextUri. */
  get following(): Promise<void> {
    return this.#follow.promise
  }
}
