import { describe, expect, it } from 'vitest'
import { createSpanMaker } from '../../../src/processes/telemetry/span-maker.ts'
import type { TracedAppend } from '../../../src/events/telemetry/append-span.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import { querySpans } from '../../../src/coordinator/query/telemetry/query-spans.ts'
import type { SpanRecord } from '../../../src/telemetry/span.ts'
import { queryLife, testQueryId } from '../../support/query-life.ts'

const queryId = testQueryId(1)
const life = queryLife(queryId, {}).map((event) =>
  event.type === 'QueryCreated'
    ? { ...event, data: { ...event.data, traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, sampled: true } }
    : event,
)

function append(events: typeof life): TracedAppend {
  return {
    kind: 'append',
    stream: queryId,
    sequence: events.length,
    epoch: 1,
    queueMs: 1,
    sendMs: 2,
    readBackMs: 3,
    traceId: 'a'.repeat(32),
    spanId: 'c'.repeat(16),
    parentSpanId: 'd'.repeat(16),
    endMs: 10_000,
    events: events.map(({ type, time, data }) => ({ type, time, enc: 'none', stored: JSON.stringify(data) })),
  }
}

describe('The spans made from appended events', () => {
  it('are the spans of the query, however its events are split into appends', () => {
    const made: SpanRecord[] = []
    const maker = createSpanMaker((spans) => void made.push(...spans))
    maker.take(append(life.slice(0, 2)))
    maker.take(append(life.slice(2)))
    expect(made.map(({ name, startMs, endMs }) => [name, endMs - startMs])).toEqual([
      ['append', 6],
      ['append', 6],
    ])
    made.length = 0
    maker.take({ kind: 'queryEnded', queryId, options: {} })
    const state = foldQuery(queryId, life)
    if (state.kind === 'NONE') throw new Error('the query is there')
    expect(made).toEqual(querySpans(state))
    expect(made.length).toBeGreaterThan(3)
  })

  it('leave out a query whose first events were not seen', () => {
    const made: SpanRecord[] = []
    const maker = createSpanMaker((spans) => void made.push(...spans))
    maker.take(append(life.slice(2)))
    maker.take({ kind: 'queryEnded', queryId, options: {} })
    expect(made.map(({ name }) => name)).toEqual(['append'])
  })

  it('are made once for each query', () => {
    const made: SpanRecord[] = []
    const maker = createSpanMaker((spans) => void made.push(...spans))
    maker.take(append(life))
    maker.take({ kind: 'queryEnded', queryId, options: {} })
    made.length = 0
    maker.take({ kind: 'queryEnded', queryId, options: {} })
    expect(made).toEqual([])
  })
})
