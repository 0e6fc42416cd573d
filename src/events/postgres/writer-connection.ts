import { Socket } from 'node:net'
import pg from 'pg'
import { ANSWER_TIMEOUT_MS } from './statements.ts'

/** Settings without which a promise of the log does not hold. */
const SESSION = `set synchronous_commit = on; set lock_timeout = '500ms';
  set client_connection_check_interval = '1s'; set standard_conforming_strings = on`
/** The server gives up an insert so long after its writer has: one that is frozen holds the end of the log no longer. */
const GIVEN_UP_AFTER_MS = 2000
const WRITER_NAME = 'quipu-event-log-writer'
const CONNECT_TIMEOUT_MS = 1500

/** The one connection that inserts: made when needed, thrown away at the first doubt. */
export class WriterConnection {
  readonly #config: pg.ClientConfig
  #client: pg.Client | undefined
  #socket: Socket | undefined
  /** The server's limit for one insert of this connection. */
  #limitMs = 0
  #connecting: Promise<pg.Client> | undefined
  #closed = false

  constructor(config: pg.ClientConfig) {
    this.#config = config
  }

  /** Without a promise's turn when it is there: this is on the way of every append. */
  get current(): pg.Client | undefined {
    return this.#client
  }

  /**
   * Inserts from now on may take so long. Needs Postgres 17 (`transaction_timeout`).
   * @throws what the server says; then the connection is in doubt
   */
  async allow(client: pg.Client, answerMs: number): Promise<void> {
    if (answerMs + GIVEN_UP_AFTER_MS <= this.#limitMs) return
    await client.query(`select set_config('transaction_timeout', $1, false)`, [String(answerMs + GIVEN_UP_AFTER_MS)])
    this.#limitMs = answerMs + GIVEN_UP_AFTER_MS
  }

  /** Whether inserts of this connection may take so long already. */
  allows(answerMs: number): boolean {
    return answerMs + GIVEN_UP_AFTER_MS <= this.#limitMs
  }

  connect(): Promise<pg.Client> {
    if (this.#closed) return Promise.reject(new Error('The connection was closed'))
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined))
    return this.#connecting
  }

  async #connect(): Promise<pg.Client> {
    const socket = new Socket()
    const client = new pg.Client({
      ...this.#config,
      application_name: WRITER_NAME,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      keepAlive: true,
      // pg connects it; held here to be destroyed when an answer is given up.
      stream: () => socket,
    })
    const forget = (): void => {
      if (this.#client === client) this.#client = undefined
    }
    client.on('error', forget)
    client.on('end', forget)
    try {
      await client.connect()
      await client.query(SESSION)
      this.#limitMs = 0
      await this.allow(client, ANSWER_TIMEOUT_MS)
    } catch (error) {
      socket.destroy()
      throw error
    }
    if (this.#closed) {
      socket.destroy()
      throw new Error('The connection was closed')
    }
    this.#client = client
    this.#socket = socket
    return client
  }

  /** The answer in progress is given up: a busy client would queue what comes next. */
  drop(): void {
    const socket = this.#socket
    this.#client = undefined
    this.#socket = undefined
    socket?.destroy()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#connecting?.catch(() => {})
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => {})
    this.#socket?.destroy()
  }
}
