import pg from 'pg'
import { nodeCode } from '../../shared/node-error.ts'
import { sqlStateOf } from './database-error.ts'

type OnConnection = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: unknown) => void,
) => void

/**
 * A pool that does not mistake its own queue for an outage. A caller waits for a connection as long as the database
 * answers earlier callers. The caller gets an error only if the database answers none of them within
 * `connectionTimeoutMillis`.
 */
export class PatientPool extends pg.Pool {
  /** When the database last answered a caller, monotonic milliseconds. */
  #answeredAt = -Infinity

  constructor(config: pg.PoolConfig) {
    super(config)
    this.on('release', (error: Error | undefined) => {
      if (!error || sqlStateOf(error) !== undefined) this.#answeredAt = performance.now()
    })
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: OnConnection): void
  override connect(callback?: OnConnection): Promise<pg.PoolClient> | void {
    if (!callback)
      return new Promise((resolve, reject) => {
        this.connect((error, client) => (client ? resolve(client) : reject(error!)))
      })
    const askedAt = performance.now()
    super.connect((error, client, done) => {
      const isBusy = this.#answeredAt > askedAt && nodeCode(error) === undefined
      if (error && isBusy && !this.ending) this.connect(callback)
      else callback(error, client, done)
    })
  }
}
