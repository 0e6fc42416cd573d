import { describe, expect, it } from 'vitest'
import { readStreamsOfLog } from '../../../src/coordinator/recovery/streams-of-log.ts'
import { beginning, type Checkpoint, type EventLog, type Recorded } from '../../../src/events/event-log.ts'

const id = (number: number) => `20260102_030405_${String(number).padStart(5, '0')}_00001`
const EVERYTHING = '2000-01-01T00:00:00.000Z'

/** A log with these events. */
function logOf(
  events: readonly (readonly [stream: string, type: string])[],
  bytes = 1000,
): Pick<EventLog, 'read' | 'start'> {
  const sequences = new Map<string, number>()
  const recorded = events.map(([stream, type], index) => {
    const sequence = (sequences.get(stream) ?? 0) + 1
    sequences.set(stream, sequence)
    const position = { partition: 0, offset: BigInt(index) }
    return { stream, type, sequence, position, time: '2026-01-02T03:04:05.000Z', stored: 'x'.repeat(bytes) } as Recorded
  })
  return {
    start: async () => beginning(),
    async read(from, limit) {
      const start = Number(from.at[0]!.offset)
      const found = recorded.slice(start, Math.min(start + limit, start + 10))
      const next = { logId: '', at: [{ ...from.at[0]!, offset: BigInt(start + found.length) }] } as Checkpoint
      return { events: found, next }
    },
  }
}

describe('`readStreamsOfLog`', () => {
  it('returns the open queries in order, and the streams of recently ended queries', async () => {
    const log = logOf([
      [id(1), 'QueryCreated'],
      [id(2), 'QueryCreated'],
      ['system', 'EpochStarted'],
      [id(1), 'QueryFinished'],
      [id(3), 'QueryCreated'],
    ])
    const streams = await readStreamsOfLog(log, { endedSince: EVERYTHING, onLeftOut: () => {} })
    expect(streams.open).toEqual([id(2), id(3)])
    expect(streams.get(id(1))?.map(({ type }) => type)).toEqual(['QueryCreated', 'QueryFinished'])
    expect((await readStreamsOfLog(log, { endedSince: '2027', onLeftOut: () => {} })).get(id(1))).toBeUndefined()
  })

  it('keeps streams up to `maxBytes`, and reports the positions of the streams that it leaves out', async () => {
    const numbers = Array.from({ length: 300 }, (_, index) => index)
    const log = logOf([
      ...numbers.map((number) => [id(number), 'QueryCreated'] as const),
      ...numbers.filter((number) => number % 3 === 0).map((number) => [id(number), 'QueryFinished'] as const),
      ...numbers.filter((number) => number % 3 === 1).map((number) => [id(number), 'QueryPlanned'] as const),
    ])
    const leftOut = new Map<string, unknown>()
    const maxBytes = 400_000
    const streams = await readStreamsOfLog(log, {
      endedSince: EVERYTHING,
      maxBytes,
      onLeftOut: (stream, span) => void leftOut.set(stream, span),
    })
    expect(streams.open).toEqual(numbers.filter((number) => number % 3 !== 0).map(id))
    const kept = numbers.map((number) => streams.get(id(number))).filter((events) => events !== undefined)
    const keptBytes = kept.flat().reduce((sum, { stored }) => sum + 2 * stored.length, 0)
    expect(keptBytes).toBeLessThanOrEqual(maxBytes)
    expect(kept.length).toBeGreaterThan(20)
    expect(kept.length + leftOut.size).toBe(300)
    // The position of the last event is known, although the first event was dropped from memory before.
    expect(leftOut.get(id(1))).toEqual({ first: { partition: 0, offset: 1n }, last: { partition: 0, offset: 400n } })
  })
})
