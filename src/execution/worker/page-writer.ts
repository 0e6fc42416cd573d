import { createHash } from 'node:crypto'
import type { ClosedPage } from '../api/task.ts'
import { createPageCutter, type CutPage } from './page-cutter.ts'

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
}

/**
 * Makes pages of one attempt at a batch. The newest written page is held back until more rows come, a moment passes, or
 * the batch ends, since a page once listed cannot become the batch's last any more.
 */
export interface PageWriter {
  /** Takes lines of the engine; its promise is pending while it cannot take more. */
  add(lines: Buffer): void | Promise<void>
  /** Takes all rows of a small result, `[…],[…]`, as one page. */
  addWhole(rows: Buffer, count: number): void
  /** After a good end, writes the rest; `verify` is called before the last page is listed. */
  finish(verify: () => Promise<void>): Promise<{ readonly rows: number; readonly bytes: number }>
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
  const cutter = createPageCutter(options.pageBytes, options.pageMaxBytes)
  let chain: Promise<void> = Promise.resolve()
  let inFlight = 0
  let nextToken = options.firstToken
  let listed = 0
  let held: ClosedPage | undefined
  let holdTimer: NodeJS.Timeout | undefined
  let flushTimer: NodeJS.Timeout | undefined
  let failure: unknown
  let ended = false
  let blockedMs = 0
  const written = { rows: 0, bytes: 0 }

  function enqueue(work: () => Promise<void>): Promise<void> {
    chain = chain.then(async () => {
      if (failure !== undefined) return
      try {
        await work()
      } catch (error) {
        failure = error
      }
    })
    return chain
  }

  async function list(page: ClosedPage): Promise<void> {
    await sink.list(page)
    listed++
  }

  async function releaseHeld(lastOfBatch: boolean): Promise<void> {
    clearTimeout(holdTimer)
    if (!held) return
    const page = { ...held, lastOfBatch }
    held = undefined
    await list(page)
  }

  async function write({ bytes, rows }: CutPage): Promise<void> {
    await releaseHeld(false)
    const token = nextToken++
    await sink.write(token, bytes)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    written.rows += rows
    written.bytes += bytes.length
    held = { token, batch: options.batch, rows, bytes: bytes.length, sha256, lastOfBatch: false }
    if (!ended) holdTimer = setTimeout(() => void enqueue(() => releaseHeld(false)), options.holdMs)
  }

  function send(page: CutPage | undefined): void {
    clearTimeout(flushTimer)
    flushTimer = undefined
    if (!page) return
    inFlight++
    void enqueue(() => write(page)).then(() => inFlight--)
  }

  async function waitForRoom(room: void | Promise<void>): Promise<void> {
    const start = performance.now()
    if (inFlight >= IN_FLIGHT) await chain
    await room
    blockedMs += performance.now() - start
    if (failure !== undefined) throw failure
  }

  return {
    add(lines) {
      if (failure !== undefined) throw failure
      const page = cutter.add(lines)
      if (page) {
        send(page)
        const room = sink.room()
        if (inFlight >= IN_FLIGHT || room) return waitForRoom(room)
      } else {
        flushTimer ??= setTimeout(() => send(cutter.flush()), options.flushMs)
      }
    },
    addWhole(rows, count) {
      if (count > 0) send({ bytes: Buffer.concat([OPEN, rows, CLOSE]), rows: count })
    },
    async finish(verify) {
      ended = true
      send(cutter.flush())
      await chain
      if (failure !== undefined) throw failure
      await verify()
      await enqueue(() => releaseHeld(true))
      if (failure !== undefined) throw failure
      return written
    },
    async abandon() {
      ended = true
      clearTimeout(holdTimer)
      clearTimeout(flushTimer)
      await chain
      clearTimeout(holdTimer)
      if (!held) return
      const { token, bytes } = held
      held = undefined
      await sink.remove(token, bytes)
    },
    listed: () => listed,
    blockedMs: () => blockedMs,
  }
}
