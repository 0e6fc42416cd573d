import type { Checkpoint, Recorded } from '../event-log.ts'
import type { StreamCipher, StreamHead } from '../record-store.ts'

/** Streams by key, which Kafka does not have: the projection `query_events` serves them. */
export interface KafkaStreamReader {
  /** How far the projection is; undefined when there is none yet. Everything below can be asked for. */
  checkpoint(): Promise<Checkpoint | undefined>
  /** Resolves when the projection has passed a checkpoint. */
  reached(target: Checkpoint): Promise<void>
  /** Last event of a stream as far as the projection is, and how far that is, in one look. */
  head(stream: string): Promise<{ readonly head: StreamHead; readonly checkpoint: Checkpoint | undefined }>
  read(stream: string, after: number): AsyncIterable<Recorded>
  /** Names of the keys of some of its events, and of those that were forgotten. */
  keysOf(stream: string, sequences: readonly number[]): Promise<readonly string[]>
}

/** The keys of queries, which live where they can be deleted. */
export interface KeyStore extends StreamCipher {
  open(): Promise<void>
  /** Makes names known to `keyOf`. @throws LogUnavailable */
  loadKeys(names: Iterable<string>): Promise<void>
  /** Deletes keys for good, wherever they are kept. @throws LogUnavailable */
  forget(names: Iterable<string>): Promise<void>
  close(): void
}

/** A request to the brokers that was answered, or not. */
export interface KafkaRequest {
  readonly api: 'Produce' | 'Fetch'
  readonly milliseconds: number
  /** Absent when it was answered well. */
  readonly error?: unknown
}
