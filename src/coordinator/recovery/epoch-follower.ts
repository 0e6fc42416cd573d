import {
  hasReached,
  type Checkpoint,
  type Recorded,
  type Subscription,
  type LogFeed,
  type LogEnd,
} from '../../events/event-log.ts'
import { systemEventSchemas, systemStream } from '../system/events.ts'

/** Who writes the log, as the log itself says. */
export interface WriterAddress {
  readonly epoch: number
  readonly writer: string
  /** Base address under which it is reached. */
  readonly address: string
  /** It handed its place over: the next one need not wait. */
  readonly ended: boolean
  /** When the last writers were replaced by one at another address without having ended, wall clock in milliseconds. */
  readonly takeOvers: readonly number[]
}

/** The newest event of the writer that was read. */
export interface WriterNews {
  readonly epoch: number
  /** Wall clock of the writer, milliseconds. */
  readonly at: number
}

/** Follows the log with a reader of its own, for the epochs in it. */
export interface EpochFollower {
  /** The last one seen; undefined while nobody has ever claimed. */
  readonly writerAddress: WriterAddress | undefined
  /** What the writer last wrote, as far as was read: a sign of life. */
  readonly written: WriterNews | undefined
  /**
   * The epoch of the log, once all that is valid now was read; undefined before, and while the log does not say. Above
   * that of `place` when who claimed it has not told its address.
   */
  epochAtEnd(): Promise<number | undefined>
  /** Called with each new place. @returns a function that ends it */
  onChange(listener: () => void): () => void
  stop(): Promise<void>
}

export interface EpochFollowerOptions {
  readonly log: LogFeed & LogEnd
  /** Where to begin to read; what lies before it is told by `last`. */
  readonly from: Checkpoint
  readonly last: WriterAddress | undefined
  /** The log is not what the checkpoint says: nothing more is followed. */
  readonly onStopped: (error: unknown) => void
}

export function startEpochFollower(options: EpochFollowerOptions): EpochFollower {
  const { log, from, last, onStopped } = options
  let place = last
  let written: WriterNews | undefined
  const listeners = new Set<() => void>()
  const subscription: Subscription = log.subscribe(from, async (batch) => {
    const before = place
    for (const event of batch) place = nextAddress(place, event)
    const newest = batch.at(-1)
    if (newest && newest.epoch === place?.epoch) written = { epoch: newest.epoch, at: Date.parse(newest.time) }
    if (place !== before) for (const listener of listeners) listener()
  })
  subscription.done.catch(onStopped)
  return {
    get writerAddress() {
      return place
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

/** The place after an event of the log; the same object when the event says nothing about it. */
export function nextAddress(
  place: WriterAddress | undefined,
  event: Pick<Recorded, 'stream' | 'type' | 'data' | 'time'>,
): WriterAddress | undefined {
  if (event.stream !== systemStream) return place
  if (event.type === 'EpochStarted') {
    const started = systemEventSchemas.EpochStarted.safeParse(event.data)
    // What was read from elsewhere to begin with may be ahead of the log as far as it is read.
    if (!started.success || (place && started.data.epoch < place.epoch)) return place
    const { epoch, writer, address } = started.data
    return { epoch, writer, address, ended: false, takeOvers: takeOversOf(place, address, event.time) }
  }
  if (event.type === 'EpochEnded') {
    const ended = systemEventSchemas.EpochEnded.safeParse(event.data)
    return place && ended.success && ended.data.epoch === place.epoch ? { ...place, ended: true } : place
  }
  return place
}

/** More are not needed to be patient. */
const MOST_TAKE_OVERS = 8

/** A writer that starts again where it was takes nothing from anybody. */
function takeOversOf(before: WriterAddress | undefined, address: string, time: string): readonly number[] {
  if (!before || before.ended || before.address === address) return before?.takeOvers ?? []
  return [...before.takeOvers, Date.parse(time)].slice(-MOST_TAKE_OVERS)
}
