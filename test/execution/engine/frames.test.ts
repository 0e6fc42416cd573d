import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createFrameDecoder, encodeFrame } from '../../../src/execution/engine/frames.ts'

const frame = fc.record({
  header: fc.record({ type: fc.string(), text: fc.string({ unit: 'binary' }), rows: fc.nat() }),
  body: fc.uint8Array({ maxLength: 5000 }).map((bytes) => Buffer.from(bytes)),
})

/** Cuts bytes at arbitrary positions: a stream keeps the order of bytes, but not the borders of writes. */
function cut(bytes: Buffer, offsets: readonly number[]): Buffer[] {
  const borders = [...new Set([0, ...offsets.map((offset) => offset % (bytes.length + 1)), bytes.length])]
  borders.sort((a, b) => a - b)
  return borders.slice(1).map((end, index) => bytes.subarray(borders[index], end))
}

describe('The frame decoder', () => {
  it('returns the frames that were encoded, wherever the stream is cut', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 30 }), (frames, offsets) => {
        const received: unknown[] = []
        const decode = createFrameDecoder<object>(({ header, body }) =>
          received.push({ header, body: Buffer.from(body) }),
        )
        for (const piece of cut(Buffer.concat(frames.map(({ header, body }) => encodeFrame(header, body))), offsets)) {
          decode(piece)
        }
        expect(received).toEqual(frames)
      }),
    )
  })

  it('returns a frame only after its last byte', () => {
    const received: unknown[] = []
    const decode = createFrameDecoder<object>(({ header }) => received.push(header))
    const bytes = encodeFrame({ a: 1 }, Buffer.from('body'))
    decode(bytes.subarray(0, -1))
    expect(received).toEqual([])
    decode(bytes.subarray(-1))
    expect(received).toEqual([{ a: 1 }])
  })

  it('refuses impossible lengths', () => {
    const decode = createFrameDecoder<object>(() => undefined)
    expect(() => decode(Buffer.alloc(8, 0xff))).toThrow(RangeError)
  })

  it('refuses a header above the limit before the header is complete', () => {
    const decode = createFrameDecoder<object>(() => undefined, 100)
    decode(encodeFrame({ text: 'x'.repeat(80) }))
    expect(() => decode(encodeFrame({ text: 'x'.repeat(90) }).subarray(0, 8))).toThrow(RangeError)
  })
})
