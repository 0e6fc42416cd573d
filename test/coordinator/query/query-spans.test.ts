import { describe, expect, it } from 'vitest'
import type { TaskId } from '../../../src/shared/ids.ts'
import type { QueryEvent } from '../../../src/coordinator/query/stream/events.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import {
  querySpans,
  querySpanContext,
  type QuerySpansOptions,
} from '../../../src/coordinator/query/telemetry/query-spans.ts'
import { failureOf } from '../../../src/shared/engine-error.ts'
import type { SpanRecord } from '../../../src/telemetry/span.ts'
import { attributes as names } from '../../../src/telemetry/attribute-names.ts'
import { at, event, QUERY_ID, ROOT_TASK, taskStats as plainStats, WORKER_TASK } from '../../support/query-events.ts'
import { queryLife, taskStats, type QueryLifeOptions } from '../../support/query-life.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const REQUEST = 'b7ad6b7169203331'

function spansOf(events: readonly QueryEvent[], options?: QuerySpansOptions): readonly SpanRecord[] {
  const query = foldQuery(QUERY_ID, events)
  if (query.kind === 'NONE') throw new Error('no query')
  return querySpans(query, options)
}

function spansOfLife(life: QueryLifeOptions, options?: QuerySpansOptions): readonly SpanRecord[] {
  return spansOf(queryLife(QUERY_ID, life), options)
}

const created = event('QueryCreated', 0, { traceparent: `00-${TRACE}-${REQUEST}-01` })

/** The path of each span: the names from the outermost span down to it. */
function paths(spans: readonly SpanRecord[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const path = (span: SpanRecord): string => {
    const parent = span.parentSpanId === undefined ? undefined : byId.get(span.parentSpanId)
    return parent ? `${path(parent)} > ${span.name}` : span.name
  }
  return spans.map(path)
}

function named(spans: readonly SpanRecord[], name: string): SpanRecord {
  const [span, ...others] = spans.filter((one) => one.name === name)
  if (!span || others.length > 0) throw new Error(`not one span ${name}`)
  return span
}

describe('The spans of a query', () => {
  it('form the tree query, analyzer, planner, execution, stage, task, batch and pipeline', () => {
    expect(paths(spansOfLife({}))).toEqual([
      'query',
      'query > analyzer',
      'query > planner',
      'query > analyzer > parse',
      'query > analyzer > analyze',
      'query > execution',
      'query > execution > stage',
      'query > execution > stage > task',
      'query > execution > stage > task > pipeline',
      'query > execution > stage',
      'query > execution > stage > remote-task',
      'query > execution > stage > task',
      'query > execution > stage > task > batch',
      'query > execution > stage > task > pipeline',
    ])
  })

  it('show operators as events at the end of their pipeline, with accumulated times', () => {
    const pipelines = spansOfLife({}).filter(({ name }) => name === 'pipeline')
    const operators = pipelines.flatMap(({ events, endMs }) =>
      events.map((one) => ({ ...one, isAtEnd: one.atMs === endMs })),
    )
    expect(operators.map(({ name }) => name)).toEqual([
      'operator ScanFilterAndProjectOperator',
      'operator TaskOutputOperator',
    ])
    for (const { attributes, isAtEnd } of operators) {
      expect(isAtEnd).toBe(true)
      expect(attributes).toMatchObject({ [names.timing]: 'accumulated', [names.timeNanos]: expect.any(Number) })
    }
    expect(operators[0]!.attributes).toMatchObject({ 'quipu.operator.engine': 'TABLE_SCAN' })
  })

  it('end the execution span with the last published page, and the query span with QueryFinished', () => {
    const spans = spansOf([
      created,
      event('QueryPlanned', 1),
      event('TaskCreated', 2),
      event('TaskFinished', 3),
      event('TaskFinished', 4, { taskId: ROOT_TASK, stage: 0 }),
      event('ResultPagesPublished', 4),
      event('QueryFinished', 60),
    ])
    expect(named(spans, 'execution')).toMatchObject({
      startMs: Date.parse(at(1)),
      endMs: Date.parse(at(4)),
      parentSpanId: named(spans, 'query').spanId,
    })
    expect(named(spans, 'query').endMs).toBe(Date.parse(at(60)))
    const failed = spansOf([created, event('QueryPlanned', 1), event('TaskCreated', 2), event('QueryFailed', 9)])
    expect(named(failed, 'execution').endMs).toBe(Date.parse(at(9)))
  })

  it('use the OpenTelemetry attributes for user, database system, table and returned rows', () => {
    const of = (tables: readonly (readonly [string, 'READ' | 'WRITE'])[]) =>
      named(
        spansOf([
          created,
          event('QueryPlanned', 1, {
            tables: tables.map(([table, mode]) => ({ catalog: 'c', schema: 's', table, columns: [], mode })),
          }),
          event('QueryFinished', 2, { rows: 7 }),
        ]),
        'query',
      ).attributes
    expect(of([['a', 'READ']])).toMatchObject({
      'user.name': 'alice',
      'enduser.id': 'alice',
      'db.system.name': 'quipu',
      'db.collection.name': 'c.s.a',
      'db.response.returned_rows': 7,
      'quipu.tables': ['c.s.a'],
    })
    const joined = of([
      ['a', 'READ'],
      ['b', 'READ'],
    ])
    expect(joined).not.toHaveProperty(['db.collection.name'])
    expect(joined).toMatchObject({ 'quipu.tables': ['c.s.a', 'c.s.b'] })
    expect(
      of([
        ['a', 'READ'],
        ['b', 'WRITE'],
      ]),
    ).toMatchObject({ 'db.collection.name': 'c.s.b' })
  })

  it('show the route of a delegated query, and the cluster of its last attempt', () => {
    const routed = {
      to: 'group',
      name: 'big',
      rule: 'etl',
      grade: 'named',
      readOnly: true,
      checked: true,
      bytes: 5,
      skipped: [{ rule: 'first', why: 'no' }],
    } as const
    const attempt = (cluster: string) => ({ cluster, queryId: `at-${cluster}`, uri: 'sealed' })
    const { attributes } = named(
      spansOf([
        created,
        event('QueryPlanned', 1, { route: 'delegated', routed: { ...routed, skipped: [...routed.skipped] } }),
        event('TaskCreated', 2, { remote: attempt('a') }),
        event('TaskCreated', 3, { taskId: `${QUERY_ID}.1.1` as TaskId, attempt: 1, remote: attempt('b') }),
        event('QueryFinished', 4),
      ]),
      'query',
    )
    expect(attributes).toMatchObject({
      'quipu.route': 'delegated',
      'quipu.routing.target': 'group big',
      'quipu.routing.rule': 'etl',
      'quipu.routing.grade': 'named',
      'quipu.routing.bytes': 5,
      'quipu.routing.skipped': ['first'],
      'quipu.cluster': 'b',
      'quipu.cluster.query_id': 'at-b',
    })
  })

  it('share one trace and one query id, and no span ends before it starts', () => {
    const spans = spansOfLife({})
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]))
    expect(new Set(spans.map(({ attributes }) => attributes[names.queryId]))).toEqual(new Set([QUERY_ID]))
    expect(spans.filter(({ startMs, endMs }) => !(endMs >= startMs))).toEqual([])
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)
  })

  it('are absent while the query is open, and for a query without a traceparent', () => {
    expect(spansOfLife({ end: 'open' })).toEqual([])
    expect(spansOf([event('QueryCreated'), event('QueryFailed', 1)])).toEqual([])
  })

  it('contain rebuilt request spans when `withRequest` is set', () => {
    const spans = spansOfLife({}, { withRequest: true })
    expect(paths(spans)).toEqual(
      expect.arrayContaining([
        'POST /v1/statement > query',
        'POST /v1/statement > query > execution > stage > remote-task > task-update',
      ]),
    )
    expect(named(spans, 'POST /v1/statement')).toMatchObject({ spanId: REQUEST, kind: 'SERVER' })
    expect(spans.filter(({ attributes }) => attributes[names.rebuilt]).map(({ name }) => name)).toEqual([
      'POST /v1/statement',
      'task-update',
    ])
  })

  it('contain the time in the queue, and an event for each state at its time', () => {
    const spans = spansOf([
      created,
      event('QueryQueued', 1, { position: 3 }),
      event('QueryAdmitted', 4),
      event('QueryPlanned', 5),
      event('QueryFailed', 6),
    ])
    expect(named(spans, 'queued')).toMatchObject({
      startMs: Date.parse(at(1)),
      endMs: Date.parse(at(4)),
      attributes: { [names.queuePosition]: 3, [names.queueReason]: 'full' },
    })
    expect(
      named(spans, 'query')
        .events.filter(({ name }) => name === 'query_state')
        .map(({ atMs, attributes }) => [attributes[names.state], atMs]),
    ).toEqual([
      ['QUEUED', Date.parse(at(0))],
      ['PLANNING', Date.parse(at(4))],
      ['STARTING', Date.parse(at(5))],
      ['FAILED', Date.parse(at(6))],
    ])
  })

  it('carry the failure of a statement that was never planned, with a cut message', () => {
    const failure = failureOf('TABLE_NOT_FOUND', 'x'.repeat(5000))
    const spans = spansOf([created, event('QueryFailed', 1, { failure })])
    expect(paths(spans)).toEqual(['query', 'query > analyzer'])
    for (const span of spans) {
      expect(span).toMatchObject({ status: 'ERROR', statusMessage: 'x'.repeat(4096) })
      expect(span.attributes[names.errorName]).toBe('TABLE_NOT_FOUND')
      expect(span.events.at(-1)).toMatchObject({
        name: 'exception',
        attributes: { 'exception.type': 'TABLE_NOT_FOUND' },
      })
    }
  })

  it('replace the literals of the statement by question marks', () => {
    const sql = `SELECT * FROM card WHERE number = '4111''1111' AND code = 12.5e3`
    expect(named(spansOfLife({ sql }), 'query').attributes[names.dbText]).toBe(
      'SELECT * FROM card WHERE number = ? AND code = ?',
    )
  })

  it('place the steps of planning by their durations, backwards from the time of QueryPlanned', () => {
    const spans = spansOfLife({}, { times: { parseMs: 9, resolveMs: 1, renderMs: 2 } })
    const planned = named(spans, 'planner').endMs
    const before = (name: string): readonly number[] => {
      const { startMs, endMs } = named(spans, name)
      return [planned - startMs, planned - endMs].map((ms) => Math.round(ms * 10) / 10)
    }
    expect(before('planner')).toEqual([3, 0])
    expect(before('analyzer')).toEqual([5, 3])
    expect(before('parse')).toEqual([5, 4.6])
    expect(before('access-control')).toEqual([4.6, 3.6])
    expect(before('analyze')).toEqual([4.6, 3])
    expect(before('render')).toEqual([3, 1])
    expect(before('fragment')).toEqual([1, 0])
  })

  it('omit steps shorter than a millisecond for a query without a worker', () => {
    const steps = spansOfLife({ worker: false })
      .map(({ name }) => name)
      .filter((name) => name === 'parse' || name === 'analyze')
    expect(steps).toEqual(['analyze'])
  })

  it('show connector calls under the step that made them, and count polls without a span', () => {
    const calls = [
      { operation: 'table', catalog: 'lake', startMs: 1, endMs: 2 },
      { operation: 'splits', catalog: 'lake', startMs: 2, endMs: 3 },
    ] as const
    const spans = spansOfLife({}, { calls, pollsUnrecorded: 7 })
    expect(paths(spans)).toEqual(
      expect.arrayContaining(['query > analyzer > connector table', 'query > planner > connector splits']),
    )
    expect(named(spans, 'query').attributes[names.pollsUnrecorded]).toBe(7)
  })

  it('link the exchange span of the relay to the tasks that produced the fetched pages', () => {
    const [pipeline] = plainStats.pipelines
    const relayed = {
      ...plainStats,
      pipelines: [
        { ...pipeline!, operators: pipeline!.operators.map((one) => ({ ...one, engineOperator: 'EXCHANGE' })) },
      ],
    }
    const spans = spansOf([
      created,
      event('QueryPlanned', 1),
      event('TaskCreated', 2),
      event('TaskFinished', 3),
      event('TaskFinished', 4, { taskId: ROOT_TASK, stage: 0, stats: relayed }),
      event('ResultPagesPublished', 5),
      event('QueryFinished', 6, { stages: [0, 1].map((id) => ({ id, state: 'FINISHED' as const })) }),
    ])
    const producer = spans.find(({ name, attributes }) => name === 'task' && attributes[names.taskId] === WORKER_TASK)
    expect(named(spans, 'exchange').links).toEqual([{ traceId: TRACE, spanId: producer?.spanId }])
    expect(named(spans, 'exchange').attributes[names.exchangePages]).toBe(1)
    expect(paths(spans)).toEqual(
      expect.arrayContaining(['query > execution > stage > task > exchange', 'query > execution > publish']),
    )
  })

  it('show the 50 slowest batches, within the times of their task despite a wrong clock of the worker', () => {
    const stats = taskStats()
    const [pipeline] = stats.pipelines
    const [driver] = pipeline!.drivers
    const drivers = Array.from({ length: 80 }, (_, batch) => ({
      ...driver!,
      batch,
      elapsedNanos: batch,
      startTime: '2020-01-01T00:00:00.000Z',
      endTime: '2040-01-01T00:00:00.000Z',
    }))
    const spans = spansOf([
      created,
      event('QueryPlanned', 1),
      event('TaskCreated', 2),
      event('TaskFinished', 3, { stats: { ...stats, pipelines: [{ ...pipeline!, drivers }] } }),
      event('QueryFinished', 6, { stages: [{ id: 1, state: 'FINISHED' }] }),
    ])
    const batches = spans.filter(({ name }) => name === 'batch')
    expect(batches.map(({ attributes }) => attributes[names.batch])).toEqual(
      Array.from({ length: 50 }, (_, index) => 79 - index),
    )
    const { startMs, endMs } = named(spans, 'task')
    expect(batches.filter((one) => one.startMs !== startMs || one.endMs !== endMs)).toEqual([])
  })

  it('record the attempt and the failed state of a task', () => {
    const spans = spansOf([
      created,
      event('QueryPlanned', 1),
      event('TaskCreated', 2),
      event('TaskFailed', 3),
      event('QueryFailed', 6, { stages: [{ id: 1, state: 'FAILED' }] }),
    ])
    const remote = named(spans, 'remote-task')
    expect(remote.attributes).toMatchObject({
      [names.taskId]: WORKER_TASK,
      [names.worker]: 'w1',
      [names.taskAttempt]: 0,
    })
    expect(remote.events).toEqual([
      { name: 'task_state', atMs: Date.parse(at(3)), attributes: { [names.state]: 'FAILED' } },
    ])
  })

  it('contain a task without reported figures, because spans of the worker have it as their parent', () => {
    const spans = spansOf([
      created,
      event('QueryPlanned', 1),
      event('TaskCreated', 2),
      event('QueryFailed', 6, { stages: [{ id: 1, state: 'FAILED' }] }),
    ])
    expect(named(spans, 'task')).toMatchObject({
      attributes: { [names.taskId]: WORKER_TASK, [names.worker]: 'w1' },
      startMs: Date.parse(at(2)),
    })
  })

  it('contain a commit span with the outcome of a write', () => {
    const spans = spansOf([
      created,
      event('QueryPlanned', 1),
      event('WritePrepared', 2),
      event('WriteCommitted', 4),
      event('QueryFinished', 6),
    ])
    expect(named(spans, 'commit')).toMatchObject({
      startMs: Date.parse(at(2)),
      endMs: Date.parse(at(4)),
      attributes: { [names.dbOperation]: 'insert', [names.writeOutcome]: 'committed' },
    })
  })
})

describe('`querySpanContext`', () => {
  it('refers to the query span, both while the query is open and after its end', () => {
    const open = foldQuery(QUERY_ID, [created])
    const ended = spansOf([created, event('QueryFailed', 1)])
    expect(querySpanContext(open)).toBe(`00-${TRACE}-${named(ended, 'query').spanId}-01`)
    expect(querySpanContext({ kind: 'NONE' })).toBeUndefined()
  })
})
