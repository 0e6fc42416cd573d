/** Bytes of result pages at hand: of what is kept beside the log as well, so that any may be forgotten. */
export interface PageMemory {
  set(token: number, bytes: Buffer): void
  get(token: number): Buffer | undefined
  /** Pages before this token are passed. */
  forgetBefore(token: number): void
  clear(): void
}

/** The pages of all queries, `maxBytes` together: those that came first go first, whether anybody fetched them or not. */
export function createPageMemories(maxBytes: number): { ofQuery(): PageMemory; readonly bytes: number } {
  /** In the order in which they came. */
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
