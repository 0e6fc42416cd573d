import { hash } from 'node:crypto'
import { eventHash, readEnvelope, type StoredEnvelope } from '../envelope.ts'
import type { Checkpoint } from '../event-log.ts'
import { fold, sameState, zeroState, type RecordHeader, type State, type Verdict } from '../fold.ts'
import type { RecordStore, StoredRecord, StreamHead } from '../record-store.ts'
import type { Finding, FindingKind } from './finding.ts'

/** A counted event as the audit passes it on; its data may have been altered. */
export interface AuditedEvent {
  readonly stream: string
  readonly envelope: StoredEnvelope
  readonly partition: number
  /** `partition/offset`. */
  readonly position: string
}

export interface AuditLogOptions {
  readonly store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag'>
  readonly partitions: number
  /** Checkpoints of the log's readers. The audit reports any that the log contradicts. */
  readonly checkpoints?: readonly { readonly name: string; readonly checkpoint: Checkpoint }[]
  /** Last events of streams that continue from an earlier log. */
  readonly heads?: ReadonlyMap<string, StreamHead>
  readonly onFinding: (finding: Finding) => void
  readonly onEvent?: (event: AuditedEvent) => void
  /** Called for every offset in order, with the fold of all records below it. */
  readonly onPosition?: (partition: number, offset: bigint, state: State) => void
}

export interface AuditedLog {
  /** Events that count. */
  readonly events: number
  readonly records: number
  /** The newest epoch. */
  readonly epoch: number
  /** Fold of each log partition, at its end when the audit began. */
  readonly checkpoint: Checkpoint
}

/** Number of recent states to keep: a record refers to an earlier state, a batch to the state at its beginning. */
const REMEMBERED_STATES = 20_000

/**
 * Reads every record of the log from the first, with the fold that all readers use, and reports what does not fit. Goes
 * on after a finding: it takes a state that it can no longer know from the next record, so one change is reported once
 * or twice and not for all later records.
 * @throws LogUnavailable
 */
export async function auditLog(options: AuditLogOptions): Promise<AuditedLog> {
  const walks = []
  for (let partition = 0; partition < options.partitions; partition++) {
    const walk = new PartitionAudit(options, partition)
    await walk.run()
    walks.push(walk)
  }
  return {
    events: walks.reduce((sum, walk) => sum + walk.state.count, 0),
    records: walks.reduce((sum, walk) => sum + walk.records, 0),
    epoch: Math.max(0, ...walks.map((walk) => walk.state.epoch)),
    checkpoint: { logId: '', at: walks.map((walk) => ({ offset: walk.offset, state: walk.state })) },
  }
}

class PartitionAudit {
  state: State = zeroState
  offset = 0n
  records = 0
  readonly #options: AuditLogOptions
  readonly #partition: number
  readonly #heads: Map<string, StreamHead>
  /** The state at each of the newest offsets. */
  readonly #states = new Map<bigint, State>()
  /** Count and hash are unknown at offsets from here on, until a record gives them; undefined: they are known. */
  #damagedAt: bigint | undefined
  /** Whether the last record claimed to have seen offsets beyond itself: a run of such records is one finding. */
  #ahead = false

  constructor(options: AuditLogOptions, partition: number) {
    this.#options = options
    this.#partition = partition
    this.#heads = new Map(options.heads)
  }

  async run(): Promise<void> {
    const { store } = this.#options
    const end = await store.end(this.#partition)
    this.#remember()
    while (this.offset < end) {
      const records = (await store.fetch(this.#partition, this.offset, 1000)).filter((one) => one.offset < end)
      if (records.length === 0) {
        this.#find('missing-record', undefined, `${end - this.offset} records are missing at the end of the log`)
        this.offset = end
        break
      }
      for (const record of records) this.#take(record)
    }
    for (const { name, checkpoint } of this.#options.checkpoints ?? []) {
      const position = checkpoint.at[this.#partition]
      if (position && position.offset > end)
        this.#find(
          'missing-record',
          undefined,
          `The log ends before offset ${position.offset}, but ${name} had read that far`,
        )
    }
  }

  #take(record: StoredRecord): void {
    this.records++
    const missing = record.offset - this.offset
    if (missing > 0n) {
      this.#find('missing-record', undefined, missing === 1n ? 'A record is missing' : `${missing} records are missing`)
      this.#damagedAt = record.offset
      this.offset = record.offset
    }
    const { header } = record
    const envelope = header?.kind === 'event' ? readEnvelope(record.text) : undefined
    if (header) this.#compareSeen(record, header, envelope)
    const before = this.state
    let folded = fold(before, { header, hash: envelope?.hash ?? '' })
    if (header && isOutOfOrder(folded.verdict, header, before) && (missing > 0n || this.#refusesOthers())) {
      // Its writer could not have written it here: the records before it are gone or were moved. From here on its
      // header is believed.
      if (missing === 0n) this.#notCounted(folded.verdict, record, envelope)
      this.#damagedAt ??= record.offset
      const { epoch, writer, number } = header
      folded = fold({ ...before, epoch, writer, number: number - 1 }, { header, hash: envelope?.hash ?? '' })
    } else if (folded.verdict !== 'valid' && folded.verdict !== 'epoch' && this.#refusesOthers()) {
      this.#notCounted(folded.verdict, record, envelope)
    }
    this.state = folded.state
    if (folded.verdict === 'valid' && header) {
      if (envelope) this.#event(record, header, envelope)
      else this.#find('unreadable', { record }, 'The record is not an event')
    }
    this.offset++
    this.#remember()
  }

  /** Whether only a writer that knows the store's end can write. Then every record must count. */
  #refusesOthers(): boolean {
    return !this.#options.store.endMayLag
  }

  #notCounted(verdict: Verdict, record: StoredRecord, envelope: StoredEnvelope | undefined): void {
    this.#find(
      'not-counted',
      { record, envelope },
      `The record was not written by a writer of the log: the fold says ${verdict}`,
    )
  }

  #compareSeen(record: StoredRecord, header: RecordHeader, envelope: StoredEnvelope | undefined): void {
    const { offset, state: seen } = header.seen
    const at = { record, envelope }
    if (offset > this.offset) {
      if (!this.#ahead)
        this.#find(
          'history',
          at,
          `Its writer claims to have seen the log up to offset ${offset}, beyond the record itself`,
        )
      this.#ahead = true
      this.#adopt(seen)
      return
    }
    this.#ahead = false
    const ours = this.#states.get(offset)
    if (!ours) return
    const damaged = this.#damagedAt
    if (damaged !== undefined && offset >= damaged) {
      if (offset < this.offset) return
      this.#damagedAt = undefined
      this.#adopt(seen)
      return
    }
    // A record of a fenced writer may be right or wrong about the past: it does not count.
    if (sameState(ours, seen) || (header.kind === 'event' && header.epoch < this.state.epoch)) return
    const counts = ours.count === seen.count ? 'the same number of' : `${ours.count} instead of ${seen.count}`
    this.#find(
      'history',
      at,
      `Below offset ${offset} are ${counts} events, which differ from the events that its writer saw`,
    )
    if (offset === this.offset) this.#adopt(seen)
    else this.#damagedAt = this.offset
  }

  #adopt(seen: State): void {
    this.state = seen
    this.#states.set(this.offset, seen)
  }

  #event(record: StoredRecord, header: RecordHeader, envelope: StoredEnvelope): void {
    const { stream } = record
    const at = { record, envelope }
    const made = eventHash(stream, envelope)
    if (made !== envelope.hash) this.#find('header', at, 'Its hash does not match its header and digest')
    else if (envelope.epoch !== header.epoch)
      this.#find('header', at, `The event says epoch ${envelope.epoch}, but its record says epoch ${header.epoch}`)
    else if (record.sequence !== undefined && record.sequence !== envelope.sequence)
      this.#find(
        'header',
        at,
        `The event says sequence ${envelope.sequence}, but its record says sequence ${record.sequence}`,
      )
    if (!envelope.forgotten && hash('sha256', envelope.data) !== envelope.digest)
      this.#find('data', at, 'Its data does not match its digest')
    const head = this.#heads.get(stream) ?? { sequence: 0, hash: '' }
    if (envelope.sequence !== head.sequence + 1)
      this.#find('sequence', at, `It follows sequence ${head.sequence} of its stream`)
    else if (envelope.prevhash !== head.hash)
      this.#find('chain', at, 'Its prevhash is not the hash of the event before it')
    this.#heads.set(stream, { sequence: envelope.sequence, hash: envelope.hash })
    this.#options.onEvent?.({
      stream,
      envelope,
      partition: this.#partition,
      position: `${this.#partition}/${record.offset}`,
    })
  }

  #remember(): void {
    this.#states.set(this.offset, this.state)
    this.#states.delete(this.offset - BigInt(REMEMBERED_STATES))
    this.#options.onPosition?.(this.#partition, this.offset, this.state)
    for (const { name, checkpoint } of this.#options.checkpoints ?? []) {
      const position = checkpoint.at[this.#partition]
      if (position?.offset === this.offset && this.#damagedAt === undefined && !sameState(position.state, this.state))
        this.#find(
          'history',
          undefined,
          `The events below offset ${position.offset} differ from the events that ${name} had read`,
        )
    }
  }

  #find(
    kind: FindingKind,
    at: { record: StoredRecord; envelope?: StoredEnvelope | undefined } | undefined,
    what: string,
  ): void {
    const position = `${this.#partition}/${at?.record.offset ?? this.offset}`
    const sequence = at?.envelope?.sequence
    this.#options.onFinding({
      kind,
      ...(at && { stream: at.record.stream }),
      ...(sequence !== undefined && { sequence }),
      position,
      what,
    })
  }
}

/** Whether an event skips numbers of its writer, or its writer had not yet claimed. */
function isOutOfOrder(verdict: Verdict, header: RecordHeader, state: State): boolean {
  return verdict === 'gap' || (verdict === 'stale' && header.kind === 'event' && header.epoch > state.epoch)
}
