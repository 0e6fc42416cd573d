import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  cloudEventType,
  openSealed,
  parseEnvelope,
  sealEvent,
  toCloudEvent,
  toRecorded,
} from '../../src/events/envelope.ts'
import { LogChanged, Unstorable, type Event } from '../../src/events/event-log.ts'

const event: Event = {
  type: 'QueryCreated',
  v: 2,
  time: '2026-01-02T03:04:05.678Z',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  data: { sql: 'SELECT 1', user: 'a\u0000b' },
}
const at = { stream: 'q', sequence: 3, epoch: 5, time: event.time, prevhash: 'ff00' }
const position = { partition: 0, offset: 9n }
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('The stored envelope of an event', () => {
  it('contains hashes that every reader can recompute', () => {
    const { envelope, text } = sealEvent(event, at)
    const data = JSON.stringify(event.data)
    expect(envelope.data).toBe(data)
    expect(envelope.digest).toBe(sha256(data))
    const header = JSON.stringify(['q', 3, 5, 'QueryCreated', 2, event.time, event.traceparent, 'none'])
    expect(envelope.hash).toBe(sha256(`ff00${header}${envelope.digest}`))
    expect(text).not.toMatch(/[\n\t]/)
    expect(Object.keys(JSON.parse(text) as object)).toEqual(
      ['sequence', 'epoch', 'type', 'v', 'time', 'traceparent', 'prevhash', 'hash', 'digest', 'enc', 'data'], // prettier-ignore
    )
  })

  it('omits an absent traceparent', () => {
    const { traceparent: _, ...rest } = event
    const { envelope, text } = sealEvent(rest, at)
    expect(text).not.toContain('traceparent')
    const header = JSON.stringify(['q', 3, 5, 'QueryCreated', 2, event.time, '', 'none'])
    expect(envelope.hash).toBe(sha256(`ff00${header}${envelope.digest}`))
    expect(toRecorded('q', parseEnvelope(text), position)).not.toHaveProperty('traceparent')
  })

  it('is parsed to the event that was sealed', () => {
    const { text } = sealEvent(event, at)
    const recorded = toRecorded('q', parseEnvelope(text), position)
    expect(recorded).toMatchObject({
      ...event,
      stream: 'q',
      sequence: 3,
      epoch: 5,
      prevhash: 'ff00',
      enc: 'none',
      position,
    })
  })

  it.each([1, 9000])(
    'gives the writer the same event as a reader, without parsing typed data again: %i characters',
    (length) => {
      const made = { ...event, data: { text: 'é'.repeat(length) } }
      const sealed = sealEvent(made, at)
      const read = toRecorded('q', parseEnvelope(sealed.text), position)
      expect(openSealed('q', sealed, position)).toEqual(read)
      const typed = openSealed('q', sealEvent({ ...made, typed: true }, at), position)
      expect(typed).toEqual({ ...read, typed: true })
      expect(typed.data).toBe(made.data)
    },
  )

  it('compresses data above 8 kB with gzip', () => {
    const data = { text: 'é'.repeat(5000) }
    const { envelope } = sealEvent({ ...event, data }, at)
    expect(envelope.enc).toBe('gzip')
    expect(gunzipSync(Buffer.from(envelope.data, 'base64')).toString()).toBe(JSON.stringify(data))
    expect(envelope.digest).toBe(sha256(envelope.data))
    expect(toRecorded('q', envelope, position).data).toEqual(data)
    expect(sealEvent({ ...event, data: 'x'.repeat(8190) }, at).envelope.enc).toBe('none')
    expect(sealEvent({ ...event, data: 'x'.repeat(8191) }, at).envelope.enc).toBe('gzip')
  })

  it.each([
    ['data', { data: '{"sql":"SELECT 2"}' }],
    ['type', { type: 'QueryFailed' }],
    ['time', { time: '2026-01-02T03:04:05.679Z' }],
    ['sequence', { sequence: 4 }],
    ['prevhash', { prevhash: 'ff01' }],
    ['digest', { digest: 'aa' }],
  ])('is refused if its %s was changed', (_, change) => {
    const { envelope } = sealEvent(event, at)
    expect(() => toRecorded('q', { ...envelope, ...change }, position)).toThrow(LogChanged)
  })

  it('is refused in another stream', () => {
    expect(() => toRecorded('r', sealEvent(event, at).envelope, position)).toThrow(LogChanged)
  })

  it('is still verified after its data was forgotten', () => {
    const { envelope } = sealEvent({ ...event, data: 'x'.repeat(9000) }, at)
    const recorded = toRecorded('q', { ...envelope, data: '', forgotten: true }, position)
    expect(recorded).toMatchObject({ data: null, forgotten: true, hash: envelope.hash })
  })

  it('refuses data that JSON cannot represent', () => {
    expect(() => sealEvent({ ...event, data: undefined }, at)).toThrow(Unstorable)
  })
})

describe('CloudEvents', () => {
  it('represent an event in version 1.0', () => {
    const { envelope } = sealEvent(event, at)
    expect(toCloudEvent(toRecorded('q', envelope, position), '/quipu/log')).toEqual({
      specversion: '1.0',
      id: 'q/3',
      source: '/quipu/log',
      type: 'quipu.query.created.v2',
      subject: 'q',
      time: event.time,
      datacontenttype: 'application/json',
      sequence: 3,
      epoch: 5,
      traceparent: event.traceparent,
      prevhash: 'ff00',
      hash: envelope.hash,
      digest: envelope.digest,
      data: event.data,
    })
  })

  it.each([
    ['QueryCreated', 'quipu.query.created.v1'],
    ['ResultPagesPublished', 'quipu.resultpages.published.v1'],
    ['EpochStarted', 'quipu.epoch.started.v1'],
  ])('give the event type %s the name %s', (type, expected) => expect(cloudEventType(type, 1)).toBe(expected))
})
