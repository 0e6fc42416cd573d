import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { keyNameInText, parseEnvelope, tombstoneText, toRecorded } from '../envelope.ts'
import {
  Fenced,
  LogChanged,
  LogUnavailable,
  MisconfiguredLog,
  Unstorable,
  type Checkpoint,
  type Recorded,
} from '../event-log.ts'
import { parseSeen, zeroState } from '../fold.ts'
import { parseJson } from '../../shared/parse-json.ts'
import type { EventLogOptions } from '../folded-event-log.ts'
import type { ArchivedRecords, SequencesByStream } from '../archive/archived-records.ts'
import { ForgetQueue } from '../archive/forget-queue.ts'
import { readArchived } from '../archive/read-archived.ts'
import type {
  Drop,
  LogStart,
  RecordBatch,
  PutOutcome,
  RecordDropper,
  RecordStore,
  StoredRecord,
  StoreLimits,
  StreamHead,
} from '../record-store.ts'
import { EVENTS_IN_PARTITION, makeEventPartition, makePagePartitions, startPageHousekeeping } from './partitions.ts'
import { breaksConnection, hasSqlState, isNeverTaken, sqlStateOf } from './database-error.ts'
import {
  ANSWER_TIMEOUT_MS,
  DELETE_PAGES,
  DROP_RECORDS,
  insertStatement,
  KEEP_HEADS,
  SELECT_ARCHIVED_HEAD,
  SELECT_CLAIMED_SINCE,
  SELECT_END,
  SELECT_FIRST_CLAIM,
  SELECT_FORGETTABLE,
  SELECT_HEAD,
  SELECT_RECORDS,
  SELECT_START,
  SELECT_STREAM,
  TERMINATE_BLOCKERS,
  timeFor,
  UPDATE_DATA,
  type PostgresStatement,
} from './statements.ts'
import { ArchiveLock } from './archive-lock.ts'
import { PatientPool } from './patient-pool.ts'
import { PostgresResultPages } from './postgres-result-pages.ts'
import { openTopicKeys, type TopicKeys } from './topic-keys.ts'
import { WriterConnection } from './writer-connection.ts'

const LIMITS: StoreLimits = { partitions: 1, maxEventBytes: 8 << 20, maxAppendBytes: 15 << 20 }
/**
 * Limit of the time for an append. After each attempt that was cut the next has twice the time, so a slow disk succeeds
 * in the end.
 */
const LONGEST_ANSWER_MS = 600_000
/** SQLSTATEs query_canceled and transaction_timeout: the server's own time limits. */
const CUT_BY_TIME: ReadonlySet<string> = new Set(['57014', '25P04'])
/** How long a lost notification delays readers. */
const POLL_MS = 1000
/** Most records to drop in one transaction: a longer one delays vacuum. */
const DROPPED_AT_ONCE = 2000

/** Records as rows of one table. The writer assigns positions, so the primary key is the compare-and-set. */
export class PostgresRecordStore implements RecordStore {
  readonly endMayLag = false
  readonly checksNewStreams = true
  protected readonly writer: WriterConnection
  protected readonly pool: pg.Pool
  readonly pages: PostgresResultPages
  /** Set for a log that was converted from a topic. */
  cipher: TopicKeys | undefined
  readonly #config: pg.ClientConfig
  readonly #onTrouble: (error: Error) => void
  readonly #options: EventLogOptions
  #listener: pg.Client | undefined
  #listening: Promise<void> | undefined
  readonly #waiting = new Set<() => void>()
  /** How long to wait for the answer to an insert; longer after a missing answer. */
  #answerMs = ANSWER_TIMEOUT_MS
  #eventPartitionsMade = -1n
  #housekeeping: { stop(): void } | undefined
  #closed = false
  #archive: ArchivedRecords | undefined
  readonly #archiveLock: ArchiveLock
  readonly #forgets = new ForgetQueue((events, epoch) => this.#forgetInArchive(events, epoch))
  readonly dropper: RecordDropper = {
    recordsAtOnce: DROPPED_AT_ONCE,
    keepHeads: (heads) => this.#keepHeads(heads),
    drop: (drop) => this.#drop(drop),
  }

  constructor(config: pg.ClientConfig, options: EventLogOptions = {}) {
    this.#config = config
    this.#onTrouble = options.onTrouble ?? ((): void => {})
    this.#options = options
    this.writer = new WriterConnection(config)
    this.pool = new PatientPool({
      ...config,
      application_name: 'quipu-event-log-reader',
      max: 4,
      connectionTimeoutMillis: 2000,
      query_timeout: 10_000,
      idleTimeoutMillis: 60_000,
      allowExitOnIdle: true,
    })
    this.pool.on('error', () => {})
    this.#archiveLock = new ArchiveLock(this.pool)
    this.pages = new PostgresResultPages(this.pool)
  }

  async open(): Promise<StoreLimits> {
    const { rows } = await this.#read<{ version: number; made: boolean }>({
      name: 'open',
      text: `select current_setting('server_version_num')::int as version,
        to_regclass('quipu_log.events') is not null and to_regclass('quipu_log.log_start') is not null as made`,
      values: [],
    })
    if (rows[0]!.version < 170_000)
      throw new MisconfiguredLog('The event log needs Postgres 17 or newer (transaction_timeout)')
    if (!rows[0]!.made) throw new MisconfiguredLog('The database has no event log: run the migrations first')
    this.cipher ??= await openTopicKeys(this.pool)
    return LIMITS
  }

  async put(batch: RecordBatch): Promise<PutOutcome> {
    const answerMs = Math.max(this.#answerMs, timeFor(batch))
    let sentAt: number | undefined
    try {
      const client = this.writer.current ?? (await this.writer.connect())
      if (!this.writer.allows(answerMs)) await this.writer.allow(client, answerMs)
      sentAt = performance.now()
      const statement: PostgresStatement = { query_timeout: answerMs, ...this.insertOf(batch) }
      const result = await client.query<{ rows?: number }>(statement)
      // A slow disk stays slow for a while.
      this.#answerMs = Math.max(ANSWER_TIMEOUT_MS, Math.min(this.#answerMs, 2 * (performance.now() - sentAt)))
      const count = batch.pages.length > 0 ? result.rows[0]?.rows : result.rowCount
      return count === batch.records.length ? { kind: 'landed', at: batch.seen.offset } : { kind: 'refused' }
    } catch (error) {
      const took = sentAt === undefined ? 0 : performance.now() - sentAt
      const outcome = await this.#outcomeOf(error as Error)
      if (outcome.kind !== 'unknown' || (took < answerMs && !CUT_BY_TIME.has(sqlStateOf(error) ?? ''))) return outcome
      this.#answerMs = Math.min(2 * answerMs, LONGEST_ANSWER_MS)
      return { ...outcome, slow: true }
    }
  }

  protected insertOf(batch: RecordBatch): PostgresStatement {
    return insertStatement(batch)
  }

  async #outcomeOf(error: Error): Promise<PutOutcome> {
    if (hasSqlState(error, 'uniqueViolation')) return { kind: 'refused' }
    if (hasSqlState(error, 'lockNotAvailable')) {
      await this.#read({ name: 'unblock', text: TERMINATE_BLOCKERS, values: [] }).catch(this.#onTrouble)
      return { kind: 'unknown', error }
    }
    const lacksPartition = hasSqlState(error, 'checkViolation')
    // A missing partition is not the records' fault.
    if (!lacksPartition && isNeverTaken(error)) {
      const state = sqlStateOf(error)
      const what = state === undefined ? error.name : `SQLSTATE ${state}`
      return {
        kind: 'impossible',
        error: new Unstorable(`Postgres refuses these events: ${what}`, { cause: error }),
      }
    }
    if (lacksPartition) await this.#makePartitions().catch(this.#onTrouble)
    if (breaksConnection(error)) this.writer.drop()
    return { kind: 'unknown', error }
  }

  async fetch(_partition: number, from: bigint, limit: number): Promise<StoredRecord[]> {
    const { rows } = await this.#read<RecordRow>({
      name: 'records',
      text: SELECT_RECORDS,
      values: [String(from), limit],
    })
    if (rows[0] && BigInt(rows[0].position) > from) {
      // Records that are gone without being in the archive are missing; the reader finds that out.
      const start = await this.start()
      if (start && from < start.at[0]!.offset) return [...(await this.#archived(start).fetch(0, from, limit))]
    }
    return rows.map(toStoredRecord)
  }

  async start(): Promise<LogStart | undefined> {
    const { rows } = await this.#read<StartRow>({ name: 'start', text: SELECT_START, values: [] })
    const row = rows[0]
    if (!row) return undefined
    const { position, epoch, writer, number, count, hash, log_id: logId } = row
    const state = { epoch: Number(epoch), writer, number: Number(number), count: Number(count), hash }
    return { logId, at: [{ offset: BigInt(position), state }] }
  }

  #archived({ logId, at }: LogStart): ArchivedRecords {
    const { archiveOf } = this.#options
    if (!archiveOf)
      throw new LogUnavailable(`The event log begins at offset ${at[0]!.offset}; earlier records are in its archive`)
    return (this.#archive ??= archiveOf(logId))
  }

  async #keepHeads(heads: ReadonlyMap<string, StreamHead>): Promise<void> {
    const values = [...heads.values()]
    await this.#read({
      name: 'keep-heads',
      text: KEEP_HEADS,
      values: [[...heads.keys()], values.map((head) => head.sequence), values.map((head) => head.hash)],
    })
  }

  async #drop({ to: { offset, state }, logId, epoch }: Drop): Promise<void> {
    const { writer, number, count, hash } = state
    const values = [String(offset), state.epoch, writer, number, count, hash, logId, epoch]
    const { rows } = await this.#read<{ moved: number }>({ name: 'drop', text: DROP_RECORDS, values })
    if (rows[0]!.moved > 0) return
    const start = await this.start()
    // The answer to an earlier attempt was lost: the records are already gone.
    if (start && start.logId === logId && start.at[0]!.offset >= offset) return
    throw new Fenced('Another writer has claimed the log: that writer deletes archived records by itself')
  }

  async end(): Promise<bigint> {
    const { rows } = await this.#read<{ position: string }>({ name: 'end', text: SELECT_END, values: [] })
    return rows[0] ? BigInt(rows[0].position) + 1n : 0n
  }

  partitionOf(): number {
    return 0
  }

  /** The table has an index by stream, so a writer can begin anywhere. */
  async foldStart(): Promise<undefined> {
    return undefined
  }

  async head(stream: string): Promise<StreamHead> {
    for (let delay = 20; ; delay = Math.min(delay * 2, 500)) {
      try {
        const { rows } = await this.#read<{ sequence: number; data: string }>({
          name: 'head',
          text: SELECT_HEAD,
          values: [stream],
        })
        const row = rows[0]
        return row
          ? { sequence: row.sequence, hash: parseEnvelope(row.data).hash }
          : ((await this.#archivedHead(stream)) ?? { sequence: 0, hash: '' })
      } catch (error) {
        // An append that needs this head waits for the log, as other appends do.
        if (!(error instanceof LogUnavailable) || this.#closed) throw error
        this.#onTrouble(error)
        await sleep(delay)
      }
    }
  }

  async #archivedHead(stream: string): Promise<StreamHead | undefined> {
    const { rows } = await this.#read<{ sequence: number; hash: string }>({
      name: 'archived-head',
      text: SELECT_ARCHIVED_HEAD,
      values: [stream],
    })
    return rows[0]
  }

  async *readStream(stream: string, after: number, tip: Checkpoint): AsyncIterable<Recorded> {
    const below = String(tip.at[0]?.offset ?? 0n)
    const chunk = 500
    let last: Recorded | undefined
    for (let from = after, first = true; ; first = false) {
      const { rows } = await this.#read<StreamRow>({
        name: 'stream',
        text: SELECT_STREAM,
        values: [stream, from, below, chunk],
      })
      if (first && rows[0]?.sequence !== from + 1)
        for await (const event of this.#readArchived(stream, from, rows[0]?.sequence)) {
          from = event.sequence
          last = event
          yield event
        }
      for (const row of rows) {
        if (row.sequence <= from) continue
        const event = toRecorded(
          stream,
          parseEnvelope(row.data),
          { partition: 0, offset: BigInt(row.position) },
          this.cipher,
        )
        if (event.sequence !== from + 1 || (last && event.prevhash !== last.hash))
          throw new LogChanged(`Stream ${stream} has a gap after sequence ${from}`)
        from = event.sequence
        last = event
        yield event
      }
      if (rows.length < chunk) return
    }
  }

  /**
   * Events of a stream that have left the log, before the first one that is still there.
   * @param before sequence of that first event
   */
  async *#readArchived(stream: string, after: number, before: number | undefined): AsyncIterable<Recorded> {
    const start = await this.start()
    if (!start) return
    const archived = this.#archived(start).readStream(stream, after, [start.at[0]!.offset])
    yield* readArchived(archived, { stream, after, before }, ({ envelope, position }) =>
      toRecorded(stream, envelope, position, this.cipher),
    )
  }

  /**
   * Replaces the data of events by tombstones. Only this rewrites rows of the log, and only their data: the fields that
   * readers fold stay.
   */
  async forget(stream: string, sequences: readonly number[], epoch: number): Promise<void> {
    const { rows } = await this.#read<{ position: string; data: string }>({
      name: 'forgettable',
      text: SELECT_FORGETTABLE,
      values: [stream, sequences],
    })
    const positions = rows.map((row) => row.position)
    const texts = rows.map((row) => tombstoneText(row.data))
    await this.#read({ name: 'forget', text: UPDATE_DATA, values: [positions, texts] })
    await this.cipher?.forget(rows.map(({ data }) => keyNameInText(data)).filter((name) => name !== undefined))
    await this.#read({ name: 'forget-pages', text: DELETE_PAGES, values: [stream] })
    // The archive is last: rows that were copied before the update above are in the archive by now, or are compared
    // with the log later.
    if (!(await this.#archivedPart())) return
    const archived = await this.#forgets.forget(stream, sequences, epoch)
    const here = new Set(rows.map(({ data }) => parseEnvelope(data).sequence))
    const lost = sequences.find((sequence) => !here.has(sequence) && !archived.has(sequence))
    if (lost !== undefined)
      throw new LogUnavailable(`Event ${stream}/${lost} is neither in the event log nor in its archive`)
  }

  /** The part of the log that may be archived. */
  async #archivedPart(): Promise<LogStart | undefined> {
    return (await this.start()) ?? (await this.#wholeLog())
  }

  async #forgetInArchive(events: SequencesByStream, epoch: number): Promise<SequencesByStream> {
    const start = (await this.#archivedPart())!
    return this.#alone(start, epoch, (archive) => archive.forget(events, [start.at[0]!.offset]))
  }

  /** Runs work while no other process rewrites the archive, unless a later writer has claimed the log. */
  #alone<T>(start: LogStart, epoch: number, work: (archive: ArchivedRecords) => Promise<T>): Promise<T> {
    return this.#archiveLock.hold(start.logId, async () => {
      const { rows } = await this.#read<{ claimed: boolean }>({
        name: 'claimed-since',
        text: SELECT_CLAIMED_SINCE,
        values: [epoch],
      })
      if (rows[0]!.claimed) throw new Fenced('Another writer has claimed the log: only that writer may forget data')
      return work(this.#archived(start))
    })
  }

  /** The start of a log that nothing has left: its first claim names it. Parts of it may be archived all the same. */
  async #wholeLog(): Promise<LogStart | undefined> {
    const { rows } = await this.#read<{ data: string }>({ name: 'first-claim', text: SELECT_FIRST_CLAIM, values: [] })
    const claim = rows[0] && (parseJson(rows[0].data) as { logId?: unknown } | undefined)
    if (!this.#options.archiveOf || typeof claim?.logId !== 'string') return undefined
    return { logId: claim.logId, at: [{ offset: 0n, state: zeroState }] }
  }

  async awaitMore(offsets: readonly bigint[], signal: AbortSignal): Promise<void> {
    this.#listen()
    let wake: () => void = () => {}
    const woken = new Promise<void>((resolve) => (wake = resolve))
    this.#waiting.add(wake)
    const timer = setTimeout(wake, POLL_MS)
    signal.addEventListener('abort', wake, { once: true })
    try {
      // The end is read after the wait began: otherwise a record that came in between would wait for the next poll.
      if ((await this.end()) === offsets[0]) await woken
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      this.#waiting.delete(wake)
    }
  }

  prepareFor(end: bigint): void {
    if (end / EVENTS_IN_PARTITION < this.#eventPartitionsMade || this.#closed) return
    this.#eventPartitionsMade = end / EVENTS_IN_PARTITION + 1n
    void this.#makeEventPartitions().catch((error: Error) => {
      this.#eventPartitionsMade = -1n
      this.#onTrouble(error)
    })
    this.#housekeeping ??= startPageHousekeeping(this.pool, this.#options)
  }

  async #makeEventPartitions(): Promise<void> {
    if (this.#eventPartitionsMade > 1n) await makeEventPartition(this.pool, this.#eventPartitionsMade)
  }

  /** Makes the partitions that an insert did not find. */
  async #makePartitions(): Promise<void> {
    await this.#makeEventPartitions()
    await makePagePartitions(this.pool, (this.#options.now ?? Date.now)())
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#housekeeping?.stop()
    this.cipher?.close()
    for (const wake of this.#waiting) wake()
    await this.#listening?.catch(() => {})
    const listener = this.#listener
    this.#listener = undefined
    await Promise.all([this.writer.close(), this.pool.end().catch(() => {}), listener?.end().catch(() => {})])
  }

  /** Starts listening. A lost connection loses notifications; the poll replaces them meanwhile. */
  #listen(): void {
    if (this.#listener || this.#closed) return
    this.#listening ??= (async () => {
      const client = new pg.Client({
        ...this.#config,
        application_name: 'quipu-event-log-listener',
        connectionTimeoutMillis: 2000,
        keepAlive: true,
      })
      const forget = (): void => {
        if (this.#listener === client) this.#listener = undefined
      }
      client.on('error', forget)
      client.on('end', forget)
      client.on('notification', () => {
        for (const wake of this.#waiting) wake()
      })
      await client.connect()
      await client.query('listen quipu_log')
      if (this.#closed) await client.end()
      else this.#listener = client
    })()
      .catch(() => {})
      .finally(() => (this.#listening = undefined))
  }

  async #read<Row extends pg.QueryResultRow>(statement: PostgresStatement): Promise<pg.QueryResult<Row>> {
    try {
      return await this.pool.query<Row>(statement)
    } catch (cause) {
      return doesNotAnswer(cause as Error)
    }
  }
}

function doesNotAnswer(cause: Error): never {
  throw new LogUnavailable(`The event log does not answer: ${cause.message}`, { cause })
}

interface RecordRow {
  position: string
  kind: string
  epoch: string
  writer: string
  number: string
  seen: string
  stream: string
  sequence: number
  data: string
}

interface StartRow {
  position: string
  epoch: string
  writer: string
  number: string
  count: string
  hash: string
  log_id: string
}

interface StreamRow {
  position: string
  sequence: number
  data: string
}

function toStoredRecord(row: RecordRow): StoredRecord {
  const seen = parseSeen(row.seen.split('|'))
  const { kind, stream, sequence, data: text } = row
  const ours = seen && (kind === 'epoch' || kind === 'event')
  return {
    offset: BigInt(row.position),
    header: ours ? { kind, epoch: Number(row.epoch), writer: row.writer, number: Number(row.number), seen } : undefined,
    stream,
    sequence,
    text,
  }
}
