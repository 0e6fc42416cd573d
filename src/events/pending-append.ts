import type { Appended } from './event-log.ts'
import type { SealedAppend } from './seal-append.ts'

/** An append in progress. Its record numbers are assigned when it is first sent, and stay. */
export interface PendingAppend extends SealedAppend {
  assumedNew: boolean
  firstNumber: number
  /** Monotonic milliseconds: when the append was queued, and when it was first sent. */
  readonly queuedAt: number
  sentAt: number
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: Error) => void
}

const MAX_BATCH_BYTES = 512 << 10
const MAX_BATCH_EVENTS = 1000

/** Removes the appends of the next batch from the front of the queue. */
export function cutBatch(queue: PendingAppend[]): PendingAppend[] {
  let bytes = 0
  let events = 0
  let count = 0
  for (const append of queue) {
    if (count > 0 && (bytes + append.held > MAX_BATCH_BYTES || events + append.sealed.length > MAX_BATCH_EVENTS)) break
    bytes += append.held
    events += append.sealed.length
    count++
  }
  return queue.splice(0, count)
}
