import { conflicts, type TableChange } from '../../../connectors/spi/table-writer.ts'

/**
 * Keeps changes of the same object apart: one change at a time checks its names, makes its decision valid and carries
 * it out, so that a decided change cannot be made impossible by another. Changes of all queries go through the one
 * coordinator that may write the event log.
 */
export interface WriteGuard {
  /**
   * Resolves when no conflicting change is under way; earlier changes go first. The returned function lets the next one
   * in. Rejects with the signal's reason when it is aborted before; the change then leaves the line.
   */
  enter(catalog: string, change: TableChange, signal: AbortSignal): Promise<() => void>
  /** Enters at once, for a change that an earlier coordinator has decided. Only before `open`. */
  resume(catalog: string, change: TableChange): () => void
  /** Lets new changes enter: all changes that were decided before are under way. */
  open(): void
}

interface Entry {
  readonly catalog: string
  readonly change: TableChange
}

export function createWriteGuard(): WriteGuard {
  const inside = new Set<Entry>()
  let waiting: { readonly entry: Entry; readonly go: () => void }[] = []
  let isOpen = false

  function hold(entry: Entry): () => void {
    inside.add(entry)
    return () => {
      if (inside.delete(entry)) admit()
    }
  }

  function admit(): void {
    if (!isOpen) return
    const still: typeof waiting = []
    for (const one of waiting) {
      const before = [...inside, ...still.map(({ entry }) => entry)]
      if (before.some((other) => disturbs(other, one.entry))) still.push(one)
      else {
        inside.add(one.entry)
        one.go()
      }
    }
    waiting = still
  }

  return {
    enter(catalog, change, signal) {
      const entry = { catalog, change }
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const gone = (): void => {
          waiting = waiting.filter((one) => one.entry !== entry)
          reject(signal.reason)
          admit()
        }
        signal.addEventListener('abort', gone)
        const go = (): void => {
          signal.removeEventListener('abort', gone)
          resolve(hold(entry))
        }
        waiting.push({ entry, go })
        admit()
      })
    },
    resume: (catalog, change) => hold({ catalog, change }),
    open() {
      isOpen = true
      admit()
    },
  }
}

function disturbs(a: Entry, b: Entry): boolean {
  return a.catalog === b.catalog && conflicts(a.change, b.change)
}
