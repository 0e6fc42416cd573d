import { hash } from 'node:crypto'

/** The fold of the records of a log partition. */
export interface State {
  readonly epoch: number
  /** Id of the process that holds the epoch. */
  readonly writer: string
  /** Number of the last event of this writer in this epoch that counts. */
  readonly number: number
  /** Number of events that count, of all writers. */
  readonly count: number
  /** Chained hash over the hashes of the events that count, 32 hex digits; '' at first. */
  readonly hash: string
}

export const zeroState: State = { epoch: 0, writer: '', number: 0, count: 0, hash: '' }

/** A record's own data, and the state of the log as its writer knew it. */
export interface RecordHeader {
  readonly kind: 'epoch' | 'event'
  readonly epoch: number
  readonly writer: string
  /**
   * Number of the event among its writer's events within the epoch, from 1; bound to its event for ever. 0 in a claim.
   */
  readonly number: number
  /** The state at offset `seen.offset`: a fact about an immutable prefix, from any writer. */
  readonly seen: { readonly offset: bigint; readonly state: State }
}

export interface LogRecord {
  /** Undefined when Quipu did not write the record. */
  readonly header: RecordHeader | undefined
  /** The event's own hash; '' in a claim. */
  readonly hash: string
}

export type Verdict = 'epoch' | 'valid' | IgnoredVerdict
/** The verdicts on records that change nothing. */
export type IgnoredVerdict = 'stale' | 'duplicate' | 'gap' | 'foreign'

/**
 * Decides whether a record counts, given all records before it. This function is the fence: writer, followers,
 * projections and audit run it over the same records, and so agree on which events are valid.
 */
export function fold(state: State, record: LogRecord): { verdict: Verdict; state: State } {
  const header = record.header
  if (!header) return { verdict: 'foreign', state }
  if (header.kind === 'epoch') {
    if (header.epoch <= state.epoch) return { verdict: 'stale', state }
    return { verdict: 'epoch', state: { ...state, epoch: header.epoch, writer: header.writer, number: 0 } }
  }
  if (header.epoch !== state.epoch || header.writer !== state.writer) return { verdict: 'stale', state }
  if (header.number <= state.number) return { verdict: 'duplicate', state }
  if (header.number !== state.number + 1) return { verdict: 'gap', state }
  return {
    verdict: 'valid',
    state: {
      epoch: state.epoch,
      writer: state.writer,
      number: header.number,
      count: state.count + 1,
      hash: hash('sha256', state.hash + record.hash).slice(0, 32),
    },
  }
}

export type Fold = typeof fold

export function sameState(a: State, b: State): boolean {
  return (
    a.epoch === b.epoch && a.writer === b.writer && a.number === b.number && a.count === b.count && a.hash === b.hash
  )
}

/** Formats a header as one line: five columns or five headers would cost more than the event (28 µs against 19). */
export function formatHeader(header: RecordHeader): string {
  return `${header.kind}|${header.epoch}|${header.writer}|${header.number}|${formatSeen(header.seen)}`
}

/** Parses a header. @returns undefined when the text was not written by `formatHeader` */
export function parseHeader(text: string): RecordHeader | undefined {
  const parts = text.split('|')
  const kind = parts[0]
  if (parts.length !== 10 || (kind !== 'epoch' && kind !== 'event')) return undefined
  const seen = parseSeen(parts.slice(4))
  const epoch = parseCount(parts[1]!)
  const number = parseCount(parts[3]!)
  if (!seen || epoch === undefined || number === undefined || parts[2] === '') return undefined
  return { kind, epoch, writer: parts[2]!, number, seen }
}

export function formatSeen(seen: RecordHeader['seen']): string {
  const { offset, state } = seen
  return `${offset}|${state.epoch}|${state.writer}|${state.number}|${state.count}|${state.hash}`
}

/** Parses the text of `formatSeen`. @param parts the text, split at its bars */
export function parseSeen(parts: readonly string[]): RecordHeader['seen'] | undefined {
  const [offset, epoch, writer, number, count, stateHash] = parts
  if (parts.length !== 6 || !/^\d{1,19}$/.test(offset!)) return undefined
  const numbers = [parseCount(epoch!), parseCount(number!), parseCount(count!)]
  if (numbers.includes(undefined)) return undefined
  return {
    offset: BigInt(offset!),
    state: { epoch: numbers[0]!, writer: writer!, number: numbers[1]!, count: numbers[2]!, hash: stateHash! },
  }
}

function parseCount(text: string): number | undefined {
  return /^\d{1,16}$/.test(text) ? Number(text) : undefined
}
