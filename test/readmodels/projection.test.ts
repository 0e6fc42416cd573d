import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { QueryEvent } from '../../src/coordinator/query/stream/events.ts'
import { readKnownClusters } from '../../src/readmodels/clusters/projection.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

let bed: ReadModelBed

beforeEach(async () => {
  bed = await openReadModelBed()
})
afterEach(() => bed.close())

async function projected(): Promise<void> {
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
}

describe('The read models of queries', () => {
  it('contain a finished query with its figures', async () => {
    const queryId = testQueryId(1)
    await appendLives(bed.log, [{ queryId, events: queryLife(queryId) }])
    await projected()
    const [row] = await bed.query('select * from queries')
    expect(row).toMatchObject({
      query_id: queryId,
      state: 'FINISHED',
      user_name: 'alice',
      source: 'quipu-test',
      catalog_name: 'tpch',
      schema_name: 'tiny',
      sql_text: 'SELECT name FROM nation',
      query_type: 'SELECT',
      route: 'local',
      elapsed_ms: 300,
      queued_ms: 1,
      analysis_ms: 2,
      planning_ms: 3,
      cpu_ms: 120,
      scheduled_ms: 150,
      blocked_ms: 5,
      peak_memory_bytes: '4096',
      raw_input_rows: '25',
      output_rows: '23',
      output_bytes: '1000',
      total_tasks: '2',
      error_name: null,
      trace_id: '0af7651916cd43dd8448eb211c80319c',
      partial: false,
      incomplete: false,
      result_lost: false,
      last_sequence: '7',
    })
  })

  it('contain the error of a failed query', async () => {
    const queryId = testQueryId(2)
    await appendLives(bed.log, [{ queryId, events: queryLife(queryId, { end: 'failed' }) }])
    await projected()
    const [row] = await bed.query('select * from queries')
    expect(row).toMatchObject({
      state: 'FAILED',
      error_code: 8,
      error_name: 'DIVISION_BY_ZERO',
      error_type: 'USER_ERROR',
      error_message: 'Division by zero',
    })
  })

  it('contain the cluster of the last attempt at a delegated query, and its routing rule', async () => {
    const queryId = testQueryId(4)
    const routed = { to: 'cluster', name: 'a', rule: 'etl', grade: 'named', readOnly: true, checked: true } as const
    const events = queryLife(queryId).map((event): QueryEvent => {
      if (event.type === 'QueryPlanned')
        return { ...event, data: { ...event.data, route: 'delegated', routed: { ...routed, skipped: [] } } }
      if (event.type !== 'TaskCreated') return event
      return { ...event, data: { ...event.data, remote: { cluster: 'a', queryId: 'at-a', uri: 'sealed' } } }
    })
    await appendLives(bed.log, [{ queryId, events }])
    await projected()
    const [row] = await bed.query('select * from queries')
    expect(row).toMatchObject({ route: 'delegated', cluster: 'a', remote_query_id: 'at-a', routing_rule: 'etl' })
  })

  it('contain stages, tasks, operators and read tables', async () => {
    const queryId = testQueryId(3)
    await appendLives(bed.log, [{ queryId, events: queryLife(queryId) }])
    await projected()
    expect(await bed.query('select stage_id, state, total_tasks from stages order by 1')).toEqual([
      { stage_id: 0, state: 'FINISHED', total_tasks: '1' },
      { stage_id: 1, state: 'FINISHED', total_tasks: '1' },
    ])
    expect(
      await bed.query('select task_id, stage_id, node_id, state, output_rows, cpu_ms from tasks order by 2'),
    ).toEqual([
      {
        task_id: `${queryId}.0.0`,
        stage_id: 0,
        node_id: 'coordinator',
        state: 'FINISHED',
        output_rows: '23',
        cpu_ms: 120,
      },
      {
        task_id: `${queryId}.1.0`,
        stage_id: 1,
        node_id: 'worker-1',
        state: 'FINISHED',
        output_rows: '23',
        cpu_ms: 120,
      },
    ])
    expect(
      await bed.query(
        'select operator_id, operator_type, engine_operator, input_rows, output_rows, time_ms from operators where stage_id = 1 order by 1',
      ),
    ).toEqual([
      {
        operator_id: 0,
        operator_type: 'ScanFilterAndProjectOperator',
        engine_operator: 'TABLE_SCAN',
        input_rows: '25',
        output_rows: '24',
        time_ms: 75,
      },
      {
        operator_id: 1,
        operator_type: 'TaskOutputOperator',
        engine_operator: 'RESULT',
        input_rows: '24',
        output_rows: '23',
        time_ms: 75,
      },
    ])
    expect(
      await bed.query(
        'select query_id, catalog_name, schema_name, table_name, mode, columns, user_name from table_access',
      ),
    ).toEqual([
      {
        query_id: queryId,
        catalog_name: 'tpch',
        schema_name: 'tiny',
        table_name: 'nation',
        mode: 'READ',
        columns: ['name'],
        user_name: 'alice',
      },
    ])
  })

  it('store NUL and lone surrogates as U+FFFD', async () => {
    const queryId = testQueryId(4)
    const sql = `SELECT '\0 \uD800 \\u0000'`
    await appendLives(bed.log, [{ queryId, events: queryLife(queryId, { sql, source: 'a\0b', worker: false }) }])
    await projected()
    const [row] = await bed.query<{ sql_text: string; source: string; details: { session: { source: string } } }>(
      'select sql_text, source, details from queries',
    )
    expect(row?.sql_text).toBe(`SELECT '\uFFFD \uFFFD \\u0000'`)
    expect(row?.source).toBe('a\uFFFDb')
    expect(row?.details.session.source).toBe('a\uFFFDb')
  })

  it('keep every event as it is stored in the log, in a table partition of its day', async () => {
    const queryId = testQueryId(5)
    const lives = queryLife(queryId, { end: 'open' })
    await bed.log.append(queryId, 0, toLogEvents(lives, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'))
    await projected()
    const logged = []
    for await (const event of bed.log.readStream(queryId)) logged.push(event)
    const rows = await bed.query('select * from query_events where stream = $1 order by sequence', [queryId])
    expect(rows).toEqual(
      logged.map((event) => ({
        position: String(event.position.offset),
        partition: 0,
        stream: queryId,
        sequence: String(event.sequence),
        epoch: String(event.epoch),
        type: event.type,
        v: event.v,
        time: new Date(event.time),
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        prevhash: event.prevhash,
        hash: event.hash,
        digest: event.digest,
        enc: event.enc,
        data: event.stored,
        forgotten: false,
      })),
    )
    const [partition] = await bed.query<{ name: string }>(
      'select tableoid::regclass::text as name from query_events where stream = $1 limit 1',
      [queryId],
    )
    expect(partition?.name).toBe(
      `query_events_${new Date(logged[0]!.time).toISOString().slice(0, 10).replaceAll('-', '')}`,
    )
  })

  it('have the columns that dashboards use', async () => {
    const statements = [
      'select created_at, query_id, user_name, source, state, elapsed_ms, queued_ms, cpu_ms, peak_memory_bytes, output_rows, left(sql_text, 120), trace_id from queries order by elapsed_ms desc nulls last limit 50',
      `select created_at, query_id, user_name, source, state, error_name, left(error_message, 120) from queries where state = 'FAILED' order by ended_at desc limit 50`,
      `select at, kind, user_name, count, action, object, remote_address, query_id from audit_log where kind in ('AuthenticationFailed', 'AccessDenied') limit 50`,
      'select * from dead_letters where resolved_at is null limit 50',
      `select catalog_name, schema_name, table_name, count(distinct query_id), max(at) from table_access where mode = 'READ' group by 1, 2, 3 limit 50`,
    ]
    for (const statement of statements) await expect(bed.query(statement)).resolves.toBeInstanceOf(Array)
  })
})

describe('The read models of nodes and of the system', () => {
  it('contain the state and the last failure of a node', async () => {
    const node = { nodeId: 'w1', url: 'http://10.0.0.1:8081', version: '1', role: 'worker' }
    const time = new Date().toISOString()
    const lastFailure = { type: 'java.net.SocketTimeoutException', message: 'timeout', stack: ['a'], suppressed: [] }
    await bed.log.append('node/w1', 0, [
      { type: 'NodeJoined', v: 1, time, data: { ...node, cores: 4, memoryBytes: 1024 } },
      { type: 'NodeSuspected', v: 1, time, data: { ...node, reason: 'no_answer' } },
    ])
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    expect(await bed.query('select node_id, state, reason, cores, memory_bytes from nodes')).toEqual([
      { node_id: 'w1', state: 'suspect', reason: 'no_answer', cores: 4, memory_bytes: '1024' },
    ])
    await bed.log.append('node/w1', 2, [
      { type: 'NodeFailed', v: 1, time, data: { ...node, reason: 'no_answer', lastFailure } },
    ])
    await runner.barrier(60_000)
    expect(await bed.query('select state, cores, last_failure from nodes')).toEqual([
      { state: 'failed', cores: 4, last_failure: lastFailure },
    ])
  })

  it('contain the state and the health of a cluster, and read them back', async () => {
    const time = '2026-03-01T10:00:00.000Z'
    const name = 'trino-a'
    const found = { name, url: 'https://trino-a:8443', group: 'big', digest: 'd1', occasion: 'start' }
    const asked = { name, before: 'ACTIVE', after: 'DRAINING', by: 'kim', reason: 'an upgrade' }
    const healthy = { name, before: 'PENDING', after: 'HEALTHY', reason: 'ready' }
    await bed.log.append('cluster/trino-a', 0, [
      { type: 'ClusterFound', v: 1, time, data: found },
      { type: 'ClusterHealthChanged', v: 1, time, data: healthy },
    ])
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    await bed.log.append('cluster/trino-a', 2, [{ type: 'ClusterStateAsked', v: 1, time, data: asked }])
    await runner.barrier(60_000)
    expect(await readKnownClusters((text, values) => bed.query(text, [...values]))).toEqual([
      {
        name,
        url: found.url,
        group: 'big',
        digest: 'd1',
        present: true,
        state: 'DRAINING',
        stateBy: 'kim',
        stateReason: 'an upgrade',
        stateSince: time,
        health: 'HEALTHY',
        healthReason: 'ready',
        healthSince: time,
        sequence: 3,
      },
    ])
    await bed.log.append('cluster/trino-a', 3, [
      { type: 'ClusterGone', v: 1, time, data: { name, digest: 'd1', occasion: 'reload' } },
      { type: 'ClusterFound', v: 1, time, data: { ...found, url: 'https://elsewhere', digest: 'd2' } },
    ])
    await runner.barrier(60_000)
    expect(await readKnownClusters((text, values) => bed.query(text, [...values]))).toMatchObject([
      { url: 'https://elsewhere', digest: 'd2', present: true, state: 'DRAINING', health: 'PENDING', sequence: 5 },
    ])
  })

  it('contain the audit events of the system', async () => {
    const time = new Date().toISOString()
    await bed.log.append('system', 1, [
      {
        type: 'AccessDenied',
        v: 1,
        time,
        data: {
          user: 'bob',
          action: 'select',
          object: 'tpch.tiny.nation',
          queryId: 'q',
          remoteAddress: '10.1.1.1',
          count: 3,
          minute: time,
        },
      },
    ])
    await projected()
    expect(
      await bed.query(
        'select kind, user_name, count, action, object, remote_address, query_id from audit_log order by sequence',
      ),
    ).toEqual([
      {
        kind: 'EpochStarted',
        user_name: null,
        count: '1',
        action: null,
        object: 'http://127.0.0.1:8080',
        remote_address: null,
        query_id: null,
      },
      {
        kind: 'AccessDenied',
        user_name: 'bob',
        count: '3',
        action: 'select',
        object: 'tpch.tiny.nation',
        remote_address: '10.1.1.1',
        query_id: 'q',
      },
    ])
  })
})
