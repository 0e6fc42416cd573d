import type { Kafka, Producer } from 'kafkajs'
import pg from 'pg'
import { fold, type LogRecord, type State, type Verdict } from '../../../src/events/fold.ts'
import { KafkaStoreBesidePostgres } from '../../../src/events/kafka-beside-postgres.ts'
import type { Checkpoint, ReadFrom } from '../../../src/events/event-log.ts'
import { LogReader } from '../../../src/events/log-reader.ts'
import { PartitionWriter } from '../../../src/events/partition-writer.ts'
import type { PendingAppend } from '../../../src/events/pending-append.ts'
import { PostgresRecordStore } from '../../../src/events/postgres/postgres-record-store.ts'
import type { PostgresStatement } from '../../../src/events/postgres/statements.ts'
import type { RecordBatch, PutOutcome, RecordStore } from '../../../src/events/record-store.ts'
import type { Broken, LogAdapter } from './log-fixture.ts'

export interface BrokenAdapter {
  /** The name in docs/event-log.md. */
  readonly name: string
  readonly what: string
  readonly technologies: readonly LogAdapter['technology'][]
  readonly broken: Broken
  /** The contract tests that must fail with this adapter. */
  readonly caughtBy: readonly number[]
}

const BOTH = ['postgres', 'kafka'] as const

/** Treats an acknowledgement as proof, wherever the records landed. */
class AckIsEnough extends PartitionWriter {
  protected override async onLanded(_at: bigint, batch: RecordBatch): Promise<void> {
    this.foldOwn(batch)
  }
}

/** Accepts records that landed below the last read offset. */
class AcceptsBelowEnd extends PartitionWriter {
  protected override async onLanded(at: bigint, batch: RecordBatch): Promise<void> {
    if (at < this.logPosition.offset) this.foldOwn(batch)
    else await super.onLanded(at, batch)
  }
}

/** Never checks again whether it is still the writer. */
class NeverSteps extends PartitionWriter {
  #wasMine = false
  protected override isMine(): boolean {
    this.#wasMine ||= super.isMine()
    return this.#wasMine
  }
}

class NewNumbers extends PartitionWriter {
  readonly #attempts = new WeakMap<PendingAppend, number>()
  protected override numberOf(append: PendingAppend): number {
    const attempt = this.#attempts.get(append) ?? 0
    this.#attempts.set(append, attempt + 1)
    return append.firstNumber + attempt
  }
}

class ReusesNumber extends PartitionWriter {
  protected override firstNumberOfBatch(): number {
    return this.validThrough > 2 ? this.validThrough : super.firstNumberOfBatch()
  }
}

class StartsAtLatest extends LogReader {
  readonly #store: RecordStore
  constructor(store: RecordStore) {
    super(store)
    this.#store = store
  }
  override async begin(from: ReadFrom): Promise<Checkpoint> {
    const at = await Promise.all(
      from.at.map(async (_, partition) => {
        const offset = await this.#store.end(partition)
        return { offset, state: await this.stateAt(partition, offset) }
      }),
    )
    return this.trust({ logId: await this.logId(), at })
  }
}

/** Accepts events of the current writer, whatever their number. */
function ignoringNumber(state: State, record: LogRecord): { verdict: Verdict; state: State } {
  if (record.header?.kind !== 'event') return fold(state, record)
  const folded = fold({ ...state, number: record.header.number - 1 }, record)
  return folded.verdict === 'valid' ? folded : { verdict: folded.verdict, state }
}

/** Accepts events by their number, whichever writer wrote them. */
function ignoringEpoch(state: State, record: LogRecord): { verdict: Verdict; state: State } {
  if (record.header?.kind !== 'event') return fold(state, record)
  return fold(state, { ...record, header: { ...record.header, epoch: state.epoch, writer: state.writer } })
}

class IdempotentProducer extends KafkaStoreBesidePostgres {
  protected override createProducer(kafka: Kafka): Producer {
    return kafka.producer({
      allowAutoTopicCreation: false,
      idempotent: true,
      maxInFlightRequests: 1,
      retry: { retries: 1, initialRetryTime: 5, maxRetryTime: 5 },
    })
  }
}

/** Takes positions from a sequence of the database, so that two writers never collide. */
class BigSerial extends PostgresRecordStore {
  readonly #config: pg.ClientConfig
  constructor(config: pg.ClientConfig) {
    super(config)
    this.#config = config
  }
  override async open(): ReturnType<PostgresRecordStore['open']> {
    const client = new pg.Client(this.#config)
    await client.connect()
    await client.query('create sequence if not exists quipu_log.positions minvalue 0 start 0').catch(() => {})
    await client.end()
    return super.open()
  }
  protected override insertOf(batch: RecordBatch): PostgresStatement {
    const { text, values } = super.insertOf(batch)
    const serial = text
      .replace('$1::bigint + o - 1,', `nextval('quipu_log.positions'),`)
      .replace('exists (select from quipu_log.events where position = $1::bigint - 1)', '$1::bigint > 0')
    return { name: 'serial', text: serial, values }
  }
}

/** Sends the next batch on another connection before the last batch has arrived. */
class TwoInFlight extends PostgresRecordStore {
  readonly #config: pg.ClientConfig
  #sent = 0
  constructor(config: pg.ClientConfig) {
    super(config)
    this.#config = config
  }
  override async put(batch: RecordBatch): Promise<PutOutcome> {
    if (batch.kind === 'epoch') return super.put(batch)
    const slow = this.#sent++ % 2 === 0
    void (async () => {
      if (slow) await new Promise((resolve) => setTimeout(resolve, 40))
      const client = new pg.Client(this.#config)
      client.on('error', () => {})
      await client.connect()
      const { text, values } = this.insertOf(batch)
      await client.query(text.replace(/\nwhere[^]*$/, ''), values).catch(() => {})
      await client.end()
    })().catch(() => {})
    return { kind: 'landed', at: batch.seen.offset }
  }
}

const writer = (Writer: typeof PartitionWriter): Broken => ({
  seams: { createWriter: (parts, partition) => new Writer(parts, partition) },
})

/** Adapters with a deliberate defect. The contract suite must find each defect. */
export const brokenAdapters: readonly BrokenAdapter[] = [
  {
    name: 'B1',
    what: 'resolves on the acknowledgement, without the check of dense offsets',
    technologies: ['kafka'],
    broken: writer(AckIsEnough),
    caughtBy: [10],
  },
  {
    name: 'B2',
    what: 'ignores the number',
    technologies: BOTH,
    broken: { seams: { fold: ignoringNumber } },
    caughtBy: [8, 34],
  },
  {
    name: 'B3',
    what: 'ignores the epoch',
    technologies: ['kafka'],
    broken: { seams: { fold: ignoringEpoch } },
    caughtBy: [10],
  },
  {
    name: 'B4',
    what: "trusts kafkajs's idempotent producer and its acknowledgements",
    technologies: ['kafka'],
    broken: { ...writer(AckIsEnough), kafkaStore: (options, log) => new IdempotentProducer(options, log) },
    caughtBy: [5],
  },
  {
    name: 'B5',
    what: 'writes on after it read a foreign epoch',
    technologies: BOTH,
    broken: writer(NeverSteps),
    caughtBy: [10, 11],
  },
  {
    name: 'B6',
    what: 'takes positions from a sequence of the database',
    technologies: ['postgres'],
    broken: { postgresStore: (config) => new BigSerial(config) },
    caughtBy: [10],
  },
  {
    name: 'B7',
    what: 'has two inserts in flight',
    technologies: ['postgres'],
    broken: { postgresStore: (config) => new TwoInFlight(config) },
    caughtBy: [23],
  },
  {
    name: 'B8',
    what: 'sends again under new numbers',
    technologies: ['kafka'],
    broken: writer(NewNumbers),
    caughtBy: [6],
  },
  {
    name: 'B9',
    what: 'starts reading at the end',
    technologies: BOTH,
    broken: { seams: { createReader: (store) => new StartsAtLatest(store) } },
    caughtBy: [1, 20, 23],
  },
  {
    name: 'B10',
    what: 'splits an append',
    technologies: BOTH,
    broken: { splitInProcess: true },
    caughtBy: [4],
  },
  {
    name: 'B11',
    what: 'accepts records that landed below what was read',
    technologies: ['kafka'],
    broken: writer(AcceptsBelowEnd),
    caughtBy: [25],
  },
  {
    name: 'B12',
    what: 'gives a number to a second event',
    technologies: BOTH,
    broken: writer(ReusesNumber),
    caughtBy: [1, 3],
  },
]
