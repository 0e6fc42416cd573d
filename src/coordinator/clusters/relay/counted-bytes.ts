/** Counts bytes as held. @returns a function that releases them @throws EngineError if there is no memory */
export type HoldBytes = (bytes: number) => () => void

/** Bytes are counted in steps of this size. The first step is not counted: each statement has it. */
const STEP_BYTES = 64 * 1024

/** Counts the bytes of one answer that are in memory besides its rows. */
export class CountedBytes {
  readonly #hold: HoldBytes | undefined
  readonly #releases: (() => void)[] = []

  /** @param hold undefined: nothing is counted */
  constructor(hold: HoldBytes | undefined) {
    this.#hold = hold
  }

  /** @throws EngineError if there is no memory for this number of bytes */
  grow(bytes: number): void {
    while (this.#hold && bytes > (this.#releases.length + 1) * STEP_BYTES) this.#releases.push(this.#hold(STEP_BYTES))
  }

  release(): void {
    for (const release of this.#releases.splice(0)) release()
  }
}
