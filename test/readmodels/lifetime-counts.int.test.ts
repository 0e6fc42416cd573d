import type { QueryId } from '../../src/shared/ids.ts'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { countFact } from '../../src/coordinator/query/telemetry/event-counters.ts'
import { createEventLogTelemetry } from '../../src/events/telemetry/event-log-telemetry.ts'
import { restoreCounters } from '../../src/processes/health/restored-counters.ts'
import type { QueryEvent } from '../../src/coordinator/query/stream/events.ts'
import { evolve } from '../../src/coordinator/query/stream/evolve.ts'
import { countQuery } from '../../src/coordinator/query/telemetry/query-metrics.ts'
import { initialQueryState, type QueryState } from '../../src/coordinator/query/stream/state.ts'
import { createPostgresEventLog } from '../../src/events/postgres/postgres-event-log.ts'
import { readLifetimeCounts, type LifetimeCounts, type RecordedCounts } from '../../src/readmodels/lifetime-counts.ts'
import { noSpans } from '../../src/telemetry/span.ts'
import { createMeters, type Meters } from '../../src/telemetry/meters.ts'
import { buckets } from '../../src/telemetry/metrics/metric-definition.ts'
import { parseOpenMetrics } from '../support/openmetrics.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

const HERE = 'http://127.0.0.1:8080'
const ELSEWHERE = 'http://127.0.0.1:8081'
const LATER = '2026-03-02T00:00:00.000Z'
const names = {
  connectorOf: (catalog: string): string => (catalog === 'tpch' ? 'tpch' : 'lake'),
  groupLabel: (group: string): string => group,
}

let live: Meters
let bed: ReadModelBed
beforeEach(async () => {
  live = await createMeters({ on: 'coordinator', processMetrics: false })
  const { hooks } = createEventLogTelemetry({
    meters: () => live,
    spans: () => noSpans,
    topic: undefined,
    onTrouble: () => {},
    onEvent: countFact,
  })
  bed = await openReadModelBed(undefined, hooks)
})
afterEach(() => bed.close())

/** Makes queries of several kinds. */
function lives(count: number, from = 0): { queryId: QueryId; events: QueryEvent[] }[] {
  return Array.from({ length: count }, (_, index) => {
    const queryId = testQueryId(from + index)
    const events = queryLife(queryId, {
      user: `user ${index % 3}`,
      source: index % 2 === 0 ? 'dbt' : 'quipu-test',
      end: index % 4 === 3 ? 'failed' : 'finished',
      // The queries follow each other, because times of the log never decrease.
      startMillis: Date.parse('2026-03-01T10:00:00.000Z') + index * 60_000,
    }).map((event) => changed(event, index))
    return { queryId, events }
  })
}

/** Changes an event: different end times, splits of two catalogs, and a write in every fifth query. */
function changed(event: QueryEvent, index: number): QueryEvent {
  if (event.type === 'QueryFinished' || event.type === 'QueryFailed')
    return { ...event, time: new Date(Date.parse(event.time) + index ** 4).toISOString() }
  if (event.type !== 'QueryPlanned') return event
  const split = (catalog: string) => ({ scan: 0, catalog, data: {} })
  const splits = [split('tpch'), split('tpch'), split('files')].slice(0, 1 + (index % 3))
  return {
    ...event,
    data: {
      ...event.data,
      stages: event.data.stages.map((stage) => (stage.id === 1 ? { ...stage, splits } : stage)),
      tables: event.data.tables.map((table) => (index % 5 === 0 ? { ...table, mode: 'WRITE' as const } : table)),
    },
  } as QueryEvent
}

function countLive(all: readonly { queryId: QueryId; events: readonly QueryEvent[] }[]): void {
  for (const { queryId, events } of all) {
    const state = events.reduce<QueryState>((now, event) => evolve(queryId, now, event), initialQueryState)
    if (state.kind === 'FINISHED' || state.kind === 'FAILED') countQuery(state, undefined, live, names)
  }
}

async function countsOf(address: string, before = 1000): Promise<LifetimeCounts> {
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  return readLifetimeCounts(bed.config, { address, before, bounds: buckets.query })
}

async function restored(counts: LifetimeCounts): Promise<Record<string, number>> {
  const meters = await createMeters({ on: 'coordinator', processMetrics: false })
  restoreCounters(counts, meters, names)
  return figuresOf(meters)
}

async function figuresOf(meters: Meters): Promise<Record<string, number>> {
  const samples = parseOpenMetrics((await meters.text()).body)
  return Object.fromEntries(
    samples
      .filter(({ name, value }) => value !== 0 && RESTORED.test(name))
      .map(({ name, labels, value }) => [`${name} ${JSON.stringify(Object.entries(labels).toSorted())}`, value]),
  )
}

const RESTORED =
  /^quipu_(queries_total|query_errors|query_cpu|query_rows|query_bytes|query_duration|user_queries|source_queries|plans|tasks|splits|writes|event_bytes|events_appended|access_denied|pages_lost)/

describe('The lifetime counts of coordinators at an address', () => {
  it('are restored from the read models with all labels', async () => {
    const all = lives(12)
    await appendLives(bed.log, all, 1)
    countLive(all)
    const [first] = all
    const lost: QueryEvent = { type: 'ResultPagesLost', time: LATER, data: { tokens: [1, 2, 3], reason: 'gone' } }
    await bed.log.append(first!.queryId, first!.events.length, toLogEvents([lost]))
    const denied = { user: 'eve "\u0001', action: 'kill', object: 'x', count: 4, minute: '2026-03-02T00:00' }
    await bed.log.append('system', 1, [{ type: 'AccessDenied', v: 1, time: LATER, data: denied }])
    const before = await figuresOf(live)
    const after = await restored(await countsOf(HERE))
    expect(Object.keys(after).toSorted()).toEqual(Object.keys(before).toSorted())
    for (const [series, value] of Object.entries(before)) {
      expect(after[series], series).toBeGreaterThanOrEqual(value)
      expect(after[series], series).toBeCloseTo(value, 4)
    }
    const [kinds] = Object.entries(after).filter(([series]) => series.startsWith('quipu_splits_total'))
    expect(kinds).toBeDefined()
    expect(Object.keys(after).some((series) => series.startsWith('quipu_query_duration_seconds_bucket'))).toBe(true)
  })

  it('exclude counts of other addresses and of the current epoch', async () => {
    const ours = lives(4)
    await appendLives(bed.log, ours)
    const other = createPostgresEventLog(bed.config, { now: () => Date.parse('2026-03-02T00:00:00Z') })
    await other.open()
    try {
      await other.claim({ address: ELSEWHERE, version: 'test' })
      await appendLives(other, lives(2, 100))
      const sum = ({ recorded }: LifetimeCounts): number =>
        recorded!.queries.reduce((total, { count }) => total + count, 0)
      const here = await countsOf(HERE)
      expect([here.epochs, sum(here)]).toEqual([1, 4])
      const elsewhere = await readLifetimeCounts(bed.config, { address: ELSEWHERE, before: 3, bounds: [1] })
      expect([elsewhere.epochs, sum(elsewhere)]).toEqual([1, 2])
      const own = await readLifetimeCounts(bed.config, { address: ELSEWHERE, before: 2, bounds: [1] })
      expect([own.epochs, sum(own), own.recorded?.events]).toEqual([0, 0, []])
    } finally {
      await other.close()
    }
  })

  it('have only the number of epochs if data was forgotten, because lower counts would look like a restart', async () => {
    await appendLives(bed.log, lives(2))
    expect((await countsOf(HERE)).recorded).toBeDefined()
    await bed.query(`update query_events set forgotten = true where sequence = 1 and stream like '2026%'`)
    const counts = await readLifetimeCounts(bed.config, { address: HERE, before: 9, bounds: [1] })
    expect(counts).toEqual({ epochs: 1, recorded: undefined })
    const meters = await createMeters({ on: 'coordinator', processMetrics: false })
    restoreCounters(counts, meters, names)
    expect((await meters.text()).body).toContain('quipu_epoch_claims_total{result="won"} 1')
    expect(await figuresOf(meters)).toEqual({})
  })
})

describe('The counters of the most frequent values', () => {
  it('are not restored if there are more values than the limit', async () => {
    const recorded: RecordedCounts = {
      queries: [],
      users: Array.from({ length: 21 }, (_, index) => ({ value: `user ${index}`, count: 1 })),
      sources: [{ value: null, count: 2 }],
      durations: [],
      tasks: [],
      splits: [],
      refusedWrites: 0,
      events: [],
      facts: [],
    }
    expect(await restored({ epochs: 0, recorded })).toEqual({ 'quipu_source_queries_total [["source","none"]]': 2 })
  })
})
