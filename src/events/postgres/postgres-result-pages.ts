import type pg from 'pg'
import { LogUnavailable } from '../event-log.ts'
import type { KeptPages, ResultPage, ResultPageStore } from '../result-page-store.ts'
import { SELECT_PAGE } from './statements.ts'

/** Result pages in a table beside the events; the statement of the append writes them. */
export class PostgresResultPages implements ResultPageStore {
  readonly #pool: pg.Pool

  constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  async keep(_stream: string, pages: readonly ResultPage[]): Promise<KeptPages> {
    return { offsets: pages.map(() => undefined), beside: pages }
  }

  /**
   * Reads a page. Among several copies the copy with the highest epoch counts: once a valid event names it, no older
   * writer can add one.
   */
  async read(stream: string, token: number): Promise<Uint8Array | undefined> {
    try {
      const { rows } = await this.#pool.query<{ bytes: Buffer }>({
        name: 'page',
        text: SELECT_PAGE,
        values: [stream, token],
      })
      return rows[0]?.bytes
    } catch (cause) {
      throw new LogUnavailable(`The page store does not answer: ${(cause as Error).message}`, { cause })
    }
  }
}
