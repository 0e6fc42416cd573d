import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { Socket } from 'node:net'
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

/**
 * Opens the FIFO at once, without waiting for its writer. `onRows` gets whole lines; while its promise is pending
 * nothing is read, so the writer stops at a full pipe. `onRefused` tells at once that reading has stopped since a row is
 * too large or `onRows` failed.
 */
export function openRowReader(
  path: string,
  onRows: (lines: Buffer) => void | Promise<void>,
  onRefused: (error: unknown) => void,
): RowReader {
  const fd = openFifo(path)
  const socket = new Socket({ fd, readable: true, writable: false })
  let handedOn = false
  let closing = false
  /** The beginning of a line whose end has not come yet. */
  let carry: Buffer[] = []
  let carryBytes = 0
  let failure: unknown

  const fail = (error: unknown): void => {
    if (closing) return
    closing = true
    failure = error
    socket.destroy()
    onRefused(error)
  }

  const handOn = (lines: Buffer): void => {
    handedOn = true
    let taken: void | Promise<void>
    try {
      taken = onRows(lines)
    } catch (error) {
      fail(error)
      return
    }
    if (taken === undefined) return
    socket.pause()
    taken.then(() => {
      if (!closing) socket.resume()
    }, fail)
  }

  socket.on('data', (chunk: Buffer) => {
    if (closing) return
    const end = chunk.lastIndexOf(10) + 1
    if (end === 0) {
      carry.push(chunk)
      carryBytes += chunk.length
      if (carryBytes > MAX_ROW_BYTES) {
        fail(new EngineError('PAGE_TOO_LARGE', `A row is larger than ${MAX_ROW_BYTES / 2 ** 20} MB`))
      }
      return
    }
    const lines = carry.length > 0 ? Buffer.concat([...carry, chunk.subarray(0, end)]) : chunk.subarray(0, end)
    carry = end < chunk.length ? [chunk.subarray(end)] : []
    carryBytes = chunk.length - end
    handOn(lines)
  })

  let atEnd = false
  socket.on('end', () => {
    atEnd = true
  })
  socket.on('error', fail)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const ended = closed.then(() => {
    if (failure !== undefined) throw failure
    if (!atEnd) throw new Error('The rows were not read to their end')
    if (carryBytes > 0) throw new Error('The rows end within a line')
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

/** What lies there may be an engine's work: nothing but a FIFO is read. */
function openFifo(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  if (fstatSync(fd).isFIFO()) return fd
  closeSync(fd)
  throw new Error(`${path} is no FIFO`)
}
