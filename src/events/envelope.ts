import { hash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { decryptData, encryptData } from './data-keys/encrypt.ts'
import {
  LogChanged,
  TooLarge,
  Unstorable,
  type Encoding,
  type Event,
  type Position,
  type Recorded,
} from './event-log.ts'
import type { KeySource, StreamCipher } from './record-store.ts'

/** Data above this many bytes is stored as gzip in base64. */
const GZIP_ABOVE_BYTES = 8192

/** Limits an event's unpacked data: readers hold it in memory, however small its packed form is. */
const MAX_DATA_CHARACTERS = 64 << 20

/** How the log stores data; encrypted data names its key: `aes:block.index`. */
export type StoredEncoding = Encoding | `aes:${string}` | `aes+gzip:${string}`

/** An event as stored: compact JSON. Its data is a string, so that the hashed bytes are the stored bytes. */
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
  readonly enc: StoredEncoding
  readonly data: string
  /** Set when the data was replaced by a tombstone; the digest stays, so the chain stays valid. */
  readonly forgotten?: true
}

/** Data of an event as text, decrypted. */
interface OpenedData {
  readonly enc: Encoding
  readonly stored: string
}

export interface Sealed {
  readonly envelope: StoredEnvelope
  readonly opened: OpenedData
  /** The stored text; has no raw newline or tab. */
  readonly text: string
  /** The data itself, when the event was built by its type: no reader parses its text again. */
  readonly made: { readonly data: unknown } | undefined
}

/**
 * Adds an event to the hash chain of its stream.
 * @param cipher encrypts the data of some streams
 */
export function sealEvent(
  event: Event,
  at: {
    readonly stream: string
    readonly sequence: number
    readonly epoch: number
    readonly time: string
    readonly prevhash: string
  },
  cipher?: Pick<StreamCipher, 'keyFor'>,
): Sealed {
  const json = jsonText(event)
  // Level 1: packing blocks the event loop, and the text of a statement shrinks well at any level.
  const packed = Buffer.byteLength(json) > GZIP_ABOVE_BYTES ? gzipSync(json, { level: 1 }) : undefined
  const opened: OpenedData = packed ? { enc: 'gzip', stored: packed.toString('base64') } : { enc: 'none', stored: json }
  const { stream, sequence, epoch, time, prevhash } = at
  const { type, v, traceparent } = event
  const key = cipher?.keyFor(stream, type)
  const enc = key ? encryptedBy(key.name, opened.enc) : opened.enc
  const header = headerText(stream, { sequence, epoch, type, v, time, traceparent, enc })
  const data = key ? encryptData(key.secret, header, packed ?? json) : opened.stored
  const digest = hash('sha256', data)
  const rest = { prevhash, hash: hash('sha256', prevhash + header + digest), digest, enc, data }
  const envelope: StoredEnvelope =
    traceparent === undefined
      ? { sequence, epoch, type, v, time, ...rest }
      : { sequence, epoch, type, v, time, traceparent, ...rest }
  return { envelope, opened, text: JSON.stringify(envelope), made: event.typed && { data: event.data } }
}

/** The data of an event as JSON. @throws Unstorable | TooLarge */
function jsonText({ type, data }: Event): string {
  let json: string | undefined
  try {
    json = JSON.stringify(data)
  } catch (cause) {
    // The data is nested too deeply, too long for a string, or no JSON at all.
    throw new Unstorable(`Data of ${type} cannot be written: ${(cause as Error).name}`, { cause })
  }
  if (json === undefined) throw new Unstorable(`Data of ${type} is not a JSON value`)
  if (json.length > MAX_DATA_CHARACTERS) throw new TooLarge(json.length, MAX_DATA_CHARACTERS)
  return json
}

/** SHA-256(prevhash ‖ header ‖ digest). Does not need the data, so a tombstone leaves the chain whole. */
export function eventHash(stream: string, e: HeaderFields & Pick<StoredEnvelope, 'prevhash' | 'digest'>): string {
  return hash('sha256', e.prevhash + headerText(stream, e) + e.digest)
}

type HeaderFields = Pick<StoredEnvelope, 'sequence' | 'epoch' | 'type' | 'v' | 'time' | 'enc'> & {
  readonly traceparent?: string | undefined
}

function headerText(stream: string, e: HeaderFields): string {
  return JSON.stringify([stream, e.sequence, e.epoch, e.type, e.v, e.time, e.traceparent ?? '', e.enc])
}

function encryptedBy(key: string, enc: Encoding): StoredEncoding {
  return enc === 'gzip' ? `aes+gzip:${key}` : `aes:${key}`
}

/** How the log encodes the data of an event. */
export function storedEncoding({ enc, key }: Pick<Recorded, 'enc' | 'key'>): StoredEncoding {
  return key === undefined ? enc : encryptedBy(key, enc)
}

/** The name of the key that encrypts data. @returns undefined for unencrypted data */
export function keyNameOf(enc: string): string | undefined {
  return /^aes(?:\+gzip)?:(.+)$/.exec(enc)?.[1]
}

const KEY_IN_ENVELOPE = /"enc":"aes(?:\+gzip)?:([^"]+)"/

/** As `keyNameOf`, for an envelope's text. It must be fast: it runs for every record. */
export function keyNameInText(text: string): string | undefined {
  // Unencrypted data cannot contain this text: quotes are escaped there.
  return text.includes('"enc":"aes') ? KEY_IN_ENVELOPE.exec(text)?.[1] : undefined
}

/** The envelope in a record's text; undefined when the text is none. Does not check its hashes. */
export function readEnvelope(text: string): StoredEnvelope | undefined {
  let read: Partial<StoredEnvelope> | null
  try {
    read = JSON.parse(text) as Partial<StoredEnvelope> | null
  } catch {
    return undefined
  }
  // No schema: a start reads 50,000 envelopes a second.
  const texts = [read?.hash, read?.digest, read?.data, read?.time, read?.type, read?.enc]
  const whole = texts.every((one) => typeof one === 'string') && typeof read?.sequence === 'number'
  return whole ? (read as StoredEnvelope) : undefined
}

/** Reads the envelope of a record that counts. @throws LogChanged when its text is no envelope */
export function parseEnvelope(text: string): StoredEnvelope {
  const envelope = readEnvelope(text)
  if (!envelope) throw new LogChanged('A valid record of the log is not an event')
  return envelope
}

/**
 * Makes the event that readers see from an envelope.
 * @throws LogChanged when the stored bytes are not those that were hashed, or their key is missing
 */
export function toRecorded(stream: string, envelope: StoredEnvelope, position: Position, keys?: KeySource): Recorded {
  checkHash(stream, envelope)
  if (!envelope.forgotten && envelope.digest !== hash('sha256', envelope.data)) throw altered(stream, envelope)
  return recordedOf(stream, envelope, position, openData(stream, envelope, keys))
}

/** As `toRecorded`, for an envelope that this process sealed itself. */
export function openSealed(stream: string, { envelope, opened, made }: Sealed, position: Position): Recorded {
  return recordedOf(stream, envelope, position, opened, made)
}

/**
 * As `toRecorded`, for a row of `query_events`, which holds the decrypted data.
 * @throws LogChanged when the hashes show that the data was altered
 */
export function toProjected(stream: string, row: StoredEnvelope, position: Position): Recorded {
  checkHash(stream, row)
  if (!row.forgotten && keyNameOf(row.enc) === undefined && row.digest !== hash('sha256', row.data))
    throw altered(stream, row)
  return openProjected(stream, row, position)
}

/** As `toProjected`, without checks. */
export function openProjected(stream: string, row: StoredEnvelope, position: Position): Recorded {
  return recordedOf(
    stream,
    row,
    position,
    row.forgotten ? undefined : { enc: plainEncoding(row.enc), stored: row.data },
  )
}

/**
 * Data as text; undefined when it was forgotten.
 * @throws LogChanged when there is no key for it, or the key does not decrypt it
 */
export function openData(stream: string, envelope: StoredEnvelope, keys?: KeySource): OpenedData | undefined {
  if (envelope.forgotten) return undefined
  const name = keyNameOf(envelope.enc)
  if (name === undefined) return { enc: plainEncoding(envelope.enc), stored: envelope.data }
  if (!keys) throw new LogChanged(`Event ${stream}/${envelope.sequence} is encrypted, and this process has no keys`)
  const key = keys.keyOf(name)
  if (!key) return undefined
  const data = decryptData(key, headerText(stream, envelope), envelope.data)
  if (!data)
    throw new LogChanged(
      `Event ${stream}/${envelope.sequence} was not encrypted with key ${name}, although it names this key`,
    )
  const enc = plainEncoding(envelope.enc)
  return { enc, stored: data.toString(enc === 'gzip' ? 'base64' : 'utf8') }
}

function plainEncoding(enc: StoredEncoding): Encoding {
  return enc === 'gzip' || enc.startsWith('aes+gzip:') ? 'gzip' : 'none'
}

function checkHash(stream: string, envelope: StoredEnvelope): void {
  if (envelope.hash !== eventHash(stream, envelope)) throw altered(stream, envelope)
}

function altered(stream: string, { sequence }: StoredEnvelope): LogChanged {
  return new LogChanged(`Event ${stream}/${sequence} was altered after it was written`)
}

/** The stored text of an event whose data is forgotten: its digest stays, so the chain stays valid. */
export function tombstoneText(text: string): string {
  return JSON.stringify({ ...parseEnvelope(text), data: '', forgotten: true } satisfies StoredEnvelope)
}

function recordedOf(
  stream: string,
  envelope: StoredEnvelope,
  position: Position,
  opened: OpenedData | undefined,
  made?: Sealed['made'],
): Recorded {
  // Assigned one by one: an object spread took a tenth of a busy writer's time.
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
    enc: plainEncoding(envelope.enc),
    stored: opened?.stored ?? '',
    data: made ? made.data : opened ? JSON.parse(jsonOf(opened)) : null,
    position,
  }
  const key = keyNameOf(envelope.enc)
  if (key !== undefined) recorded.key = key
  if (envelope.traceparent !== undefined) recorded.traceparent = envelope.traceparent
  if (!opened) recorded.forgotten = true
  if (made) recorded.typed = true
  return recorded
}

/** The JSON of an event's data that is not encrypted, compressed or not. */
export function storedJson({ enc, data }: Pick<StoredEnvelope, 'enc' | 'data'>): string {
  return jsonOf({ enc: plainEncoding(enc), stored: data })
}

function jsonOf({ enc, stored }: OpenedData): string {
  return enc === 'gzip' ? gunzipSync(Buffer.from(stored, 'base64')).toString() : stored
}

/** Memory of an event without its data: its hashes, names and times. */
const EVENT_BYTES = 400

/**
 * An event's approximate memory: its unpacked data, which may be a thousand times the stored size, and the stored text.
 */
export function memoryOf({ enc, stored }: Pick<Recorded, 'enc' | 'stored'>): number {
  if (enc !== 'gzip' || stored === '') return EVENT_BYTES + 2 * stored.length
  // The last four bytes of gzip are the length of the unpacked data.
  const end = Buffer.from(stored.slice(-8), 'base64')
  return EVENT_BYTES + stored.length + end.readUInt32LE(end.length - 4)
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

/** Converts an event to a CloudEvent. @param source URI reference of the log, e.g. `/quipu/<logId>` */
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
