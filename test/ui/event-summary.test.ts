import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  countIn,
  countKinds,
  foldEvents,
  kindOf,
  MOST_PARTS,
  NO_EVENTS,
  positionOf,
  type EventHead,
  type EventSummary,
} from '../../console/api/event-summary.ts'

const KINDS = ['quipu.query.created', 'quipu.query.planned', 'quipu.query.progressed', '__proto__'] as const

/** A stream with pauses of any length between events; a clock may also go back. */
const streams = fc
  .array(
    fc.record({
      kind: fc.constantFrom(...KINDS),
      version: fc.integer({ min: 1, max: 9 }),
      pause: fc.oneof(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 0, max: 10 ** 9 })),
    }),
    { maxLength: 400 },
  )
  .map((events) => {
    let time = Date.UTC(2026, 10, 21)
    return events.map(({ kind, version, pause }, at): EventHead => {
      time += pause
      return { type: `${kind}.v${version}`, time: new Date(time).toISOString(), sequence: at + 1 }
    })
  })

/** Folds a stream in pages. */
function foldPages(stream: readonly EventHead[], page: number): EventSummary {
  let summary = NO_EVENTS
  for (let at = 0; at < stream.length; at += page) summary = foldEvents(summary, stream.slice(at, at + page))
  return summary
}

describe('The summary of the events of a query', () => {
  it('is the same for pages of any length', () => {
    fc.assert(
      fc.property(streams, fc.integer({ min: 1, max: 100 }), (stream, page) => {
        expect(foldPages(stream, page)).toEqual(foldEvents(NO_EVENTS, stream))
      }),
    )
  })

  it('does not change the summary before', () => {
    fc.assert(
      fc.property(streams, streams, (first, second) => {
        const before = foldEvents(NO_EVENTS, first)
        const copy = structuredClone(before)
        foldEvents(before, second)
        expect(before).toEqual(copy)
      }),
    )
  })

  it('counts all events by kind, in at most 200 parts that follow each other', () => {
    fc.assert(
      fc.property(streams, (stream) => {
        const summary = foldEvents(NO_EVENTS, stream)
        for (const kind of KINDS)
          expect(countKinds(summary).get(kind) ?? 0).toBe(stream.filter((event) => kindOf(event) === kind).length)
        expect(summary.count).toBe(stream.length)
        expect(summary.last).toEqual(stream.at(-1))
        expect(summary.parts.length).toBeLessThanOrEqual(MOST_PARTS)
        let next = 1
        for (const [at, part] of summary.parts.entries()) {
          expect(part.first).toBe(next)
          expect(part.index).toBeGreaterThan(summary.parts[at - 1]?.index ?? -1)
          expect(part.index).toBeLessThan(MOST_PARTS)
          next += countIn(part, KINDS)
        }
        expect(next).toBe(stream.length + 1)
      }),
    )
  })

  it('finds each row of the list of some kinds', () => {
    fc.assert(
      fc.property(streams, fc.subarray([...KINDS]), (stream, kinds) => {
        const summary = foldEvents(NO_EVENTS, stream)
        const isWanted = (event: EventHead) => kinds.some((kind) => kind === kindOf(event))
        for (const [row, event] of stream.filter(isWanted).entries()) {
          const { after, skip } = positionOf(summary, kinds, row)
          expect(stream.slice(after).filter(isWanted)[skip]).toEqual(event)
        }
      }),
    )
  })

  it('reads a row of the list of all kinds without events before it', () => {
    fc.assert(
      fc.property(streams, (stream) => {
        const summary = foldEvents(NO_EVENTS, stream)
        for (const row of stream.keys()) expect(positionOf(summary, KINDS, row)).toEqual({ after: row, skip: 0 })
      }),
    )
  })

  it('is no larger for a hundred thousand events than for a thousand', () => {
    const kinds = ['created', 'planned', 'progressed', 'finished']
    const stream = Array.from({ length: 100_000 }, (_, at) => ({
      type: `quipu.query.${kinds[at % 4]}.v1`,
      time: new Date(at * 7).toISOString(),
      sequence: at + 1,
    }))
    const size = (summary: EventSummary) =>
      JSON.stringify(summary, (_, value: unknown) => (value instanceof Map ? [...value] : value)).length
    const small = foldPages(stream.slice(0, 1000), 1000)
    const large = foldPages(stream, 1000)
    expect(large.plans).toEqual(large.plans.toSorted((a, b) => a - b).slice(-100))
    expect(large.plans.at(-1)).toBe(99_998)
    expect(size(large)).toBeLessThan(2 * size(small))
  })

  it('knows the end of the query, also if deliveries follow it', () => {
    const stream = ['quipu.query.created.v1', 'quipu.query.failed.v4', 'quipu.results.delivered.v1'].map(
      (type, at): EventHead => ({ type, time: '2026-11-21T00:00:00.000Z', sequence: at + 1 }),
    )
    expect(stream.map((_, at) => foldPages(stream.slice(0, at + 1), 1).hasEnd)).toEqual([false, true, true])
  })

  it('counts events whose time is no time, at the time of the event before', () => {
    const summary = foldEvents(NO_EVENTS, [
      { type: 'a.v1', time: '2026-11-21T00:00:00.000Z', sequence: 1 },
      { type: 'a.v1', time: 'soon', sequence: 2 },
      { type: 'a.v1', time: '2026-11-21T00:00:00.005Z', sequence: 3 },
    ])
    expect(summary.parts.map(({ index, first }) => [index, first])).toEqual([
      [0, 1],
      [5, 3],
    ])
  })
})
