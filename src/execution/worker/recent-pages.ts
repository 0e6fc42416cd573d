/** The bytes of the pages that were written last, so that a fast reader needs no read from the disk. */
export interface RecentPages {
  add(path: string, bytes: Buffer): void
  get(path: string): Buffer | undefined
  remove(path: string): void
}

/** @param maxBytes limit for all pages together; the oldest are removed first */
export function createRecentPages(maxBytes: number): RecentPages {
  const pages = new Map<string, Buffer>()
  let total = 0

  function remove(path: string): void {
    const bytes = pages.get(path)
    if (!bytes) return
    pages.delete(path)
    total -= bytes.length
  }

  return {
    add(path, bytes) {
      if (bytes.length > maxBytes) return
      pages.set(path, bytes)
      total += bytes.length
      for (const oldest of pages.keys()) {
        if (total <= maxBytes) break
        remove(oldest)
      }
    },
    get: (path) => pages.get(path),
    remove,
  }
}
