import type { Checkpoint, Recorded } from '../event-log.ts'
import type { StreamCipher, StreamHead } from '../record-store.ts'

/** Reads streams by key, which Kafka cannot: the projection `query_events` provides them. */
export interface KafkaStreamReader {
  /** How far the projection got; undefined when there is none yet. Events below it can be read. */
  checkpoint(): Promise<Checkpoint | undefined>
  /** Resolves when the projection has passed a checkpoint. */
  reached(target: Checkpoint): Promise<void>
  /** The last event of a stream in the projection, and the projection's checkpoint, from one query. */
  head(stream: string): Promise<{ readonly head: StreamHead; readonly checkpoint: Checkpoint | undefined }>
  read(stream: string, after: number): AsyncIterable<Recorded>
  /** Names of the keys of the given events, and of the stream's forgotten events. */
  keysOf(stream: string, sequences: readonly number[]): Promise<readonly string[]>
}

/** The keys of queries, kept where they can be deleted. */
export interface KeyStore extends StreamCipher {
  open(): Promise<void>
  /** Makes the keys of these names available to `keyOf`. @throws LogUnavailable */
  loadKeys(names: Iterable<string>): Promise<void>
  /** Deletes keys for good, from all storage. @throws LogUnavailable */
  forget(names: Iterable<string>): Promise<void>
  close(): void
}

/** A request to the brokers, answered or failed. */
export interface KafkaRequest {
  readonly api: 'Produce' | 'Fetch'
  readonly milliseconds: number
  /** Absent when the request succeeded. */
  readonly error?: unknown
}
