import { describe, expect, it } from 'vitest'
import type { QueryEvent } from '../../../src/coordinator/query/stream/events.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import { createQueryTelemetry } from '../../../src/coordinator/query/telemetry/query-telemetry.ts'
import { createPendingMeters } from '../../../src/telemetry/meters.ts'
import { noSpans } from '../../../src/telemetry/span.ts'
import { event, QUERY_ID, ROOT_TASK } from '../../support/query-events.ts'
import { taskStats } from '../../support/query-life.ts'

type Line = Readonly<Record<string, unknown>>

/** The log lines of an ended query, by their event name; `slowMs` is one minute. */
function linesOf(events: readonly QueryEvent[]): Record<string, Line> {
  const lines: Record<string, Line> = {}
  const line = (name: string, fields: Line, message: string): void => void (lines[name] = { ...fields, message })
  const telemetry = createQueryTelemetry({
    meters: createPendingMeters,
    spans: () => noSpans,
    logger: { info: line, warn: line, error: line, bind: () => {} },
    now: () => 0,
    names: { connectorOf: () => 'tpch', groupLabel: (group) => group },
    polls: () => 1,
    pollsUnrecorded: () => 0,
    slowMs: 60_000,
  })
  const query = foldQuery(QUERY_ID, events)
  if (query.kind === 'NONE') throw new Error('no query')
  telemetry.recovered(query)
  return lines
}

const table = (name: string, mode: 'READ' | 'WRITE') => ({
  catalog: 'c',
  schema: 's',
  table: name,
  columns: [],
  mode,
})
const planned = event('QueryPlanned', 1, { tables: [table('a', 'READ'), table('a', 'READ'), table('b', 'WRITE')] })
const begun = [event('QueryCreated', 0), planned, event('TaskCreated', 2)]

describe('The log line of an ended query', () => {
  it('has the catalogs and tables of the query and the address of its client', () => {
    const lines = linesOf([...begun, event('TaskFinished', 3), event('QueryFinished', 4)])
    expect(lines['query.completed']).toMatchObject({
      catalogs: ['c'],
      tables: ['c.s.a'],
      writes: ['c.s.b'],
      clientAddress: '127.0.0.1',
    })
    expect(lines['query.slow']).toBeUndefined()
  })

  it('has the route of the query, and the cluster of its last attempt', () => {
    const routed = { to: 'group', name: 'big', rule: 'etl', grade: 'named', readOnly: true, checked: true } as const
    const remote = { cluster: 'trino-a', queryId: 'remote-1', uri: 'sealed' }
    const lines = linesOf([
      event('QueryCreated', 0),
      event('QueryPlanned', 1, { route: 'delegated', routed: { ...routed, skipped: [] } }),
      event('TaskCreated', 2, { remote }),
      event('TaskFinished', 3),
      event('QueryFinished', 4),
    ])
    expect(lines['query.completed']).toMatchObject({
      route: 'delegated',
      routedTo: 'group big',
      routingRule: 'etl',
      cluster: 'trino-a',
      remoteQueryId: 'remote-1',
      attempts: 1,
    })
  })

  it('names the slowest operator of a slow query on the workers, and leaves the relay out', () => {
    const stats = taskStats()
    const [pipeline] = stats.pipelines
    const operators = pipeline!.operators.map((one, index) => ({ ...one, timeNanos: (index + 1) * 4e9 }))
    const lines = linesOf([
      ...begun,
      event('TaskFinished', 70, { stats: { ...stats, pipelines: [{ ...pipeline!, operators }] } }),
      event('TaskFinished', 71, { taskId: ROOT_TASK, stage: 0 }),
      event('QueryFinished', 72),
    ])
    const last = operators.at(-1)!
    expect(lines['query.slow']).toMatchObject({
      slowest: `${last.operatorType} (${last.engineOperator})`,
      phases: { queued: 0, planning: 1000, executing: 70_000, fetching: 1000 },
      message: `Query took 72000 ms, most of it executing; ${last.operatorType} worked ${last.timeNanos / 1e6} ms`,
    })
    const reported = lines['query.slow']!['operators'] as readonly { readonly taskId: string }[]
    expect(reported.filter(({ taskId }) => taskId === ROOT_TASK)).toEqual([])
  })

  it('says that most of the time went into fetching when the client was slow', () => {
    const lines = linesOf([
      ...begun,
      event('TaskFinished', 3),
      event('TaskFinished', 4, { taskId: ROOT_TASK, stage: 0 }),
      event('QueryFinished', 99),
    ])
    expect(lines['query.slow']).toMatchObject({ phases: { fetching: 95_000 } })
    expect(lines['query.slow']!['message']).toContain('most of it fetching')
  })
})
