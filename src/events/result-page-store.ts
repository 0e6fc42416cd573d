/** A small result page, durable before or together with the event that names it, until it is dropped. */
export interface ResultPage {
  readonly token: number
  readonly bytes: Uint8Array
}

/** Where a page lies in a store that finds it by nothing else; the event that publishes it carries this. */
export interface PageOffset {
  /** Of the pages' topic. */
  readonly partition: number
  readonly offset: number
}

/** Pages ready for the append of the event that names them. */
export interface KeptPages {
  /** One a page, in order; undefined where stream and token find it. */
  readonly places: readonly (PageOffset | undefined)[]
  /** What goes with the append itself. */
  readonly beside: readonly ResultPage[]
}

/** Small result pages of any stream. */
export interface ResultPageStore {
  /**
   * Resolves when the pages are durable, or go with the append for certain. Goes on trying while the store is away.
   * @throws LogUnavailable once it is closed
   */
  keep(stream: string, pages: readonly ResultPage[]): Promise<KeptPages>
  /**
   * @param place as the event has it
   * @returns undefined once dropped; check the hash that the event has
   * @throws LogUnavailable when that cannot be known now
   */
  read(stream: string, token: number, place: PageOffset | undefined): Promise<Uint8Array | undefined>
}
