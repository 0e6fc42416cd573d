import { hash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { LogChanged, type Encoding, type Event, type Position, type Recorded } from './event-log.ts'

/** Data above this many bytes is stored as gzip in base64. */
export const GZIP_ABOVE_BYTES = 8192

/** An event as stored: compact JSON, its data a string so that the bytes hashed are the bytes kept. */
export interface StoredEnvelope {
  readonly sequence: number
  readonly epoch: number
  readonly type: string
  readonly v: number
  readonly time: string
  readonly traceparent?: string
  readonly prevhash: string
  readonly hash: string
  readonly digest: string
  readonly enc: Encoding
  readonly data: string
  /** The data was replaced by a tombstone; the digest, and so the chain, still stands. */
  readonly forgotten?: true
}

export interface Sealed {
  readonly envelope: StoredEnvelope
  /** The stored text; has no raw newline or tab. */
  readonly text: string
  readonly typed: boolean
}

/** Gives an event its place in its stream's hash chain. */
export function sealEvent(
  event: Event,
  at: {
    readonly stream: string
    readonly sequence: number
    readonly epoch: number
    readonly time: string
    readonly prevhash: string
  },
): Sealed {
  const json = JSON.stringify(event.data)
  if (json === undefined) throw new TypeError(`Data of ${event.type} is no JSON value`)
  const enc: Encoding = Buffer.byteLength(json) > GZIP_ABOVE_BYTES ? 'gzip' : 'none'
  // Level 1: events wait for this on the event loop, and the text of a statement shrinks well at any level.
  const data = enc === 'gzip' ? gzipSync(json, { level: 1 }).toString('base64') : json
  const digest = hash('sha256', data)
  const { stream, sequence, epoch, time, prevhash } = at
  const { type, v, traceparent } = event
  const hashOf = eventHash(stream, { sequence, epoch, type, v, time, traceparent, prevhash, digest, enc })
  const rest = { prevhash, hash: hashOf, digest, enc, data }
  const envelope: StoredEnvelope =
    traceparent === undefined
      ? { sequence, epoch, type, v, time, ...rest }
      : { sequence, epoch, type, v, time, traceparent, ...rest }
  return { envelope, text: JSON.stringify(envelope), typed: event.typed ?? false }
}

/** SHA-256(prevhash ‖ header ‖ digest): does not need the data, so a tombstone leaves the chain whole. */
export function eventHash(
  stream: string,
  e: Omit<StoredEnvelope, 'hash' | 'data' | 'traceparent' | 'forgotten'> & { traceparent?: string | undefined },
): string {
  const header = JSON.stringify([stream, e.sequence, e.epoch, e.type, e.v, e.time, e.traceparent ?? '', e.enc])
  return hash('sha256', e.prevhash + header + e.digest)
}

/** @throws LogChanged when the text is no envelope */
export function parseEnvelope(text: string): StoredEnvelope {
  try {
    return JSON.parse(text) as StoredEnvelope
  } catch (cause) {
    throw new LogChanged('A valid record of the log is no JSON', { cause })
  }
}

/**
 * What readers get of an envelope.
 * @throws LogChanged when the stored bytes are not those that were hashed
 */
export function toRecorded(stream: string, envelope: StoredEnvelope, position: Position): Recorded {
  if (
    envelope.hash !== eventHash(stream, envelope) ||
    (!envelope.forgotten && envelope.digest !== hash('sha256', envelope.data))
  )
    throw new LogChanged(`Event ${stream}/${envelope.sequence} was altered after it was written`)
  return openEnvelope(stream, envelope, position)
}

/** The stored text of an event whose data is gone: its digest stays, and with it the chain. */
export function tombstoneOf(text: string): string {
  return JSON.stringify({ ...parseEnvelope(text), data: '', forgotten: true } satisfies StoredEnvelope)
}

/** As `toRecorded`, for an envelope this process sealed itself. */
export function openEnvelope(stream: string, envelope: StoredEnvelope, position: Position, typed = false): Recorded {
  // Written out: a spread here was a tenth of a busy writer's time.
  const recorded: { -readonly [Key in keyof Recorded]: Recorded[Key] } = {
    stream,
    sequence: envelope.sequence,
    epoch: envelope.epoch,
    type: envelope.type,
    v: envelope.v,
    time: envelope.time,
    prevhash: envelope.prevhash,
    hash: envelope.hash,
    digest: envelope.digest,
    enc: envelope.enc,
    stored: envelope.data,
    data: envelope.forgotten ? null : JSON.parse(plainText(envelope)),
    position,
  }
  if (envelope.traceparent !== undefined) recorded.traceparent = envelope.traceparent
  if (envelope.forgotten) recorded.forgotten = true
  if (typed) recorded.typed = true
  return recorded
}

function plainText(envelope: StoredEnvelope): string {
  return envelope.enc === 'gzip' ? gunzipSync(Buffer.from(envelope.data, 'base64')).toString() : envelope.data
}

/** CloudEvents 1.0 in structured mode; extension attributes in lower case as it demands. */
export interface CloudEvent {
  readonly specversion: '1.0'
  readonly id: string
  readonly source: string
  readonly type: string
  readonly subject: string
  readonly time: string
  readonly datacontenttype: 'application/json'
  readonly data: unknown
  readonly sequence: number
  readonly epoch: number
  readonly traceparent?: string
  readonly prevhash: string
  readonly hash: string
  readonly digest: string
}

/** @param source URI reference of the log, e.g. `/quipu/<logId>` */
export function toCloudEvent(event: Recorded, source: string): CloudEvent {
  return {
    specversion: '1.0',
    id: `${event.stream}/${event.sequence}`,
    source,
    type: cloudEventType(event.type, event.v),
    subject: event.stream,
    time: event.time,
    datacontenttype: 'application/json',
    sequence: event.sequence,
    epoch: event.epoch,
    ...(event.traceparent === undefined ? {} : { traceparent: event.traceparent }),
    prevhash: event.prevhash,
    hash: event.hash,
    digest: event.digest,
    data: event.data,
  }
}

/** `ResultPagesPublished`, 1 -> `quipu.resultpages.published.v1`: the last word is the verb. */
export function cloudEventType(type: string, v: number): string {
  const words = type.split(/(?=[A-Z])/)
  const verb = words.pop() ?? ''
  return `quipu.${words.join('').toLowerCase()}.${verb.toLowerCase()}.v${v}`
}
