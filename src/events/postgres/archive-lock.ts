import type pg from 'pg'
import { LogUnavailable } from '../event-log.ts'
import { LOCK_ARCHIVE } from './statements.ts'

/**
 * A lock for processes that rewrite files of a log's archive: a process that was paused may continue beside its successor.
 */
export class ArchiveLock {
  readonly #pool: pg.Pool
  /** Ends when the last holder ends. Each holder takes a connection, so this process has one holder at a time. */
  #previous: Promise<unknown> = Promise.resolve()

  constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  /** Runs work while holding the lock. @throws LogUnavailable when the database does not grant it */
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
