import type { Member } from './pool-members.ts'

const WATCH_MS = 50
const IDLE_WATCH_MS = 500

/** Checks all processes of a pool regularly, more often while something runs: memory, heartbeats, figures. */
export class PoolWatch {
  readonly #members: Iterable<Member>
  readonly #deadAfterMs: number
  #timer: NodeJS.Timeout | undefined
  #due = 0

  constructor(members: Iterable<Member>, deadAfterMs: number) {
    this.#members = members
    this.#deadAfterMs = deadAfterMs
  }

  start(): void {
    this.#lookIn(IDLE_WATCH_MS)
  }

  /** Shortens the idle interval, because a statement runs now. */
  soon(): void {
    if (this.#due - performance.now() > WATCH_MS) this.#lookIn(WATCH_MS)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #check(): void {
    const now = performance.now()
    // If this process itself was stopped or busy, beats are still unread: the silence is its own fault. The next round
    // decides.
    const stalled = now - this.#due > IDLE_WATCH_MS
    let busy = false
    for (const { engine, child, ready } of this.#members) {
      if (!stalled) {
        if (engine) engine.watch(now)
        else if (ready && now - child.lastBeat() > this.#deadAfterMs) child.kill()
      }
      if (engine && engine.running() > 0) busy = true
    }
    this.#lookIn(busy || stalled ? WATCH_MS : IDLE_WATCH_MS)
  }

  #lookIn(delay: number): void {
    clearTimeout(this.#timer)
    this.#due = performance.now() + delay
    this.#timer = setTimeout(() => this.#check(), delay)
  }
}
