import { setTimeout as sleep } from 'node:timers/promises'
import type { RemoteFigures } from '../../clusters/relay/remote-figures.ts'

/** How long the request for the figures of a finished query may take, milliseconds. */
const FIGURES_MS = 1_000

/**
 * The figures of a query at its cluster. The cluster often says that the query has finished before it gives its last
 * answer. The figures are then read meanwhile, so that the last answer does not wait for them.
 */
export class FiguresAtEnd {
  readonly #ask: () => Promise<RemoteFigures | undefined>
  #early: Promise<RemoteFigures | undefined> | undefined

  constructor(ask: () => Promise<RemoteFigures | undefined>) {
    this.#ask = ask
  }

  /** Begins to read the figures: the query has finished. */
  begin(): void {
    this.#early ??= this.#asked()
  }

  /** Resolves with the figures, after the last answer; undefined where the cluster does not give them in time. */
  async read(): Promise<RemoteFigures | undefined> {
    if (!this.#early) return this.#asked()
    const early = await this.#early
    return early && early.state !== 'FINISHED' ? this.#asked() : early
  }

  async #asked(): Promise<RemoteFigures | undefined> {
    return Promise.race([this.#ask().catch(() => undefined), sleep(FIGURES_MS, undefined, { ref: false })])
  }
}
