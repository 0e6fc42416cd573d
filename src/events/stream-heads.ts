import type { StreamHead } from './record-store.ts'

interface Entry {
  sequence: number
  hash: string
  /** Offset of the last folded event; -1 while all are queued. */
  offset: bigint
  /** Number of appends that are queued and not settled. */
  pending: number
}

/** The last event of each stream that the writer touched recently, queued events included. */
export class StreamHeads {
  readonly #entries = new Map<string, Entry>()
  readonly #max: number
  /** Heads of streams touched at or after this offset are here; the store must be asked for others. */
  knownFrom = 0n

  /** @param max streams to remember; forgotten ones are looked up again */
  constructor(max = 100_000) {
    this.#max = max
  }

  get(stream: string): StreamHead | undefined {
    return this.#entries.get(stream)
  }

  /** Stores a head that was found in the store, unless the stream moved meanwhile. */
  remember(stream: string, head: StreamHead): void {
    if (!this.#entries.has(stream)) this.#entries.set(stream, { ...head, offset: -1n, pending: 0 })
  }

  queued(stream: string, head: StreamHead): void {
    const entry = this.#entries.get(stream)
    if (entry) {
      entry.sequence = head.sequence
      entry.hash = head.hash
      entry.pending++
    } else this.#entries.set(stream, { ...head, offset: -1n, pending: 1 })
  }

  settled(stream: string): void {
    const entry = this.#entries.get(stream)
    if (entry) entry.pending--
  }

  /** Notes a folded event of the log. Later queued events of the stream remain its head. */
  folded(stream: string, head: StreamHead, offset: bigint): void {
    const { sequence, hash } = head
    const entry = this.#entries.get(stream)
    if (!entry) this.#entries.set(stream, { sequence, hash, offset, pending: 0 })
    else {
      if (entry.sequence < sequence) Object.assign(entry, { sequence, hash })
      entry.offset = offset
      // Moved to the end: the map keeps the order of use.
      this.#entries.delete(stream)
      this.#entries.set(stream, entry)
    }
    if (this.#entries.size > this.#max) this.#forgetOldest()
  }

  /** Sets a stream's head back: the events queued after it will not come. */
  back(stream: string, head: StreamHead): void {
    const entry = this.#entries.get(stream)
    if (entry) this.#entries.set(stream, { ...head, offset: entry.offset, pending: 0 })
  }

  forget(stream: string): void {
    this.#entries.delete(stream)
  }

  clear(): void {
    this.#entries.clear()
  }

  #forgetOldest(): void {
    for (const [stream, entry] of this.#entries) {
      if (entry.pending > 0) continue
      this.#entries.delete(stream)
      if (entry.offset >= this.knownFrom) this.knownFrom = entry.offset + 1n
      return
    }
  }
}
