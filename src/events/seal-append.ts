import { sealEvent, type Sealed } from './envelope.ts'
import { SequenceConflict, TooLarge, Unstorable, type Event, type ResultPage } from './event-log.ts'
import type { OutPage, StoreLimits, StreamCipher, StreamHead } from './record-store.ts'

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
// Control characters separate columns in the text of a statement. A lone surrogate would be read back as another
// character and not match its hash.
const STREAM = /^[^\u0000-\u001f\u007f\p{Surrogate}]{1,255}$/u
const TRACEPARENT = /^[\da-f-]{1,64}$/
/** Size of a record beside its envelope: its header, its key. */
const RECORD_BYTES = 512
/** Limit of the pages that one append writes. */
const MAX_PAGES_BYTES = 64 << 20

/** An append with its position in its stream, ready to be sent any number of times. */
export interface SealedAppend {
  readonly stream: string
  readonly sealed: readonly Sealed[]
  readonly pages: readonly OutPage[]
  /** Encoded size of its events. */
  readonly bytes: number
  /** Bytes that this append holds in the queue: its events, and the pages that it writes. */
  readonly held: number
}

/**
 * Adds the events of an append to the hash chain of its stream.
 * @param known the stream's last event, queued ones included; times are not before `notBefore`
 * @throws SequenceConflict | TooLarge | Unstorable | TypeError nothing of the append may be sent, and no state has
 *   changed
 */
export function sealAppend(
  append: {
    readonly stream: string
    readonly expected: number
    readonly events: readonly Event[]
    readonly pages: readonly ResultPage[]
  },
  known: {
    readonly head: StreamHead
    readonly epoch: number
    readonly notBefore: string
    readonly limits: StoreLimits
    readonly cipher?: StreamCipher | undefined
    readonly now: () => number
  },
): SealedAppend {
  const { stream, expected, events, pages } = append
  const { head, epoch, limits } = known
  if (head.sequence !== expected) throw new SequenceConflict(stream, expected, head.sequence)
  if (events.length === 0) throw new TypeError('An append needs an event')
  if (!STREAM.test(stream)) throw new Unstorable(`Not a stream: ${JSON.stringify(stream).slice(0, 300)}`)
  let pageBytes = 0
  for (const page of pages) pageBytes += page.bytes.length
  if (pageBytes > MAX_PAGES_BYTES) throw new TooLarge(pageBytes, MAX_PAGES_BYTES)
  let { sequence, hash: prevhash } = head
  let time = known.notBefore
  let bytes = 0
  const sealed = events.map((event) => {
    if (!ISO_TIME.test(event.time)) throw new TypeError(`Not an ISO time in UTC with milliseconds: ${event.time}`)
    const { traceparent } = event
    if (traceparent !== undefined && !TRACEPARENT.test(traceparent)) throw new Unstorable('Not a traceparent')
    if (event.time > time) time = event.time
    const made = sealEvent(event, { stream, sequence: ++sequence, epoch, time, prevhash }, known.cipher)
    prevhash = made.envelope.hash
    const size = Buffer.byteLength(made.text) + RECORD_BYTES
    if (size > limits.maxEventBytes) throw new TooLarge(size, limits.maxEventBytes)
    bytes += size
    return made
  })
  if (bytes > limits.maxAppendBytes) throw new TooLarge(bytes, limits.maxAppendBytes)
  const created = pages.length > 0 ? new Date(known.now()).toISOString() : ''
  return {
    stream,
    sealed,
    bytes: bytes - sealed.length * RECORD_BYTES,
    held: bytes + pageBytes,
    pages: pages.map((page) => ({ stream, token: page.token, epoch, created, bytes: page.bytes })),
  }
}
