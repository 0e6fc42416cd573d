import { memoryOf, readEnvelope, toRecorded } from './envelope.ts'
import { LogChanged, type Checkpoint, type ReadFrom, type Recorded } from './event-log.ts'
import { fold as trueFold, sameState, zeroState, type Fold, type State, type Verdict } from './fold.ts'
import type { LogPosition, RecordStore, StoredRecord } from './record-store.ts'

/** The data of a claim record, besides its header. */
export interface ClaimData {
  readonly time: string
  readonly epoch: number
  readonly writer: string
  readonly partitions: number
  readonly logId: string
  readonly address: string
  readonly version: string
}

interface FirstClaim extends Pick<ClaimData, 'logId' | 'partitions'> {
  /** Undefined when the claim record is archived. */
  readonly epoch: number | undefined
}

export interface FoldedRecords {
  readonly events: Recorded[]
  readonly position: LogPosition
  /** Latest time of records that count; '' when there was none. */
  readonly lastTime: string
}

export type OnVerdict = (verdict: Verdict, record: StoredRecord, event: Recorded | undefined) => void

/**
 * Limit of the events in one step, in bytes of memory: a thousand events that are small in the log may unpack to
 * gigabytes.
 */
const MAX_FOLDED_BYTES = 8 << 20

/** The part of a store that reading needs. */
type ReadStore = Pick<RecordStore, 'fetch' | 'end' | 'start' | 'cipher'>

/** Reads a log partition by folding it, from any offset. */
export class LogReader {
  readonly #store: ReadStore
  readonly #fold: Fold
  readonly #verified = new WeakSet<ReadFrom>()
  #first: FirstClaim | undefined

  constructor(store: ReadStore, fold: Fold = trueFold) {
    this.#store = store
    this.#fold = fold
  }

  /** The first claim of the log, which names the log; undefined while there is none. */
  async firstClaim(): Promise<FirstClaim | undefined> {
    if (this.#first) return this.#first
    // The claim record may be archived; the log's start then has its fields.
    const begun = await this.#store.start?.()
    if (begun) this.#first = { logId: begun.logId, partitions: begun.at.length, epoch: undefined }
    for (let offset = 0n; !this.#first;) {
      const records = await this.#store.fetch(0, offset, offset === 0n ? 1 : 1000)
      if (records.length === 0) return undefined
      const claim = records.find((record) => record.header?.kind === 'epoch')
      if (claim) this.#first = readClaim(claim.text)
      offset = records.at(-1)!.offset + 1n
    }
    return this.#first
  }

  async logId(): Promise<string> {
    return (await this.firstClaim())?.logId ?? ''
  }

  /** Marks a checkpoint that this process folded itself: it needs no proof later. */
  trust(checkpoint: Checkpoint): Checkpoint {
    this.#verified.add(checkpoint)
    return checkpoint
  }

  /**
   * Completes bare offsets, and proves a checkpoint against the log as it is now.
   * @throws LogChanged when the log is another one, shorter, or has another past
   */
  async begin(from: ReadFrom): Promise<Checkpoint> {
    if (this.#verified.has(from)) return from as Checkpoint
    const logId = await this.logId()
    if (from.logId !== '' && from.logId !== logId)
      throw new LogChanged(`The checkpoint belongs to log ${from.logId}; this is log ${logId || '(empty)'}`)
    const at = await Promise.all(
      from.at.map(async ({ offset, state }, partition) => {
        if (offset > (await this.#store.end(partition)))
          throw new LogChanged(`The log ends before offset ${offset} of the checkpoint: a part of it is lost`)
        const found = await this.stateAt(partition, offset)
        if (state && !sameState(state, found))
          throw new LogChanged(`The log below offset ${offset} differs from what the checkpoint saw`)
        return { offset, state: found }
      }),
    )
    return this.trust({ logId, at })
  }

  /**
   * The state at an offset. Taken from the state that the record there names as seen by its writer, or the last such
   * record before it.
   */
  async stateAt(partition: number, offset: bigint): Promise<State> {
    return (await this.coldPosition(partition, offset)).position.state
  }

  async coldPosition(partition: number, offset: bigint): Promise<FoldedRecords> {
    const start = await this.#seenAtOrBefore(partition, offset)
    let folded: FoldedRecords = { events: [], position: start, lastTime: '' }
    while (folded.position.offset < offset) {
      const records = await this.#store.fetch(partition, folded.position.offset, 1000)
      const below = records.filter((record) => record.offset < offset)
      if (below.length === 0) throw new LogChanged(`Offset ${folded.position.offset} of the log is missing`)
      const next = this.foldRecords(partition, folded.position, below)
      folded = { ...next, lastTime: next.lastTime > folded.lastTime ? next.lastTime : folded.lastTime }
    }
    return folded
  }

  async #seenAtOrBefore(partition: number, offset: bigint): Promise<LogPosition> {
    for (let at = offset; at >= 0n; at--) {
      const [record] = await this.#store.fetch(partition, at, 1)
      // The record at the offset itself helps only when its writer's position does not lie beyond the offset.
      if (record?.offset === at && record.header && record.header.seen.offset <= offset) {
        const seen = record.header.seen
        // A record before the offset is folded again, so that its time is known.
        return seen.offset === offset ? seen : await this.#notBelowStart(partition, seen, offset)
      }
    }
    return { offset: 0n, state: zeroState }
  }

  /** A batch may be cut by the log's start. Its writer's position is then archived, and reading begins at the start. */
  async #notBelowStart(partition: number, seen: LogPosition, offset: bigint): Promise<LogPosition> {
    const start = (await this.#store.start?.())?.at[partition]
    return start && start.offset > seen.offset && start.offset <= offset ? start : seen
  }

  /**
   * Reads one step from a position: at most `limit` records, fewer when they are large. At the end of the log the
   * position stays.
   */
  async step(partition: number, from: LogPosition, limit: number): Promise<FoldedRecords> {
    return this.foldRecords(partition, from, await this.#store.fetch(partition, from.offset, limit))
  }

  /**
   * Folds records from a position on, and checks them against each other: the states that their writers saw, and that
   * no stored byte changed. Stops before the last record when the events take much memory: the returned position says
   * where.
   * @throws LogChanged
   */
  foldRecords(partition: number, from: LogPosition, records: readonly StoredRecord[], on?: OnVerdict): FoldedRecords {
    const states: State[] = [from.state]
    const events: Recorded[] = []
    let state = from.state
    let offset = from.offset
    let lastTime = ''
    let bytes = 0
    for (const record of records) {
      if (bytes >= MAX_FOLDED_BYTES) break
      if (record.offset !== offset) throw new LogChanged(`Offset ${offset} of the log is missing`)
      const { header } = record
      const envelope = header?.kind === 'event' ? readEnvelope(record.text) : undefined
      const folded = this.#fold(state, { header, hash: envelope?.hash ?? '' })
      const counts = folded.verdict === 'valid' || folded.verdict === 'epoch'
      if (folded.verdict === 'valid' && !envelope) throw new LogChanged('A valid record of the log is not an event')
      if (header && counts && header.seen.offset >= from.offset && header.seen.offset <= offset) {
        const ours = states[Number(header.seen.offset - from.offset)]!
        if (!sameState(ours, header.seen.state))
          throw new LogChanged(`The log below offset ${header.seen.offset} was altered`)
      }
      state = folded.state
      const event =
        folded.verdict === 'valid' && envelope
          ? toRecorded(record.stream, envelope, { partition, offset }, this.#store.cipher)
          : undefined
      if (event) {
        events.push(event)
        bytes += memoryOf(event)
      }
      // Skips the text of a record that does not count: any process may have written it.
      const time = counts ? (envelope ?? readClaim(record.text)).time : ''
      if (time > lastTime) lastTime = time
      offset++
      states.push(state)
      on?.(folded.verdict, record, event)
    }
    return { events, position: { offset, state }, lastTime }
  }
}

/** Reads a claim that counts. @throws LogChanged when the text is no claim */
function readClaim(text: string): ClaimData {
  try {
    const claim = JSON.parse(text) as ClaimData | null
    if (typeof claim?.time === 'string') return claim
  } catch {
    // The error below reports it.
  }
  throw new LogChanged('A claim in the log is invalid')
}
