import type pg from 'pg'
import { LogUnavailable } from '../event-log.ts'
import { LOCK_ARCHIVE } from './statements.ts'

/** Held by whoever rewrites files of a log's archive, in whichever process: one that was paused may go on beside the next. */
export class ArchiveLock {
  readonly #pool: pg.Pool
  /** Each holds a connection: one after the other. */
  #previous: Promise<unknown> = Promise.resolve()

  constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  /** @throws LogUnavailable when the database does not give it */
  hold<T>(logId: string, work: () => Promise<T>): Promise<T> {
    const done = this.#previous.then(async () => {
      const client = await this.#pool.connect().catch(doesNotAnswer)
      try {
        await client.query(LOCK_ARCHIVE, [logId]).catch(doesNotAnswer)
        return await work()
      } finally {
        client.release(true)
      }
    })
    this.#previous = done.catch(() => {})
    return done
  }
}

function doesNotAnswer(cause: Error): never {
  throw new LogUnavailable(`The archive is not locked: ${cause.message}`, { cause })
}
