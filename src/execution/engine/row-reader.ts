import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { Socket, type OnReadOpts, type SocketConstructorOpts } from 'node:net'
import { EngineError } from '../../shared/engine-error.ts'

/** Reads lines from a FIFO and passes on whole lines. */
export interface RowReader {
  /**
   * Resolves at the end of the stream once every line is taken. Rejects when the stream ends within a line, is closed
   * before its end, or was refused.
   */
  readonly ended: Promise<void>
  /** Whether lines were passed on. */
  delivered(): boolean
  /** Stops reading; resolves when the descriptor is closed. No lines are passed on afterwards. */
  close(): Promise<void>
}

/** The largest row: the largest page, with one row. */
const MAX_ROW_BYTES = 64 * 1024 * 1024
/** The capacity of a pipe. */
const READ_BYTES = 64 * 1024

/**
 * Opens the FIFO at once, without waiting for its writer. `onRows` gets whole lines, which it has to copy: the next
 * lines use the same memory. While its promise is pending nothing is read, so the writer stops at a full pipe.
 * `onRefused` is called at once when reading stops because a row is too large or `onRows` failed.
 */
export function openRowReader(
  path: string,
  onRows: (lines: Buffer) => void | Promise<void>,
  onRefused: (error: unknown) => void,
): RowReader {
  const lines = new LineBuffer()
  const options: SocketConstructorOpts & { readonly onread: OnReadOpts } = {
    fd: openFifo(path),
    readable: true,
    writable: false,
    // A new buffer for each read would cost more in garbage collection than everything else that is done with the rows.
    onread: { buffer: () => lines.room(), callback: (bytes) => take(bytes) },
  }
  const socket = new Socket(options)
  let handedOn = false
  let closing = false
  let failure: unknown

  const fail = (error: unknown): void => {
    if (closing) return
    closing = true
    failure = error
    socket.destroy()
    onRefused(error)
  }

  /** @returns whether to read on */
  const handOn = (rows: Buffer): boolean => {
    handedOn = true
    let taken: void | Promise<void>
    try {
      taken = onRows(rows)
    } catch (error) {
      fail(error)
      return false
    }
    if (taken === undefined) return true
    taken.then(() => {
      if (!closing) socket.resume()
    }, fail)
    return false
  }

  /** @returns whether to read on */
  function take(bytes: number): boolean {
    if (closing) return false
    const whole = lines.add(bytes)
    if (whole) {
      const goesOn = handOn(whole)
      lines.passed(whole.length)
      return goesOn
    }
    if (lines.bytes <= MAX_ROW_BYTES) return true
    fail(new EngineError('PAGE_TOO_LARGE', `A row is larger than ${MAX_ROW_BYTES / 2 ** 20} MB`))
    return false
  }

  let atEnd = false
  socket.on('end', () => {
    atEnd = true
  })
  socket.on('error', fail)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const ended = closed.then(() => {
    if (failure !== undefined) throw failure
    if (!atEnd) throw new Error('The rows were not read to their end')
    if (lines.bytes > 0) throw new Error('The rows end within a line')
  })
  // A caller that closes early does not look at `ended`.
  ended.catch(() => undefined)

  return {
    ended,
    delivered: () => handedOn,
    close() {
      closing = true
      socket.destroy()
      return closed
    },
  }
}

/** A buffer that is reused for every read. The beginning of an unfinished line stays at its start. */
class LineBuffer {
  #memory = Buffer.allocUnsafeSlow(2 * READ_BYTES)
  #bytes = 0

  /** Bytes of the unfinished line. */
  get bytes(): number {
    return this.#bytes
  }

  /** The part of the buffer for the next bytes. */
  room(): Buffer {
    if (this.#memory.length - this.#bytes < READ_BYTES) {
      const larger = Buffer.allocUnsafeSlow(2 * this.#memory.length)
      this.#memory.copy(larger, 0, 0, this.#bytes)
      this.#memory = larger
    }
    return this.#memory.subarray(this.#bytes, this.#bytes + READ_BYTES)
  }

  /** Notes bytes that were read into the room. @returns all whole lines, valid until `passed` */
  add(bytes: number): Buffer | undefined {
    const before = this.#bytes
    this.#bytes += bytes
    const last = this.#memory.subarray(before, this.#bytes).lastIndexOf(10)
    return last < 0 ? undefined : this.#memory.subarray(0, before + last + 1)
  }

  passed(bytes: number): void {
    this.#memory.copyWithin(0, bytes, this.#bytes)
    this.#bytes -= bytes
  }
}

/** Opens nothing but a FIFO: an engine may have put another kind of file there. */
function openFifo(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  if (fstatSync(fd).isFIFO()) return fd
  closeSync(fd)
  throw new Error(`${path} is no FIFO`)
}
