import { AsyncLocalStorage } from 'node:async_hooks'

const current = new AsyncLocalStorage<AbortSignal>()
let within = 0

/**
 * Reads metadata for a statement. If the statement ends, the reads that only this statement needs leave their queue. The
 * runtime tracks the statement, because the connectors between the statement and the queue know no statements. The
 * tracking is on only while such a read runs, because it makes each `await` of the process slower.
 * @param signal aborts when the statement ends
 */
export async function readingFor<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T> {
  within++
  try {
    return await current.run(signal, read)
  } finally {
    if (--within === 0) current.disable()
  }
}

/** A signal that aborts when the statement ends that reads metadata; undefined where no statement is known. */
export function currentStatement(): AbortSignal | undefined {
  return within > 0 ? current.getStore() : undefined
}
