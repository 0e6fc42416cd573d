/** The kinds of faults that an audit can find. */
export type FindingKind =
  /** Offsets of the log without a record. */
  | 'missing-record'
  /** A record that does not count, in a store where no writer can have written one. */
  | 'not-counted'
  /** A text that is no envelope. */
  | 'unreadable'
  /** The hash is not that of the header and the digest. */
  | 'header'
  /** The stored data is not what the digest was made of. */
  | 'data'
  /** A sequence left out, taken twice, or out of order in its stream. */
  | 'sequence'
  /** `prevhash` is not the hash of the event before. */
  | 'chain'
  /** The past differs from what a later record, or a reader's checkpoint, says. */
  | 'history'
  /** The log, or an anchor in it, differs from what was signed. */
  | 'anchor'
  /** Anchors or records of a key that is not trusted and that no known key vouches for. */
  | 'unknown-key'
  /** A tombstone without an event that says so, or data that an event says is gone. */
  | 'forgotten'
  /** Encrypted data whose key is missing although it was not forgotten. */
  | 'key'
  /** A file of the archive differs from what was written, or does not follow the file before. */
  | 'archive'
  | 'query-without-end'
  | 'query-with-two-ends'
  /** A table differs from the fold of the log. */
  | 'read-model'

export interface Finding {
  readonly kind: FindingKind
  /** Absent when the stream is unknown, as for a missing record. */
  readonly stream?: string
  readonly sequence?: number
  /** `partition/offset` in the log. */
  readonly position?: string
  readonly what: string
}
