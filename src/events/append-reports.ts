import type { AppendReport, CommitReport, Recorded } from './event-log.ts'
import type { PendingAppend } from './pending-append.ts'

export interface AppendReportsDeps {
  readonly onAppended?: (report: AppendReport) => void
  readonly onCommitted?: (report: CommitReport) => void
}

/** Reports the appends of one log partition that are in the log, and how long the store took. */
export class AppendReports {
  readonly #deps: AppendReportsDeps
  readonly #partition: number
  /** When the store last answered, monotonic milliseconds. */
  #answeredAt = 0
  /** When the newest attempt to store records began, monotonic milliseconds. */
  #attemptedAt = 0

  constructor(deps: AppendReportsDeps, partition: number) {
    this.#deps = deps
    this.#partition = partition
  }

  /** Notes that an attempt to store records begins. */
  attempted(): void {
    this.#attemptedAt = performance.now()
  }

  /** Notes that the store has answered. */
  answered(): void {
    this.#answeredAt = performance.now()
  }

  committed(sent: readonly PendingAppend[], settled: readonly Recorded[]): void {
    const now = performance.now()
    this.#deps.onCommitted?.({
      partition: this.#partition,
      offset: settled.at(-1)!.position.offset,
      records: sent.reduce((sum, append) => sum + append.sealed.length, 0),
      appends: settled.map(({ stream, sequence, traceparent }) => ({ stream, sequence, traceparent })),
      sendMs: Math.max(0, this.#answeredAt - this.#attemptedAt),
      readBackMs: Math.max(0, now - this.#answeredAt),
    })
  }

  appended(append: PendingAppend, events: readonly Recorded[]): void {
    const last = events.at(-1)!
    this.#deps.onAppended?.({
      stream: append.stream,
      sequence: last.sequence,
      epoch: last.epoch,
      events,
      bytes: append.bytes,
      traceparent: last.traceparent,
      queueMs: append.sentAt - append.queuedAt,
      sendMs: Math.max(0, this.#answeredAt - append.sentAt),
      readBackMs: Math.max(0, performance.now() - this.#answeredAt),
    })
  }
}
