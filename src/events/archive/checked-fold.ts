import { hash } from 'node:crypto'
import { eventHash, readEnvelope, type StoredEnvelope } from '../envelope.ts'
import { fold, type State } from '../fold.ts'
import type { LogPosition, StoredRecord } from '../record-store.ts'
import { ArchiveDamaged } from './archived-records.ts'

/** Folds records one after another, and checks the hashes of each event. Needs no data keys. */
export class CheckedFold {
  #offset: bigint
  #state: State
  #events = 0

  constructor(from: LogPosition) {
    this.#offset = from.offset
    this.#state = from.state
  }

  get position(): LogPosition {
    return { offset: this.#offset, state: this.#state }
  }

  /** Number of events that counted. */
  get events(): number {
    return this.#events
  }

  /**
   * Folds the next record.
   * @returns the envelope of an event that counts
   * @throws ArchiveDamaged
   */
  take(record: StoredRecord): StoredEnvelope | undefined {
    if (record.offset !== this.#offset)
      throw new ArchiveDamaged(`Offset ${record.offset} comes where offset ${this.#offset} was expected`)
    const { header, stream } = record
    const envelope = header?.kind === 'event' ? readEnvelope(record.text) : undefined
    const { verdict, state } = fold(this.#state, { header, hash: envelope?.hash ?? '' })
    this.#state = state
    this.#offset++
    if (verdict !== 'valid') return undefined
    if (!envelope) throw new ArchiveDamaged(`The record at offset ${record.offset} is not an event`)
    const whole =
      envelope.hash === eventHash(stream, envelope) &&
      (envelope.forgotten === true || hash('sha256', envelope.data) === envelope.digest)
    if (!whole) throw new ArchiveDamaged(`Event ${stream}/${envelope.sequence} does not match its hash`)
    this.#events++
    return envelope
  }
}
