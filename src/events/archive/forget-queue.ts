import type { SequencesByStream } from './archived-records.ts'

interface Waiting {
  readonly stream: string
  readonly sequences: readonly number[]
  readonly epoch: number
  readonly resolve: (found: ReadonlySet<number>) => void
  readonly reject: (error: unknown) => void
}

/**
 * Collects events that are to lose their data in an archive. One rewrite removes the events of all calls that wait for
 * it: a file has the events of a thousand queries, and is written anew as a whole.
 */
export class ForgetQueue {
  readonly #rewrite: (events: SequencesByStream, epoch: number) => Promise<SequencesByStream>
  #waiting: Waiting[] = []
  #isRewriting = false

  /** @param rewrite never runs twice at once. The epoch is that of the writer that calls `forget` */
  constructor(rewrite: (events: SequencesByStream, epoch: number) => Promise<SequencesByStream>) {
    this.#rewrite = rewrite
  }

  /** @returns the sequences that the archive has. Rejects as the rewrite does */
  forget(stream: string, sequences: readonly number[], epoch: number): Promise<ReadonlySet<number>> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ stream, sequences, epoch, resolve, reject })
      if (!this.#isRewriting) void this.#rewriteAll()
    })
  }

  async #rewriteAll(): Promise<void> {
    this.#isRewriting = true
    for (let [first] = this.#waiting; first; [first] = this.#waiting) {
      const { epoch } = first
      const together = this.#waiting.filter((one) => one.epoch === epoch)
      this.#waiting = this.#waiting.filter((one) => one.epoch !== epoch)
      try {
        const found = await this.#rewrite(joined(together), epoch)
        for (const one of together) one.resolve(found.get(one.stream) ?? new Set())
      } catch (error) {
        for (const one of together) one.reject(error)
      }
    }
    this.#isRewriting = false
  }
}

function joined(calls: readonly Pick<Waiting, 'stream' | 'sequences'>[]): SequencesByStream {
  const events = new Map<string, Set<number>>()
  for (const { stream, sequences } of calls) {
    const known = events.get(stream) ?? new Set()
    for (const sequence of sequences) known.add(sequence)
    events.set(stream, known)
  }
  return events
}
