import { createHmac, randomBytes } from 'node:crypto'

/** Values that were verified lately. It holds no secret, only digests by a key that this process alone has. */
export interface VerifiedCache<T> {
  get(parts: readonly string[]): T | undefined
  set(parts: readonly string[], value: T, forMs: number): void
  clear(): void
}

export function createVerifiedCache<T>(most: number, now: () => number): VerifiedCache<T> {
  const key = randomBytes(32)
  /** In the order of insertion. */
  const known = new Map<string, { readonly value: T; readonly until: number }>()
  const digest = (parts: readonly string[]): string =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64')
  return {
    get(parts) {
      const id = digest(parts)
      const found = known.get(id)
      if (found && found.until > now()) return found.value
      if (found) known.delete(id)
      return undefined
    },
    set(parts, value, forMs) {
      const id = digest(parts)
      known.delete(id)
      if (known.size >= most) known.delete(known.keys().next().value!)
      known.set(id, { value, until: now() + forMs })
    },
    clear: () => known.clear(),
  }
}
