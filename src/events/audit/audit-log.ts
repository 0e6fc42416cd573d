import { hash } from 'node:crypto'
import { eventHash, readEnvelope, type StoredEnvelope } from '../envelope.ts'
import type { Checkpoint } from '../event-log.ts'
import { fold, sameState, zeroState, type RecordHeader, type State, type Verdict } from '../fold.ts'
import type { RecordStore, StoredRecord, StreamHead } from '../record-store.ts'
import type { Finding, FindingKind } from './finding.ts'

/** A counted event as the audit passes it on, its data perhaps altered. */
export interface AuditedEvent {
  readonly stream: string
  readonly envelope: StoredEnvelope
  readonly partition: number
  /** `partition/offset`. */
  readonly place: string
}

export interface AuditLogOptions {
  readonly store: Pick<RecordStore, 'fetch' | 'end' | 'endMayLag'>
  readonly partitions: number
  /** What readers of the log remember of it; each must be what the log still says. */
  readonly checkpoints?: readonly { readonly name: string; readonly checkpoint: Checkpoint }[]
  /** Last events of streams that go on from a log before. */
  readonly heads?: ReadonlyMap<string, StreamHead>
  readonly onFinding: (finding: Finding) => void
  readonly onEvent?: (event: AuditedEvent) => void
  /** Told of every offset in order, and what all below it fold to. */
  readonly onPlace?: (partition: number, offset: bigint, state: State) => void
}

export interface AuditedLog {
  /** Events that count. */
  readonly events: number
  readonly records: number
  /** The newest epoch. */
  readonly epoch: number
  /** Fold of each log partition, at the end it had when the audit began. */
  readonly checkpoint: Checkpoint
}

/** States that a record may refer back to; a batch refers to its own beginning. */
const REMEMBERED_STATES = 20_000

/**
 * Walks every record of the log from the first, with the fold that all readers use, and reports what does not fit. It goes
 * on behind a finding: what it cannot know from there it takes from the next record, so that one change is told once or
 * twice and not for all that follows.
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
  /** The state at each offset, the newest of them. */
  readonly #states = new Map<bigint, State>()
  /** Count and hash are not known at offsets above this until a record tells them; undefined: they are. */
  #damagedAt: bigint | undefined
  /** A run of records that saw what lies beyond them is one finding. */
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
      const place = checkpoint.at[this.#partition]
      if (place && place.offset > end)
        this.#find('missing-record', undefined, `The log ends before offset ${place.offset}, which ${name} had read`)
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
      // Its writer could not have come here: what it follows is gone or was moved. From here on it is believed.
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
      else this.#find('unreadable', { record }, 'The record is no event')
    }
    this.offset++
    this.#remember()
  }

  /** Whether the store lets nobody write but who knows its end: then every record counts. */
  #refusesOthers(): boolean {
    return !this.#options.store.endMayLag
  }

  #notCounted(verdict: Verdict, record: StoredRecord, envelope: StoredEnvelope | undefined): void {
    this.#find('not-counted', { record, envelope }, `The record was put here by no writer: it folds as ${verdict}`)
  }

  #compareSeen(record: StoredRecord, header: RecordHeader, envelope: StoredEnvelope | undefined): void {
    const { offset, state: seen } = header.seen
    const at = { record, envelope }
    if (offset > this.offset) {
      if (!this.#ahead)
        this.#find('history', at, `Its writer saw the log up to offset ${offset}, beyond the record itself`)
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
    // A record of a writer out of office may tell the truth or not: it does not count.
    if (sameState(ours, seen) || (header.kind === 'event' && header.epoch < this.state.epoch)) return
    const counts = ours.count === seen.count ? 'the same number of' : `${ours.count} instead of ${seen.count}`
    this.#find('history', at, `Below offset ${offset} are ${counts} events, other than those its writer saw`)
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
    if (made !== envelope.hash) this.#find('header', at, 'Its hash is not that of its header and digest')
    else if (envelope.epoch !== header.epoch)
      this.#find('header', at, `It says epoch ${envelope.epoch}, its record epoch ${header.epoch}`)
    else if (record.sequence !== undefined && record.sequence !== envelope.sequence)
      this.#find('header', at, `It says sequence ${envelope.sequence}, its record sequence ${record.sequence}`)
    if (!envelope.forgotten && hash('sha256', envelope.data) !== envelope.digest)
      this.#find('data', at, 'Its data is not what was digested')
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
      place: `${this.#partition}/${record.offset}`,
    })
  }

  #remember(): void {
    this.#states.set(this.offset, this.state)
    this.#states.delete(this.offset - BigInt(REMEMBERED_STATES))
    this.#options.onPlace?.(this.#partition, this.offset, this.state)
    for (const { name, checkpoint } of this.#options.checkpoints ?? []) {
      const place = checkpoint.at[this.#partition]
      if (place?.offset === this.offset && this.#damagedAt === undefined && !sameState(place.state, this.state))
        this.#find('history', undefined, `Below offset ${place.offset} are other events than ${name} had read`)
    }
  }

  #find(
    kind: FindingKind,
    at: { record: StoredRecord; envelope?: StoredEnvelope | undefined } | undefined,
    what: string,
  ): void {
    const place = `${this.#partition}/${at?.record.offset ?? this.offset}`
    const sequence = at?.envelope?.sequence
    this.#options.onFinding({
      kind,
      ...(at && { stream: at.record.stream }),
      ...(sequence !== undefined && { sequence }),
      place,
      what,
    })
  }
}

/** An event ahead of what its writer had written, or of a writer who had not yet claimed. */
function isOutOfOrder(verdict: Verdict, header: RecordHeader, state: State): boolean {
  return verdict === 'gap' || (verdict === 'stale' && header.kind === 'event' && header.epoch > state.epoch)
}
