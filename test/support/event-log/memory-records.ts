import { LogUnavailable, Unstorable, type Checkpoint } from '../../../src/events/event-log.ts'
import { zeroState } from '../../../src/events/fold.ts'
import { LogReader } from '../../../src/events/log-reader.ts'
import type { OutRecord, PutOutcome, RecordBatch, RecordStore, StoredRecord } from '../../../src/events/record-store.ts'

/** The fate of one attempt to put a batch. */
export type Fate =
  /** The batch lands at the end, and the store acknowledges it. */
  | 'lands'
  /** The batch does not land, and the store reports this. */
  | 'refused'
  /** The batch does not land, and the writer gets no answer. */
  | 'lost'
  /** The batch lands, and the writer gets no answer. */
  | 'unheard'
  /** The batch lands later, before the next attempt that lands. Until then the writer gets no answer. */
  | 'late'

/** Records of one log partition in memory, with dense offsets and one attempt at a time. Tests choose each fate. */
export class MemoryRecords {
  readonly records: StoredRecord[] = []
  readonly puts: RecordBatch[] = []
  /** The fates of the next attempts, in order. Later attempts all land. */
  readonly fates: Fate[] = []
  /** Called before an attempt lands, so that another writer can write first. */
  beforePut: (batch: RecordBatch) => void = () => {}
  /** A stream whose records the store refuses. */
  poison = ''
  checksNewStreams = false
  /** The limit of attempts, to end an endless retry. */
  mostPuts = 10_000
  readonly #late: RecordBatch[] = []

  write(batch: RecordBatch): bigint {
    const at = BigInt(this.records.length)
    for (const record of batch.records) this.records.push(this.#stored(batch, record))
    return at
  }

  /** Appends a foreign record. */
  writeForeign(): void {
    this.records.push({ offset: BigInt(this.records.length), header: undefined, stream: '', text: '?' })
  }

  /** Appends the claim of another process. */
  async claimBy(writer: string, epoch: number): Promise<void> {
    const offset = BigInt(this.records.length)
    const seen = { offset, state: await new LogReader(this.store()).stateAt(0, offset) }
    const record: OutRecord = { number: 0, stream: '', sequence: 0, time: claimTime, text: claimText(epoch, writer), hash: '' } // prettier-ignore
    this.write({ partition: 0, kind: 'epoch', epoch, writer, seen, records: [record], pages: [], newStreams: [] })
  }

  store(): RecordStore {
    return {
      open: async () => limits,
      put: async (batch) => this.#put(batch),
      fetch: async (_partition, from, limit) => this.records.slice(Number(from), Number(from) + limit),
      end: async () => BigInt(this.records.length),
      endMayLag: false,
      awaitMore: async () => {},
      partitionOf: () => 0,
      checksNewStreams: this.checksNewStreams,
      foldStart: async () => undefined,
      head: async (stream) => this.head(stream),
      readStream: unexpected,
      pages: { keep: unexpected } as unknown as RecordStore['pages'],
      forget: unexpected,
      prepareFor: () => {},
      close: async () => {},
    }
  }

  /** The last sequence and hash of a stream, by the real fold. */
  async head(stream: string): Promise<{ sequence: number; hash: string }> {
    const reader = new LogReader(this.store())
    const { events } = reader.foldRecords(0, { offset: 0n, state: zeroState }, this.records)
    return events.findLast((event) => event.stream === stream) ?? { sequence: 0, hash: '' }
  }

  async #put(batch: RecordBatch): Promise<PutOutcome> {
    if (this.puts.push(batch) > this.mostPuts) throw new Error(`${this.mostPuts} attempts, and no end`)
    this.beforePut(batch)
    const fate = this.fates.shift() ?? 'lands'
    if (batch.records.some(({ stream }) => this.poison !== '' && stream === this.poison))
      return { kind: 'impossible', error: new Unstorable('not in this store') }
    if (fate === 'lands' || fate === 'unheard') for (const late of this.#late.splice(0)) this.write(late)
    for (const stream of this.checksNewStreams ? batch.newStreams : [])
      if ((await this.head(stream)).sequence > 0) return { kind: 'refused' }
    const away = { kind: 'unknown', error: new LogUnavailable('no answer') } as const
    switch (fate) {
      case 'lands':
        return { kind: 'landed', at: this.write(batch) }
      case 'refused':
        return { kind: 'refused' }
      case 'lost':
        return away
      case 'unheard':
        this.write(batch)
        return away
      case 'late':
        this.#late.push(batch)
        return away
    }
  }

  #stored(batch: RecordBatch, record: OutRecord): StoredRecord {
    const { kind, epoch, writer, seen } = batch
    const header = { kind, epoch, writer, number: record.number, seen }
    return { offset: BigInt(this.records.length), header, stream: record.stream, text: record.text }
  }
}

export const limits = { partitions: 1, maxEventBytes: 1 << 20, maxAppendBytes: 4 << 20 }
export const start: Checkpoint = { logId: 'here', at: [{ offset: 0n, state: zeroState }] }
const claimTime = '2026-01-01T00:00:00.000Z'

export function claimText(epoch: number, writer: string, time = claimTime): string {
  return JSON.stringify({ time, epoch, writer, partitions: 1, logId: 'here', address: '', version: '' })
}

function unexpected(): never {
  throw new Error('Nobody asks for that here')
}
