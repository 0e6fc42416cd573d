import { Socket } from 'node:net'
import pg from 'pg'
import { ANSWER_TIMEOUT_MS } from './statements.ts'

/** Settings without which the log could break its guarantees. */
const SESSION = `set synchronous_commit = on; set lock_timeout = '500ms';
  set client_connection_check_interval = '1s'; set standard_conforming_strings = on`
/**
 * The server cancels an insert this long after the writer gave it up: a frozen one no longer blocks the end of the log.
 */
const GIVEN_UP_AFTER_MS = 2000
const WRITER_NAME = 'quipu-event-log-writer'
const CONNECT_TIMEOUT_MS = 1500

/** The one connection that inserts: made when needed, and dropped at the first doubt. */
export class WriterConnection {
  readonly #config: pg.ClientConfig
  #client: pg.Client | undefined
  #socket: Socket | undefined
  /** The server's time limit for one insert of this connection. */
  #limitMs = 0
  #connecting: Promise<pg.Client> | undefined
  #closed = false

  constructor(config: pg.ClientConfig) {
    this.#config = config
  }

  /** The open connection, without waiting for a promise: every append needs this. */
  get current(): pg.Client | undefined {
    return this.#client
  }

  /**
   * Sets how long inserts may take from now on. Needs Postgres 17 (`transaction_timeout`).
   * @throws the server's error; then the connection is in doubt
   */
  async allow(client: pg.Client, answerMs: number): Promise<void> {
    if (answerMs + GIVEN_UP_AFTER_MS <= this.#limitMs) return
    await client.query(`select set_config('transaction_timeout', $1, false)`, [String(answerMs + GIVEN_UP_AFTER_MS)])
    this.#limitMs = answerMs + GIVEN_UP_AFTER_MS
  }

  /** Whether inserts of this connection may already take that long. */
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
      // pg connects this socket; it is kept here to be destroyed when an answer is given up.
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

  /** Drops the connection whose answer is given up: a busy client would queue the next statement. */
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
