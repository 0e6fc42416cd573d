import { keyNameOf, openData } from '../envelope.ts'
import { LogChanged } from '../event-log.ts'
import type { KeySource } from '../record-store.ts'
import type { AuditedEvent } from './audit-log.ts'
import type { Finding } from './finding.ts'

/** The keys of a log's queries, as an audit sees them. */
export interface AuditedKeys extends KeySource {
  encrypts(stream: string): boolean
  stateOf(name: string): 'held' | 'forgotten' | 'missing'
}

export type DataLeft = 'there' | 'forgotten' | 'key missing'

/**
 * Decrypts data while an audit reads the log. Anyone who can write the log can compute hashes; only a holder of the
 * keys can write data that decrypts.
 */
export class EncryptedData {
  readonly #keys: AuditedKeys | undefined
  readonly #onFinding: (finding: Finding) => void
  /**
   * Whether an encrypted event was seen. A log that is older than encryption begins with unencrypted data; later data
   * must be encrypted.
   */
  #begun = false

  /** @param keys absent: encrypted data is assumed to be there */
  constructor(keys: AuditedKeys | undefined, onFinding: (finding: Finding) => void) {
    this.#keys = keys
    this.#onFinding = onFinding
  }

  /** Whether an event's data is there; reports data that does not decrypt. */
  take({ stream, envelope, position }: AuditedEvent): DataLeft {
    if (envelope.forgotten) return 'forgotten'
    if (!this.#keys) return 'there'
    const isOfStream = this.#keys.encrypts(stream)
    const find = (what: string): void =>
      this.#onFinding({ kind: 'data', stream, sequence: envelope.sequence, position, what })
    const name = keyNameOf(envelope.enc)
    if (name === undefined) {
      if (this.#begun && isOfStream) find('Its data is not encrypted, but the data of earlier events is')
      return 'there'
    }
    // In other streams only some events are encrypted.
    if (isOfStream) this.#begun = true
    const state = this.#keys.stateOf(name)
    if (state === 'missing') return 'key missing'
    if (state === 'forgotten') return 'forgotten'
    try {
      openData(stream, envelope, this.#keys)
    } catch (error) {
      if (!(error instanceof LogChanged)) throw error
      find(`Its data was not encrypted with key ${name}, although it names this key`)
    }
    return 'there'
  }
}
