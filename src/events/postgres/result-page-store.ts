import type pg from 'pg'
import { LogUnavailable } from '../event-log.ts'
import type { OutPage } from '../record-store.ts'
import { insertPagesStatement, SELECT_PAGE } from './statements.ts'

/** Result pages in Postgres for a log that is elsewhere: written before the event that names them. */
export class PostgresResultPages {
  readonly #pool: pg.Pool

  constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  async write(pages: readonly OutPage[]): Promise<void> {
    await this.#ask(() => this.#pool.query(insertPagesStatement(pages)))
  }

  /** Of several, that of the highest epoch: a valid event that names a page ends all older writers' wish to write it. */
  async read(stream: string, token: number): Promise<Uint8Array | undefined> {
    const { rows } = await this.#ask(() =>
      this.#pool.query<{ bytes: Buffer }>({ name: 'page', text: SELECT_PAGE, values: [stream, token] }),
    )
    return rows[0]?.bytes
  }

  async #ask<T>(query: () => Promise<T>): Promise<T> {
    try {
      return await query()
    } catch (cause) {
      throw new LogUnavailable(`The page store does not answer: ${(cause as Error).message}`, { cause })
    }
  }
}
