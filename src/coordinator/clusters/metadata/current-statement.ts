import { TrackedValue } from '../../../shared/tracked-value.ts'

const ofStatement = new TrackedValue<AbortSignal>()

/**
 * Reads metadata for a statement. If the statement ends, the reads that only this statement needs leave their queue. The
 * signal is tracked, because the connectors between the statement and the queue know no statements.
 * @param signal aborts when the statement ends
 */
export function readingFor<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T> {
  return ofStatement.during(signal, read)
}

/** A signal that aborts when the statement ends that reads metadata; undefined where no statement is known. */
export function currentStatement(): AbortSignal | undefined {
  return ofStatement.current
}
