import { createHash } from 'node:crypto'
import { NO_ROWS, type RowDigester } from '../../shared/row-digest.ts'
import type { ClosedPage } from '../api/task.ts'
import { createPageCutter, type CutPage, type PageCutter } from './page-cutter.ts'

/** The destination of a batch's pages. */
export interface PageSink {
  /** Writes the page under its token; resolves when it is closed. */
  write(token: number, bytes: Buffer): Promise<void>
  remove(token: number, bytes: number): Promise<void>
  /** Makes the page part of the task's output. */
  list(page: ClosedPage): Promise<void>
  /** Resolves once the page store has room for more pages. */
  room(): void | Promise<void>
}

export interface PageWriterOptions {
  readonly batch: number
  /** Token of the batch's first page. */
  readonly firstToken: number
  readonly pageBytes: number
  readonly pageMaxBytes: number
  /** Rows become a page after this time, whatever their size, so that a slow stream shows its rows too. */
  readonly flushMs: number
  /** A written page waits this long for more rows, so that the last page of the batch can be marked as the last. */
  readonly holdMs: number
  /** Absent: pages come without digests. `chained`: the rows have an order. */
  readonly digests?: { readonly by: RowDigester; readonly chained: boolean } | undefined
}

/**
 * Makes pages of one attempt at a batch. The newest written page is held back until more rows come, a moment passes, or
 * the batch ends, because a listed page can no longer be marked as the last.
 */
export interface PageWriter {
  /** Takes lines from the engine; the promise is pending while the writer cannot take more. */
  add(lines: Buffer): void | Promise<void>
  /** Takes all rows of a small result, `[…],\n[…]`, as one page. */
  addWhole(rows: Buffer, count: number): void
  /** Writes the rest after a good end; the last page is listed once `verified` resolves. */
  finish(verified: Promise<void>): Promise<{ readonly rows: number; readonly bytes: number }>
  /** Removes pages that were not listed. */
  abandon(): Promise<void>
  listed(): number
  /** Milliseconds that the engine had to wait. */
  blockedMs(): number
}

const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')
/** The largest number of pages that are being written to disk: one is written while the next is filled. */
const IN_FLIGHT = 2

export function createPageWriter(sink: PageSink, options: PageWriterOptions): PageWriter {
  return new BatchPages(sink, options)
}

class BatchPages implements PageWriter {
  readonly #sink: PageSink
  readonly #options: PageWriterOptions
  readonly #cutter: PageCutter
  readonly #written = { rows: 0, bytes: 0 }
  /** Operations on pages run one after the other, until one fails. */
  #chain: Promise<void> = Promise.resolve()
  #failure: unknown
  #inFlight = 0
  #nextToken: number
  #listed = 0
  #held: ClosedPage | undefined
  #holdTimer: NodeJS.Timeout | undefined
  #flushTimer: NodeJS.Timeout | undefined
  #ended = false
  #blockedMs = 0
  #digestBefore: string | undefined

  constructor(sink: PageSink, options: PageWriterOptions) {
    this.#sink = sink
    this.#options = options
    this.#cutter = createPageCutter(options.pageBytes, options.pageMaxBytes)
    this.#nextToken = options.firstToken
    if (options.digests?.chained) this.#digestBefore = NO_ROWS
  }

  add(lines: Buffer): void | Promise<void> {
    this.#throwFailure()
    const page = this.#cutter.add(lines)
    if (!page) {
      this.#flushTimer ??= setTimeout(() => this.#send(this.#cutter.flush()), this.#options.flushMs)
      return
    }
    this.#send(page)
    const room = this.#sink.room()
    if (this.#inFlight >= IN_FLIGHT || room) return this.#waitForRoom(room)
  }

  addWhole(rows: Buffer, count: number): void {
    if (count > 0) this.#send({ bytes: Buffer.concat([OPEN, rows, CLOSE]), rows: count })
  }

  async finish(verified: Promise<void>): Promise<{ readonly rows: number; readonly bytes: number }> {
    this.#ended = true
    this.#send(this.#cutter.flush())
    await this.#chain
    this.#throwFailure()
    await verified
    await this.#enqueue(() => this.#releaseHeld(true))
    this.#throwFailure()
    return this.#written
  }

  async abandon(): Promise<void> {
    this.#ended = true
    clearTimeout(this.#holdTimer)
    clearTimeout(this.#flushTimer)
    await this.#chain
    clearTimeout(this.#holdTimer)
    if (!this.#held) return
    const { token, bytes } = this.#held
    this.#held = undefined
    await this.#sink.remove(token, bytes)
  }

  listed(): number {
    return this.#listed
  }

  blockedMs(): number {
    return this.#blockedMs
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  #send(page: CutPage | undefined): void {
    clearTimeout(this.#flushTimer)
    this.#flushTimer = undefined
    if (!page) return
    this.#inFlight++
    void this.#enqueue(() => this.#write(page)).then(() => this.#inFlight--)
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#chain = this.#chain.then(async () => {
      if (this.#failure !== undefined) return
      try {
        await work()
      } catch (error) {
        this.#failure = error
      }
    })
    return this.#chain
  }

  async #write({ bytes, rows }: CutPage): Promise<void> {
    const { batch, holdMs, digests } = this.#options
    await this.#releaseHeld(false)
    const token = this.#nextToken++
    await this.#sink.write(token, bytes)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    this.#written.rows += rows
    this.#written.bytes += bytes.length
    const digest = digests?.by.digest(bytes, this.#digestBefore)
    this.#digestBefore = digest?.chain
    this.#held = { token, batch, rows, bytes: bytes.length, sha256, lastOfBatch: false, ...(digest && { digest }) }
    if (!this.#ended) this.#holdTimer = setTimeout(() => void this.#enqueue(() => this.#releaseHeld(false)), holdMs)
  }

  async #releaseHeld(lastOfBatch: boolean): Promise<void> {
    clearTimeout(this.#holdTimer)
    if (!this.#held) return
    const page = { ...this.#held, lastOfBatch }
    this.#held = undefined
    await this.#sink.list(page)
    this.#listed++
  }

  async #waitForRoom(room: void | Promise<void>): Promise<void> {
    const start = performance.now()
    if (this.#inFlight >= IN_FLIGHT) await this.#chain
    await room
    this.#blockedMs += performance.now() - start
    this.#throwFailure()
  }
}
