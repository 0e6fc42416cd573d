import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { Socket, type OnReadOpts, type SocketConstructorOpts } from 'node:net'
import { EngineError } from '../../shared/engine-error.ts'

/** Reads lines from a FIFO and hands them on whole. */
export interface RowReader {
  /**
   * Resolves at the end of the stream once every line is taken. Rejects when it ends within a line, is closed before its
   * end, or was refused.
   */
  readonly ended: Promise<void>
  /** Were lines handed on? */
  delivered(): boolean
  /** Stops reading; resolves when the descriptor is closed. Nothing is handed on afterwards. */
  close(): Promise<void>
}

/** One row is at most a page of one row. */
const MAX_ROW_BYTES = 64 * 1024 * 1024
/** As many as a pipe holds. */
const READ_BYTES = 64 * 1024

/**
 * Opens the FIFO at once, without waiting for its writer. `onRows` gets whole lines, which it has to copy: the next ones come
 * into the same memory. While its promise is pending nothing is read, so the writer stops at a full pipe. `onRefused` tells at once that reading has stopped since a row is
 * too large or `onRows` failed.
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
    // A buffer of its own for each read costs more in collected garbage than all else that is done with the rows.
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
  // Whoever closes early does not look at `ended`.
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

/** Memory that is read into over and over, behind the beginning of a line whose end has not come yet. */
class LineBuffer {
  #memory = Buffer.allocUnsafeSlow(2 * READ_BYTES)
  #bytes = 0

  /** What is there, and belongs to no whole line. */
  get bytes(): number {
    return this.#bytes
  }

  /** Where the next bytes go. */
  room(): Buffer {
    if (this.#memory.length - this.#bytes < READ_BYTES) {
      const larger = Buffer.allocUnsafeSlow(2 * this.#memory.length)
      this.#memory.copy(larger, 0, 0, this.#bytes)
      this.#memory = larger
    }
    return this.#memory.subarray(this.#bytes, this.#bytes + READ_BYTES)
  }

  /** So many bytes came into the room. @returns all whole lines, until they are passed */
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

/** What lies there may be an engine's work: nothing but a FIFO is read. */
function openFifo(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  if (fstatSync(fd).isFIFO()) return fd
  closeSync(fd)
  throw new Error(`${path} is no FIFO`)
}
