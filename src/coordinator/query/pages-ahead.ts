import type { BodyParts } from '../../shared/body-parts.ts'
import type { QueryId } from '../../shared/ids.ts'

/** Of all queries together. */
const MAX_BYTES = 32 * 1024 * 1024
/** A client that has not come for its next page by then is in no hurry. */
const KEEP_MS = 5000

interface Ahead {
  readonly token: number
  readonly bytes: number
  /** Never rejects; undefined when it could not be read. */
  readonly page: Promise<BodyParts | undefined>
  readonly timer: NodeJS.Timeout
}

/** Pages that are read while their clients still take the ones before: one of each query, 32 MB of all. */
export class PagesAhead {
  readonly #pages = new Map<QueryId, Ahead>()
  #bytes = 0

  /** Reads a page of so many bytes, unless that is done or under way; another one of the query is dropped. */
  begin(queryId: QueryId, token: number, bytes: number, read: () => Promise<BodyParts | undefined>): void {
    if (this.#pages.get(queryId)?.token === token) return
    this.#remove(queryId)
    if (this.#bytes + bytes > MAX_BYTES) return
    this.#bytes += bytes
    const timer = setTimeout(() => this.#remove(queryId), KEEP_MS).unref()
    // Whoever asks for it in earnest is told why it cannot be had.
    const page = read().catch(() => undefined)
    this.#pages.set(queryId, { token, bytes, page, timer })
  }

  /** The page, when it was read ahead: once. */
  take(queryId: QueryId, token: number): Promise<BodyParts | undefined> | undefined {
    return this.#pages.get(queryId)?.token === token ? this.#remove(queryId) : undefined
  }

  #remove(queryId: QueryId): Promise<BodyParts | undefined> | undefined {
    const found = this.#pages.get(queryId)
    if (!found) return undefined
    this.#pages.delete(queryId)
    clearTimeout(found.timer)
    // What is on its way comes all the same.
    void found.page.then(() => (this.#bytes -= found.bytes))
    return found.page
  }
}
