import { deferred } from '../../../shared/deferred.ts'
import { WaitList } from '../../../shared/wait-list.ts'

/** Who waits: the query's answers for its plan and for news, the query for its client. */
export class Waiters {
  readonly #news = new WaitList()
  readonly #planKnown = deferred()
  readonly #follow = deferred()
  #followed: boolean
  #revision = 0

  /** @param followed a nextUri of it was asked for at the coordinator before */
  constructor(followed: boolean) {
    this.#followed = followed
  }

  /** Rises with everything worth telling. */
  get revision(): number {
    return this.#revision
  }

  /** There is something new to tell. */
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
