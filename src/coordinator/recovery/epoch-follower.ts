import {
  hasReached,
  type Checkpoint,
  type Recorded,
  type Subscription,
  type LogFeed,
  type LogEnd,
} from '../../events/event-log.ts'
import { systemEventSchemas, systemStream } from '../system/events.ts'

/** The writer of the log, as the log names it. */
export interface WriterAddress {
  readonly epoch: number
  readonly writer: string
  /** The base address under which it is reached. */
  readonly address: string
  /** Whether the writer handed the log over: then the next writer need not wait. */
  readonly ended: boolean
  /**
   * When earlier writers were replaced by one at another address without having handed over; wall clock, milliseconds.
   */
  readonly takeOvers: readonly number[]
}

/** The newest event of the writer that was read. */
export interface WriterNews {
  readonly epoch: number
  /** Wall clock of the writer, milliseconds. */
  readonly at: number
}

/** Follows the epochs in the log with a reader of its own. */
export interface EpochFollower {
  /** The last writer seen; undefined while the log has never been claimed. */
  readonly writerAddress: WriterAddress | undefined
  /** The writer's last event, as far as was read: a sign of life. */
  readonly written: WriterNews | undefined
  /**
   * The epoch of the log, once everything that is valid now was read; undefined before, and while the log does not
   * answer. It is higher than the epoch of `writerAddress` when the claimant has not recorded its address.
   */
  epochAtEnd(): Promise<number | undefined>
  /** Calls the listener with each change of the writer's address. @returns a function that stops this */
  onChange(listener: () => void): () => void
  stop(): Promise<void>
}

export interface EpochFollowerOptions {
  readonly log: LogFeed & LogEnd
  /** Where reading begins; `last` covers everything before. */
  readonly from: Checkpoint
  readonly last: WriterAddress | undefined
  /** Called with each batch of events, in order, and with the position behind it. */
  readonly onEvents?: (events: readonly Recorded[], next: Checkpoint) => void
  /** Called when the log differs from the checkpoint: then nothing more is followed. */
  readonly onStopped: (error: unknown) => void
}

export function startEpochFollower(options: EpochFollowerOptions): EpochFollower {
  const { log, from, last, onStopped } = options
  let known = last
  let written: WriterNews | undefined
  const listeners = new Set<() => void>()
  const subscription: Subscription = log.subscribe(from, async (batch, next) => {
    options.onEvents?.(batch, next)
    const before = known
    for (const event of batch) known = nextAddress(known, event)
    const newest = batch.at(-1)
    if (newest && newest.epoch === known?.epoch) written = { epoch: newest.epoch, at: Date.parse(newest.time) }
    if (known !== before) for (const listener of listeners) listener()
  })
  subscription.done.catch(onStopped)
  return {
    get writerAddress() {
      return known
    },
    get written() {
      return written
    },
    async epochAtEnd() {
      const tip = await log.tip().catch(() => undefined)
      return tip && hasReached(subscription.checkpoint, tip) ? (tip.at[0]?.state.epoch ?? 0) : undefined
    },
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop: () => subscription.stop(),
  }
}

/** The writer's address after an event of the log; the same object when the event does not change it. */
export function nextAddress(
  known: WriterAddress | undefined,
  event: Pick<Recorded, 'stream' | 'type' | 'data' | 'time'>,
): WriterAddress | undefined {
  if (event.stream !== systemStream) return known
  if (event.type === 'EpochStarted') {
    const started = systemEventSchemas.EpochStarted.safeParse(event.data)
    // `last` was read elsewhere, and may be newer than the events read so far.
    if (!started.success || (known && started.data.epoch < known.epoch)) return known
    const { epoch, writer, address } = started.data
    return { epoch, writer, address, ended: false, takeOvers: takeOversOf(known, address, event.time) }
  }
  if (event.type === 'EpochEnded') {
    const ended = systemEventSchemas.EpochEnded.safeParse(event.data)
    return known && ended.success && ended.data.epoch === known.epoch ? { ...known, ended: true } : known
  }
  return known
}

/** The silence limit needs no more than these. */
const MOST_TAKE_OVERS = 8

/** A writer that starts again at its own address is no take-over. */
function takeOversOf(before: WriterAddress | undefined, address: string, time: string): readonly number[] {
  if (!before || before.ended || before.address === address) return before?.takeOvers ?? []
  return [...before.takeOvers, Date.parse(time)].slice(-MOST_TAKE_OVERS)
}
