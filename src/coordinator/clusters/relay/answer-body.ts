import type { IncomingMessage } from 'node:http'
import { AnswerNotRead, ClusterLost } from './relay-port.ts'

/** The connection is paused while more bytes than this wait for their reader. */
const MOST_QUEUED_BYTES = 64 * 1024

interface Waiting {
  resolve(result: IteratorResult<Buffer>): void
  reject(error: unknown): void
  readonly late: NodeJS.Timeout
}

/**
 * The body of a cluster's answer, in the buffers in which it arrives: the iterator of a Node stream would join them.
 * The body is read only as fast as its reader asks.
 */
export class AnswerBody implements AsyncIterator<Buffer> {
  readonly #cluster: string
  readonly #message: IncomingMessage
  readonly #silenceMs: number
  readonly #queue: Buffer[] = []
  #queuedBytes = 0
  #waiting: Waiting | undefined
  #end: { readonly error: unknown } | 'whole' | undefined

  /** @param silenceMs how long the body may pause while its reader waits, milliseconds */
  constructor(cluster: string, message: IncomingMessage, silenceMs: number) {
    this.#cluster = cluster
    this.#message = message
    this.#silenceMs = silenceMs
    message.on('data', this.#onData)
    message.on('end', () => this.#onEnd('whole'))
    message.on('error', (error) => this.#onEnd({ error }))
    message.on('close', () => this.#onEnd({ error: new Error('the connection was closed') }))
  }

  /** @throws ClusterLost when the body pauses for too long; AnswerNotRead after `close`; else the connection's error */
  next(): Promise<IteratorResult<Buffer>> {
    const part = this.#queue.shift()
    if (part) {
      this.#queuedBytes -= part.length
      if (this.#queue.length === 0 && this.#message.isPaused()) this.#message.resume()
      return Promise.resolve({ done: false, value: part })
    }
    if (this.#end === 'whole') return Promise.resolve({ done: true, value: undefined })
    if (this.#end) return Promise.reject(this.#end.error)
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        const stalled = new ClusterLost(this.#cluster, 'stalled', `its answer paused for ${this.#silenceMs} ms`)
        this.#onEnd({ error: stalled })
        this.#message.destroy()
      }, this.#silenceMs)
      this.#waiting = { resolve, reject, late }
    })
  }

  /** Drops the rest of the body and closes the connection. */
  close(): void {
    this.#queue.length = 0
    this.#onEnd({ error: new AnswerNotRead(this.#cluster) })
    if (!this.#message.readableEnded) this.#message.destroy()
  }

  readonly #onData = (part: Buffer): void => {
    const waiting = this.#taken()
    if (waiting) return waiting.resolve({ done: false, value: part })
    this.#queue.push(part)
    this.#queuedBytes += part.length
    if (this.#queuedBytes > MOST_QUEUED_BYTES) this.#message.pause()
  }

  /** Ends the body. Only the first call counts. */
  #onEnd(end: { readonly error: unknown } | 'whole'): void {
    this.#end ??= end
    const waiting = this.#taken()
    if (this.#end === 'whole') waiting?.resolve({ done: true, value: undefined })
    else waiting?.reject(this.#end.error)
  }

  #taken(): Waiting | undefined {
    const waiting = this.#waiting
    this.#waiting = undefined
    clearTimeout(waiting?.late)
    return waiting
  }
}
