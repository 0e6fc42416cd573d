import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RuntimeSources } from '../../../src/connectors/system/system-connector.ts'
import { foldQuery } from '../../../src/coordinator/query/evolve.ts'
import type { KnownQuery } from '../../../src/coordinator/query/state.ts'
import type { LiveQueryView } from '../../../src/protocol/query/live-queries.ts'
import { createRuntimeSources } from '../../../src/protocol/query/runtime-sources.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { queryLife, taskStats, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../../support/read-models.ts'
import { parseNodeId, parseTaskId } from '../../../src/shared/ids.ts'

let bed: ReadModelBed
let sources: RuntimeSources
const live = new Map<string, LiveQueryView>()
const stored = testQueryId(1)
const open = testQueryId(2)

beforeAll(async () => {
  bed = await openReadModelBed()
  const runner = await bed.startRunner({ lingerMs: 60_000, enough: 100_000 })
  sources = createRuntimeSources({
    live: { get: (id) => live.get(id), list: () => [...live.values()] },
    read: (text, values) => bed.query(text, [...values]),
    projection: runner,
    membership: { nodes: () => [] },
    clock: systemClock,
    self: { nodeId: parseNodeId('c1'), url: 'http://127.0.0.1:8080', version: '0.1.0' },
    ownWritesWaitMs: 10_000,
  })
  await bed.log.append(stored, 0, toLogEvents(queryLife(stored, { startMillis: Date.now() - 1000 })))
  const query = foldQuery(open, queryLife(open, { startMillis: Date.now(), end: 'open' }).slice(0, 3)) as KnownQuery
  live.set(open, {
    query,
    sequence: 3,
    liveStats: new Map([[parseTaskId(`${open}.1.0`), taskStats({ rawInputPositions: 77 })]]),
  })
})
afterAll(() => bed.close())

describe('system.runtime', () => {
  it('queries are there without waiting for the projection to linger, memory over tables', async () => {
    const rows = await sources.queries()
    expect(rows.map((row) => [row['query_id'], row['state'], row['user']])).toEqual([
      [open, 'STARTING', 'alice'],
      [stored, 'FINISHED', 'alice'],
    ])
    expect(rows[1]).toMatchObject({
      source: 'quipu-test',
      query: 'SELECT name FROM nation',
      resource_group_id: ['global'],
      queued_time_ms: 1,
      analysis_time_ms: 2,
      planning_time_ms: 3,
      error_type: null,
    })
  })

  it('tasks have the newest figures', async () => {
    const rows = await sources.tasks()
    expect(
      rows.map((row) => [row['task_id'], row['stage_id'], row['node_id'], row['state'], row['raw_input_rows']]),
    ).toEqual([
      [`${open}.1.0`, `${open}.1`, 'worker-1', 'PLANNED', 77],
      [`${stored}.0.0`, `${stored}.0`, 'coordinator', 'FINISHED', 23],
      [`${stored}.1.0`, `${stored}.1`, 'worker-1', 'FINISHED', 25],
    ])
    expect(rows[2]).toMatchObject({
      splits: 7,
      queued_splits: 1,
      running_splits: 2,
      completed_splits: 3,
      split_cpu_time_ms: 120,
      raw_input_bytes: 10_240,
      processed_input_rows: 24,
      output_rows: 23,
      output_bytes: 1000,
    })
  })

  it('operators, events and nodes', async () => {
    expect((await sources.operators()).map((row) => [row['task_id'], row['operator_type']])).toContainEqual([
      `${stored}.1.0`,
      'TaskOutputOperator',
    ])
    expect((await sources.events()).map((row) => [row['sequence'], row['type']])).toEqual([
      [1, 'QueryCreated'],
      [2, 'QueryPlanned'],
      [3, 'TaskCreated'],
      [4, 'TaskFinished'],
      [5, 'TaskFinished'],
      [6, 'ResultPagesPublished'],
      [7, 'QueryFinished'],
    ])
    expect(await sources.nodes()).toEqual([
      { node_id: 'c1', http_uri: 'http://127.0.0.1:8080', node_version: '0.1.0', coordinator: true, state: 'active' },
    ])
  })

  it('leave older queries out when the texts of the newest take much memory', async () => {
    let read = 0
    const long = createRuntimeSources({
      live: { get: () => undefined, list: () => [] },
      read: async (text, values) => {
        const rows = await bed.query(text, [...values])
        const [first] = rows
        if (!text.includes('from queries') || !first) return rows
        // As if so many queries as are asked for were there, each time anew.
        const length = Number(values.at(-1))
        read += length
        return Array.from({ length }, (_, index) => ({
          ...first,
          query_id: testQueryId(read + index),
          sql_text: 'x'.repeat(1 << 17),
        }))
      },
      projection: { barrier: async () => true },
      membership: { nodes: () => [] },
      clock: systemClock,
      self: { nodeId: parseNodeId('c1'), url: 'http://127.0.0.1:8080', version: '0.1.0' },
      ownWritesWaitMs: 10_000,
    })
    const rows = await long.queries()
    expect(rows.length).toBe((24 * 1024 * 1024) / (1 << 17))
    expect(read).toBeLessThanOrEqual(rows.length + 20)
  })

  it('says that the database is away, not what it said', async () => {
    const told: unknown[] = []
    const away = createRuntimeSources({
      live: { get: () => undefined, list: () => [] },
      read: () => Promise.reject(new Error('write EPIPE')),
      projection: { barrier: async () => true },
      membership: { nodes: () => [] },
      clock: systemClock,
      self: { nodeId: parseNodeId('c1'), url: 'http://127.0.0.1:8080', version: '0.1.0' },
      ownWritesWaitMs: 10_000,
      onError: (error) => told.push(error),
    })
    await expect(away.queries()).rejects.toMatchObject({ errorName: 'REMOTE_HOST_GONE' })
    expect(told).toEqual([new Error('write EPIPE')])
  })
})
