import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { QueryEvent, QueryEventType } from '../../../src/coordinator/query/stream/events.ts'
import { evolve, foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import { initialQueryState, type QueryState, type QueryStateKind } from '../../../src/coordinator/query/stream/state.ts'
import { at, event, QUERY_ID, queryEventTypes, sampleData } from '../../support/query-events.ts'

const openResult = { lastOfResult: false } as const

/** Events that lead into each state. */
const into: Record<QueryStateKind, readonly QueryEvent[]> = {
  NONE: [],
  QUEUED: [event('QueryCreated')],
  PLANNING: [event('QueryCreated'), event('QueryQueued'), event('QueryAdmitted')],
  STARTING: [event('QueryCreated'), event('QueryPlanned'), event('TaskCreated')],
  RUNNING: [event('QueryCreated'), event('QueryPlanned'), event('TaskCreated'), event('QueryProgressed')],
  FINISHING: [event('QueryCreated'), event('QueryPlanned'), event('TaskCreated'), event('ResultPagesPublished')],
  FINISHED: [
    event('QueryCreated'),
    event('QueryPlanned'),
    event('TaskCreated'),
    event('ResultPagesPublished'),
    event('QueryFinished'),
  ],
  FAILED: [event('QueryCreated'), event('QueryFailed')],
}

type Row = Record<QueryEventType, QueryStateKind>

function row(stays: QueryStateKind, moves: Partial<Row>): Row {
  return { ...(Object.fromEntries(queryEventTypes.map((type) => [type, stays])) as Row), ...moves }
}

/** The next state for each state and event. An event that is not named leaves the state as it is. */
const next: Record<QueryStateKind, Row> = {
  NONE: row('NONE', { QueryCreated: 'QUEUED' }),
  QUEUED: row('QUEUED', { QueryAdmitted: 'PLANNING', QueryPlanned: 'STARTING', QueryFailed: 'FAILED' }),
  PLANNING: row('PLANNING', { QueryPlanned: 'STARTING', QueryFailed: 'FAILED' }),
  STARTING: row('STARTING', {
    TaskFinished: 'RUNNING',
    TaskFailed: 'RUNNING',
    QueryProgressed: 'RUNNING',
    ResultPagesPublished: 'FINISHING',
    QueryFinished: 'FINISHED',
    QueryFailed: 'FAILED',
  }),
  RUNNING: row('RUNNING', { ResultPagesPublished: 'FINISHING', QueryFinished: 'FINISHED', QueryFailed: 'FAILED' }),
  FINISHING: row('FINISHING', { QueryFinished: 'FINISHED', QueryFailed: 'FAILED' }),
  FINISHED: row('FINISHED', {}),
  FAILED: row('FAILED', {}),
}

const cells = (Object.keys(next) as QueryStateKind[]).flatMap((from) =>
  queryEventTypes.map((type) => [from, type, next[from][type]] as const),
)

describe('`evolve`', () => {
  it.each(cells)('leads from the state %s with %s to the state %s', (from, type, to) => {
    const before = foldQuery(QUERY_ID, into[from])
    expect(before.kind).toBe(from)
    expect(evolve(QUERY_ID, before, event(type, 1)).kind).toBe(to)
  })

  it('publishes pages in token order and only once', () => {
    let state: QueryState = foldQuery(QUERY_ID, into.RUNNING)
    state = evolve(QUERY_ID, state, event('ResultPagesPublished', 1, openResult))
    state = evolve(QUERY_ID, state, event('ResultPagesPublished', 2, openResult))
    expect(state.kind === 'NONE' ? [] : state.pages).toHaveLength(1)
    state = evolve(QUERY_ID, state, event('ResultPagesPublished', 3, { firstToken: 1, batch: 1 }))
    expect(state).toMatchObject({ kind: 'FINISHING', resultComplete: true })
    expect(state.kind === 'NONE' ? [] : [...state.pinned]).toEqual([`${QUERY_ID}.1.0/0`, `${QUERY_ID}.1.0/1`])
  })

  it('ignores QueryFailed after WritePrepared, and finishes after WriteCommitted', () => {
    let state: QueryState = foldQuery(QUERY_ID, [...into.RUNNING, event('WritePrepared')])
    state = evolve(QUERY_ID, state, event('QueryFailed'))
    expect(state.kind).toBe('RUNNING')
    state = evolve(QUERY_ID, state, event('WriteCommitted'))
    expect(evolve(QUERY_ID, state, event('QueryFinished')).kind).toBe('FINISHED')
  })

  it('counts the events since the last recovery, which shows two recoveries without progress', () => {
    const once = foldQuery(QUERY_ID, [...into.RUNNING, event('QueryRecovered')])
    expect(once).toMatchObject({ recoveries: 1, eventsSinceRecovery: 0 })
    expect(evolve(QUERY_ID, once, event('QueryProgressed'))).toMatchObject({ recoveries: 1, eventsSinceRecovery: 1 })
  })

  it('counts QueryQueued as an event since the recovery, and starts again from 0 with QueryAdmitted', () => {
    const waits = foldQuery(QUERY_ID, [event('QueryCreated'), event('QueryRecovered'), event('QueryQueued')])
    expect(waits).toMatchObject({ kind: 'QUEUED', recoveries: 1, eventsSinceRecovery: 1 })
    expect(evolve(QUERY_ID, waits, event('QueryAdmitted'))).toMatchObject({ kind: 'PLANNING', eventsSinceRecovery: 0 })
  })

  it('keeps the time of the first QueryQueued when another coordinator queues the query again', () => {
    const waits = foldQuery(QUERY_ID, [event('QueryCreated'), event('QueryQueued', 1), event('QueryRecovered', 2)])
    expect(evolve(QUERY_ID, waits, event('QueryQueued', 3, { position: 7 }))).toMatchObject({
      queued: { position: 7, at: at(1) },
    })
  })
})

const anyEvent = fc
  .constantFrom(...queryEventTypes)
  .chain((type) =>
    fc
      .record({ seconds: fc.nat(100), last: fc.boolean(), token: fc.nat(3) })
      .map(({ seconds, last, token }) =>
        type === 'ResultPagesPublished'
          ? event('ResultPagesPublished', seconds, { firstToken: token, lastOfResult: last })
          : event(type, seconds),
      ),
  )

describe('`evolve` over any events', () => {
  it('never throws, and keeps the state, the pages and the end time of an ended query', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
        let state: QueryState = initialQueryState
        let ended: QueryState | undefined
        for (const one of events) {
          state = evolve(QUERY_ID, state, one)
          if (ended) {
            expect(state.kind).toBe(ended.kind)
            expect(state).toMatchObject({
              pages: 'pages' in ended ? ended.pages : [],
              endedAt: 'endedAt' in ended ? ended.endedAt : '',
            })
          } else if (state.kind === 'FINISHED' || state.kind === 'FAILED') ended = state
        }
      }),
    )
  })

  it('never fails a query with a prepared write, unless the write became impossible', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
        let state: QueryState = foldQuery(QUERY_ID, [...into.RUNNING, event('WritePrepared')])
        for (const one of events) {
          state = evolve(QUERY_ID, state, one)
          expect(state).toMatchObject({ write: sampleData.WritePrepared })
          expect(state.kind).not.toBe('FAILED')
        }
      }),
    )
    const decided = [...into.RUNNING, event('WritePrepared'), event('WriteCommitted', 0, { outcome: 'impossible' })]
    expect(foldQuery(QUERY_ID, [...decided, event('QueryFailed')]).kind).toBe('FAILED')
  })

  it('does not mutate the state that it is given', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 12 }), anyEvent, (events, one) => {
        const before = foldQuery(QUERY_ID, events)
        const copy = structuredClone(before)
        evolve(QUERY_ID, before, one)
        expect(before).toEqual(copy)
      }),
    )
  })
})
