/** A small result page. It is durable before, or together with, the event that names it, until it is dropped. */
export interface ResultPage {
  readonly token: number
  readonly bytes: Uint8Array
}

/** The position of a page in a store that needs it to find the page; the event that publishes the page carries it. */
export interface PageOffset {
  /** Partition of the pages' topic. */
  readonly partition: number
  readonly offset: number
}

/** Pages that are ready for the append of the event that names them. */
export interface KeptPages {
  /** One position per page, in order; undefined when stream and token are enough to find the page. */
  readonly offsets: readonly (PageOffset | undefined)[]
  /** Pages that the append itself writes. */
  readonly beside: readonly ResultPage[]
}

/** Small result pages of any stream. */
export interface ResultPageStore {
  /**
   * Resolves when the pages are durable, or are certain to be written with the append. Goes on trying while the store
   * is away.
   * @throws LogUnavailable once the store is closed
   */
  keep(stream: string, pages: readonly ResultPage[]): Promise<KeptPages>
  /**
   * Reads a page; the caller must check the hash that the event has.
   * @param offset as the event has it
   * @returns undefined once the page was dropped
   * @throws LogUnavailable when the store cannot answer now
   */
  read(stream: string, token: number, offset: PageOffset | undefined): Promise<Uint8Array | undefined>
}
