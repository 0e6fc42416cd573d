import type { BodyParts } from '../../../shared/body-parts.ts'
import type { QueryId } from '../../../shared/ids.ts'

/** For all queries together. */
const MAX_BYTES = 32 * 1024 * 1024
/** A page is dropped if the client has not asked for it by then. */
const KEEP_MS = 5000

interface Ahead {
  readonly token: number
  readonly bytes: number
  /** Never rejects; undefined when the page could not be read. */
  readonly page: Promise<BodyParts | undefined>
  readonly timer: NodeJS.Timeout
}

/** Pages that are read while their clients still process the page before: one per query, 32 MB in all. */
export class PagesAhead {
  readonly #pages = new Map<QueryId, Ahead>()
  #bytes = 0

  /** Reads a page of this many bytes, unless it is read already or being read; drops another page of the query. */
  begin(queryId: QueryId, token: number, bytes: number, read: () => Promise<BodyParts | undefined>): void {
    if (this.#pages.get(queryId)?.token === token) return
    this.#remove(queryId)
    if (this.#bytes + bytes > MAX_BYTES) return
    this.#bytes += bytes
    const timer = setTimeout(() => this.#remove(queryId), KEEP_MS).unref()
    // The client's own request reads the page again and gets the error.
    const page = read().catch(() => undefined)
    this.#pages.set(queryId, { token, bytes, page, timer })
  }

  /** Returns the page if it was read ahead, once. */
  take(queryId: QueryId, token: number): Promise<BodyParts | undefined> | undefined {
    return this.#pages.get(queryId)?.token === token ? this.#remove(queryId) : undefined
  }

  #remove(queryId: QueryId): Promise<BodyParts | undefined> | undefined {
    const found = this.#pages.get(queryId)
    if (!found) return undefined
    this.#pages.delete(queryId)
    clearTimeout(found.timer)
    // A read under way still arrives, so its bytes count until then.
    void found.page.then(() => (this.#bytes -= found.bytes))
    return found.page
  }
}
