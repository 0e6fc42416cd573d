import { memoryOf } from './envelope.ts'
import { tombstoneOf, type Recorded } from './event-log.ts'
import { sameState } from './fold.ts'
import type { LogPosition } from './record-store.ts'

interface Chunk {
  readonly from: LogPosition
  readonly to: LogPosition
  readonly events: readonly Recorded[]
  readonly bytes: number
}

/** Limit of the events returned at once: a subscriber handles them in one go. */
const STEP_BYTES = 4 << 20

/**
 * The newest events that the writer of this process folded, so that subscribers in the same process need not read them
 * back.
 */
export class RecentEvents {
  readonly #chunks = new Map<bigint, Chunk>()
  readonly #maxBytes: number
  readonly #waiting = new Set<() => void>()
  #bytes = 0
  #end: bigint | undefined

  /** @param maxBytes limit of the memory for events; older chunks are read from the log again */
  constructor(maxBytes = 16 << 20) {
    this.#maxBytes = maxBytes
  }

  add(from: LogPosition, to: LogPosition, events: readonly Recorded[]): void {
    const bytes = events.reduce((sum, event) => sum + memoryOf(event), 0)
    this.#chunks.set(from.offset, { from, to, events, bytes })
    this.#bytes += bytes
    this.#end = to.offset
    for (const [offset, chunk] of this.#chunks) {
      if (this.#bytes <= this.#maxBytes) break
      this.#chunks.delete(offset)
      this.#bytes -= chunk.bytes
    }
    for (const wake of this.#waiting) wake()
  }

  /** Whole chunks from a position on, few when they are large; undefined when only the log has them. */
  after(position: LogPosition, limit: number): { events: Recorded[]; position: LogPosition } | undefined {
    const events: Recorded[] = []
    let at = position
    let bytes = 0
    for (;;) {
      const chunk = this.#chunks.get(at.offset)
      if (!chunk || !sameState(chunk.from.state, at.state) || events.length + chunk.events.length > limit) break
      if (at !== position && bytes + chunk.bytes > STEP_BYTES) break
      bytes += chunk.bytes
      events.push(...chunk.events)
      at = chunk.to
    }
    return at === position ? undefined : { events, position: at }
  }

  /** Replaces these events by tombstones for later readers. */
  forget(stream: string, isGone: (event: Recorded) => boolean): void {
    for (const [offset, chunk] of this.#chunks) {
      if (!chunk.events.some((event) => event.stream === stream)) continue
      const events = chunk.events.map((event) =>
        event.stream === stream && isGone(event) ? tombstoneOf(event) : event,
      )
      this.#chunks.set(offset, { ...chunk, events })
    }
  }

  /** Whether the writer has folded nothing beyond a position. */
  endsAt(position: LogPosition): boolean {
    return this.#end === position.offset
  }

  /** Calls back on each addition, until the returned function is called. */
  onAdd(wake: () => void): () => void {
    this.#waiting.add(wake)
    return () => this.#waiting.delete(wake)
  }
}
