/** Bytes of result pages in memory. Each page is also kept beside the log, so any of them may be dropped. */
export interface PageMemory {
  set(token: number, bytes: Buffer): void
  get(token: number): Buffer | undefined
  /** Drops the pages before this token: the client has passed them. */
  forgetBefore(token: number): void
  clear(): void
}

/**
 * The pages of all queries, `maxBytes` together: the oldest are dropped first, whether or not a client has fetched
 * them.
 */
export function createPageMemories(maxBytes: number): { ofQuery(): PageMemory; readonly bytes: number } {
  /** In the order of their arrival. */
  const kept = new Map<Buffer, { readonly pages: Map<number, Buffer>; readonly token: number }>()
  let total = 0

  function forget(bytes: Buffer): void {
    const held = kept.get(bytes)
    if (!held) return
    kept.delete(bytes)
    held.pages.delete(held.token)
    total -= bytes.length
  }

  return {
    get bytes() {
      return total
    },
    ofQuery() {
      const pages = new Map<number, Buffer>()
      return {
        set(token, bytes) {
          const before = pages.get(token)
          if (before) forget(before)
          pages.set(token, bytes)
          kept.set(bytes, { pages, token })
          total += bytes.length
          for (const oldest of kept.keys()) {
            if (total <= maxBytes) break
            forget(oldest)
          }
        },
        get: (token) => pages.get(token),
        forgetBefore(token) {
          for (const [own, bytes] of pages) if (own < token) forget(bytes)
        },
        clear() {
          for (const bytes of pages.values()) forget(bytes)
        },
      }
    },
  }
}
