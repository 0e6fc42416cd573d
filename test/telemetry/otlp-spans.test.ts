import { afterEach, describe, expect, it } from 'vitest'
import { startSpanExport } from '../../src/telemetry/otlp-spans.ts'
import type { SpanRecord } from '../../src/telemetry/span.ts'
import { startOtlpReceiver, type OtlpReceiver } from '../support/otlp-receiver.ts'

const receivers: OtlpReceiver[] = []
afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.close()
})

async function bed(answer: 'at once' | 'never' | 'with 503' = 'at once') {
  const receiver = await startOtlpReceiver(answer)
  receivers.push(receiver)
  const reported = { exported: 0, dropped: 0 }
  const spans = await startSpanExport({
    collector: {
      url: `${receiver.url}/v1/traces`,
      headers: { 'x-tenant': 'a' },
      resourceAttributes: { team: 'knots' },
    },
    serviceName: 'named',
    instance: 'i',
    version: '1.2.3',
    environment: 'test',
    onSpans: (result, count) => void (reported[result] += count),
  })
  return { receiver, reported, spans }
}

function span(number: number, more: Partial<SpanRecord> = {}): SpanRecord {
  return {
    name: `span "${number}"`,
    kind: 'CLIENT',
    traceId: 'a'.repeat(32),
    spanId: number.toString(16).padStart(16, '0'),
    parentSpanId: 'b'.repeat(16),
    startMs: 1_700_000_000_000.25,
    endMs: 1_700_000_000_001.75,
    attributes: { text: 'Größe\u2028', whole: 3, part: 0.5, yes: true, list: ['x', 'y'] },
    status: 'ERROR',
    statusMessage: 'no',
    events: [{ name: 'exception', atMs: 1_700_000_000_001, attributes: { of: 'event' } }],
    links: [{ traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) }],
    ...more,
  }
}

describe('The export of spans by OTLP', () => {
  it('sends all fields of each span, in batches', async () => {
    const { receiver, reported, spans } = await bed()
    spans.emit(Array.from({ length: 1000 }, (_, number) => span(number + 1)))
    await spans.stop()
    expect(reported).toEqual({ exported: 1000, dropped: 0 })
    expect(receiver.spans.length).toBe(1000)
    expect(receiver.exports.length).toBe(2)
    expect(receiver.exports[0]!.headers).toMatchObject({ 'x-tenant': 'a', 'content-type': 'application/json' })
    expect(receiver.exports[0]!.resource).toMatchObject({ team: 'knots', 'service.name': 'named' })
    expect(receiver.trace('a'.repeat(32)).find(({ spanId }) => spanId === span(1).spanId)).toEqual({
      traceId: 'a'.repeat(32),
      spanId: `${'0'.repeat(15)}1`,
      parentSpanId: 'b'.repeat(16),
      name: 'span "1"',
      kind: 3,
      startMs: 1_700_000_000_000.25,
      endMs: 1_700_000_000_001.75,
      attributes: { text: 'Größe\u2028', whole: 3, part: 0.5, yes: true, list: ['x', 'y'] },
      events: [{ name: 'exception', attributes: { of: 'event' } }],
      links: [{ traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) }],
      statusCode: 2,
    })
  })

  it('sends a batch that is not full after a while', async () => {
    const { receiver, reported, spans } = await bed()
    spans.emit([span(1)])
    await expect.poll(() => receiver.spans.length).toBe(1)
    spans.emit([span(2)])
    await expect.poll(() => reported.exported).toBe(2)
    await spans.stop()
  })

  it('drops and counts spans that the collector refuses, and spans beyond the queue', async () => {
    const { reported, spans } = await bed('with 503')
    spans.emit(Array.from({ length: 512 }, (_, number) => span(number)))
    await expect.poll(() => reported).toEqual({ exported: 0, dropped: 512 })
    const { reported: slow, spans: held } = await bed('never')
    held.emit(Array.from({ length: 20_000 }, (_, number) => span(number)))
    expect(slow.dropped).toBe(20_000 - 16_384)
  })

  it('loses only the batch of a span that cannot be written', async () => {
    const { receiver, reported, spans } = await bed()
    spans.emit([span(1, { startMs: Number.NaN }), ...Array.from({ length: 511 }, (_, number) => span(number + 2))])
    spans.emit([span(1000)])
    await spans.stop()
    expect(reported).toEqual({ exported: 1, dropped: 512 })
    expect(receiver.spans.map(({ spanId }) => Number.parseInt(spanId, 16))).toEqual([1000])
  })
})
