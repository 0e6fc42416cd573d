import type { IncomingHttpHeaders } from 'node:http'
import { run, trinoHeaders } from './statement-client.ts'

const FIRST_USER = trinoHeaders['x-trino-user']

/** A client's session: it keeps what answers change, as published clients do. */
export class ToolSession {
  readonly #base: string
  #transaction = 'NONE'
  #user: string = FIRST_USER
  #catalog: string | undefined
  #schema: string | undefined
  readonly #prepared = new Map<string, string>()
  readonly #properties = new Map<string, string>()

  constructor(base: string) {
    this.#base = base
  }

  /** Goes on without the open transaction. */
  reconnect(): void {
    this.#transaction = 'NONE'
  }

  /**
   * Runs a statement. @returns `answered`, or the name of its error
   * @param catalog of the session for this statement; else the catalog of the last USE
   */
  async end(
    sql: string,
    catalog = this.#catalog,
    schema = catalog === this.#catalog ? this.#schema : undefined,
  ): Promise<string> {
    const { 'x-trino-catalog': _c, 'x-trino-schema': _s, ...headers } = trinoHeaders
    const { error, last } = await run(this.#base, sql, {
      ...headers,
      'x-trino-user': this.#user,
      'x-trino-transaction-id': this.#transaction,
      ...(catalog !== undefined && { 'x-trino-catalog': catalog }),
      ...(schema !== undefined && { 'x-trino-schema': schema }),
      'x-trino-prepared-statement': [...this.#prepared].map(([name, text]) => `${name}=${text}`),
      'x-trino-session': [...this.#properties].map(([name, value]) => `${name}=${value}`),
    })
    this.#keep(last.headers)
    return error?.errorName ?? 'answered'
  }

  #keep(headers: IncomingHttpHeaders): void {
    const text = (name: string): string | undefined => {
      const value = headers[`x-trino-${name}`]
      return value === undefined ? undefined : String(value)
    }
    const pair = (name: string): readonly [string, string] | undefined => {
      const [, key, value] = /^([^=]*)=(.*)$/s.exec(text(name) ?? '') ?? []
      return key === undefined ? undefined : [key, value!]
    }
    this.#transaction = text('started-transaction-id') ?? (text('clear-transaction-id') ? 'NONE' : this.#transaction)
    this.#user = text('set-authorization-user') ?? (text('reset-authorization-user') ? FIRST_USER : this.#user)
    this.#catalog = text('set-catalog') ?? this.#catalog
    this.#schema = text('set-schema') ?? this.#schema
    const prepared = pair('added-prepare')
    if (prepared) this.#prepared.set(...prepared)
    this.#prepared.delete(text('deallocated-prepare') ?? '')
    const property = pair('set-session')
    if (property) this.#properties.set(...property)
    this.#properties.delete(text('clear-session') ?? '')
  }
}
