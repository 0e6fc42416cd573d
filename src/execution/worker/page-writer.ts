import { createHash } from 'node:crypto'
import { NO_ROWS, type RowDigester } from '../../shared/row-digest.ts'
import type { ClosedPage } from '../api/task.ts'
import { createPageCutter, type CutPage, type PageCutter } from './page-cutter.ts'

/** Where a batch's pages go. */
export interface PageSink {
  /** Writes the page under its token; resolves when it is closed. */
  write(token: number, bytes: Buffer): Promise<void>
  remove(token: number, bytes: number): Promise<void>
  /** Makes the page part of the task's output. */
  list(page: ClosedPage): Promise<void>
  /** Pending while the page store is full. */
  room(): void | Promise<void>
}

export interface PageWriterOptions {
  readonly batch: number
  /** Tokens of the batch go on from here. */
  readonly firstToken: number
  readonly pageBytes: number
  readonly pageMaxBytes: number
  /** Rows that came are made a page after this time, whatever their size: a slow stream shows its rows too. */
  readonly flushMs: number
  /** A written page waits this long for more rows, so that the last of the batch can be known for the last. */
  readonly holdMs: number
  /** Absent: pages are told without digests. `chained`: the rows come in an order. */
  readonly digests?: { readonly by: RowDigester; readonly chained: boolean } | undefined
}

/**
 * Makes pages of one attempt at a batch. The newest written page is held back until more rows come, a moment passes, or
 * the batch ends, since a page once listed cannot become the batch's last any more.
 */
export interface PageWriter {
  /** Takes lines of the engine; its promise is pending while it cannot take more. */
  add(lines: Buffer): void | Promise<void>
  /** Takes all rows of a small result, `[…],\n[…]`, as one page. */
  addWhole(rows: Buffer, count: number): void
  /** After a good end, writes the rest; the last page is listed once `verified` resolves. */
  finish(verified: Promise<void>): Promise<{ readonly rows: number; readonly bytes: number }>
  /** Takes back what was not listed. */
  abandon(): Promise<void>
  listed(): number
  /** Milliseconds that the engine was kept waiting. */
  blockedMs(): number
}

const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')
/** Pages on their way to the disk at a time: one is written while the next is filled. */
const IN_FLIGHT = 2

export function createPageWriter(sink: PageSink, options: PageWriterOptions): PageWriter {
  return new BatchPages(sink, options)
}

class BatchPages implements PageWriter {
  readonly #sink: PageSink
  readonly #options: PageWriterOptions
  readonly #cutter: PageCutter
  readonly #written = { rows: 0, bytes: 0 }
  /** Whatever is done with pages is done one after the other, until something fails. */
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
