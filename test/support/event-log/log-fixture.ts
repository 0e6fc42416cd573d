import type pg from 'pg'
import { expect } from 'vitest'
import type { Appended, Event, EventLog, Recorded } from '../../../src/events/event-log.ts'
import type { EventLogOptions, EventLogSeams } from '../../../src/events/folded-event-log.ts'
import { zeroState, type State, type Verdict } from '../../../src/events/fold.ts'
import type { KafkaEventLogOptions } from '../../../src/events/kafka-beside-postgres.ts'
import { LogReader } from '../../../src/events/log-reader.ts'
import type { RecordStore, StoredRecord } from '../../../src/events/record-store.ts'
import type { FaultProxy } from '../fault-proxy.ts'
import type { LogProcess } from './log-process.ts'

export interface OpenOptions extends EventLogOptions {
  /** All connections to the server of the log go through this proxy. */
  readonly via?: FaultProxy
}

/** A log server that a test may kill. */
export interface LogServer {
  kill(): Promise<void>
  start(): Promise<void>
  /** @returns a function that resumes the server */
  freeze(): Promise<() => Promise<void>>
}

/** An empty log on a real server, with the means to disturb it. */
export interface LogFixture {
  readonly technology: 'postgres' | 'kafka'
  readonly partitions: number
  /** Opens a client as another process would. The fixture closes it. */
  open(options?: OpenOptions): Promise<EventLog>
  /** The raw records, to read them and to write invalid records. */
  store(options?: OpenOptions): Promise<RecordStore>
  /** The proxy between clients and the server. */
  proxy(): Promise<FaultProxy>
  /** Starts a client in a separate process. */
  spawn(): Promise<LogProcess>
  /** Appends a foreign record. */
  putForeign(text: string): Promise<void>
  /** Present when the fixture was made with `ownServer`. */
  readonly server: LogServer | undefined
  /** Replaces the log by another log with the first records of the old log. */
  restore(records: readonly StoredRecord[]): Promise<void>
  /** Deletes everything except the log: read models and checkpoints. */
  deleteDatabase(): Promise<void>
  /** Means of a single technology, for its tests. */
  readonly details: Readonly<Record<string, string>>
  close(): Promise<void>
}

export interface FixtureOptions {
  readonly ownServer?: boolean
  readonly partitions?: number
}

/** Replaces parts of every client that a fixture opens, to run the suite with broken adapters. */
export interface Broken {
  readonly seams?: EventLogSeams
  readonly postgresStore?: (config: pg.ClientConfig, options: OpenOptions) => RecordStore
  readonly kafkaStore?: (options: KafkaEventLogOptions, log: OpenOptions) => RecordStore
  /** Appends of a separate process are sent in two halves. */
  readonly splitInProcess?: boolean
}

/** How long a log may need to recover after a fault; shorter if no recovery is expected. */
export const patience = { ms: 60_000 }

/** Ignores rejected appends of a broken adapter, because a test that fails half-way does not await them. */
export function openedQuietly(log: EventLog, broken: Broken): EventLog {
  if (Object.keys(broken).length === 0) return log
  const append = log.append.bind(log)
  log.append = (...args) => {
    const appended = append(...args)
    appended.catch(() => {})
    return appended
  }
  return log
}

export interface LogAdapter {
  readonly technology: 'postgres' | 'kafka'
  fixture(options?: FixtureOptions, broken?: Broken): Promise<LogFixture>
}

let made = 0

/** An event that differs from every other event. */
export function anEvent(data: unknown = { n: ++made }, type = 'TestHappened'): Event {
  return { type, v: 1, time: new Date().toISOString(), data }
}

export function events(count: number): Event[] {
  return Array.from({ length: count }, () => anEvent())
}

export interface Audit {
  readonly valid: readonly Recorded[]
  readonly records: readonly (readonly StoredRecord[])[]
  readonly verdicts: readonly (readonly Verdict[])[]
  /** The state before each offset and at the end, by log partition. */
  readonly states: readonly (readonly State[])[]
}

/** Folds the whole log with the real fold, and asserts the guarantees for every reader. */
export async function audit(fixture: LogFixture): Promise<Audit> {
  const store = await fixture.store()
  const reader = new LogReader(store)
  const valid: Recorded[] = []
  const records: StoredRecord[][] = []
  const verdicts: Verdict[][] = []
  const states: State[][] = []
  for (let partition = 0; partition < fixture.partitions; partition++) {
    const all = await allRecords(store, partition)
    const seen: Verdict[] = []
    const after: State[] = [zeroState]
    let position = { offset: 0n, state: zeroState }
    let lastTime = ''
    for (const record of all) {
      const folded = reader.foldRecords(partition, position, [record], (verdict) => seen.push(verdict))
      position = folded.position
      after.push(position.state)
      for (const event of folded.events) {
        expect(event.time >= lastTime, `times of log partition ${partition} decrease at ${event.time}`).toBe(true)
        lastTime = event.time
      }
      valid.push(...folded.events)
    }
    records.push(all)
    verdicts.push(seen)
    states.push(after)
  }
  expectWholeStreams(valid)
  return { valid, records, verdicts, states }
}

export async function allRecords(store: RecordStore, partition = 0): Promise<StoredRecord[]> {
  const all: StoredRecord[] = []
  const end = await store.end(partition)
  while (BigInt(all.length) < end) {
    const more = await store.fetch(partition, BigInt(all.length), 1000)
    expect(more.length, `records at offset ${all.length} of ${end}`).toBeGreaterThan(0)
    all.push(...more)
  }
  return all
}

/** Asserts that every stream is numbered 1, 2, 3 … and has a valid hash chain. */
export function expectWholeStreams(valid: readonly Recorded[]): void {
  const last = new Map<string, Recorded>()
  for (const event of valid) {
    const before = last.get(event.stream)
    expect(event.sequence, `sequence after ${event.stream}/${before?.sequence ?? 0}`).toBe((before?.sequence ?? 0) + 1)
    expect(event.prevhash).toBe(before?.hash ?? '')
    last.set(event.stream, event)
  }
}

/** Asserts that each acknowledged event is valid, once, at the acknowledged position. */
export function expectKept(log: Pick<Audit, 'valid'>, acknowledged: readonly Appended[]): void {
  const byPosition = new Map(log.valid.map((event) => [positionOf(event), event]))
  expect(byPosition.size).toBe(log.valid.length)
  for (const event of acknowledged.flatMap((each) => each.events)) {
    const found = byPosition.get(positionOf(event))
    expect(found, `acknowledged event ${event.stream}/${event.sequence}`).toBeDefined()
    expect(found!.hash).toBe(event.hash)
  }
}

function positionOf(event: Recorded): string {
  return `${event.position.partition}/${event.position.offset}`
}

/** Rejects when a promise takes too long, because a hanging adapter is broken. */
export async function within<T>(ms: number, promise: Promise<T>, what = 'this'): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits until a condition holds. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  ms = patience.ms,
  what = 'condition',
): Promise<void> {
  const deadline = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export async function readAll(log: EventLog, partitions = 1): Promise<Recorded[]> {
  const from = { logId: '', at: Array.from({ length: partitions }, () => ({ offset: 0n })) }
  const all: Recorded[] = []
  for (let at: Parameters<EventLog['read']>[0] = from; ;) {
    const { events: some, next } = await log.read(at, 500)
    if (some.length === 0) return all
    all.push(...some)
    at = next
  }
}

export async function collect(stream: AsyncIterable<Recorded>): Promise<Recorded[]> {
  const all: Recorded[] = []
  for await (const event of stream) all.push(event)
  return all
}

export const me = { address: 'http://test', version: '0' }
