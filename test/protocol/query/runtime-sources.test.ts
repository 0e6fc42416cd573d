import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { QueryRows } from '../../../src/events/projection.ts'
import type { RuntimeSources } from '../../../src/connectors/system/system-connector.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { KnownQuery } from '../../../src/coordinator/query/stream/state.ts'
import type { LiveQueryView } from '../../../src/protocol/query/live-queries.ts'
import { createRuntimeSources } from '../../../src/protocol/query/runtime-sources.ts'
import { authorizeBy } from '../../../src/security/authorization.ts'
import { queryRulesOf } from '../../../src/security/rules/query-rules.ts'
import { readRules } from '../../../src/security/rules/read-rules.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { queryLife, taskStats, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { askerNamed } from '../../support/asker.ts'
import { NotReadInTime } from '../../../src/protocol/query/read-failure.ts'
import { createHistoryReadQueue } from '../../../src/protocol/query/history-read-queue.ts'
import { openReadModelBed, type ReadModelBed } from '../../support/read-models.ts'
import { parseNodeId, parseTaskId } from '../../../src/shared/ids.ts'

const alice = askerNamed('alice')
const ALL = ['query', 'data']
const readQueue = createHistoryReadQueue({ atOnce: 3, waitMs: 60_000, what: 'The list of queries' })
const authorize = authorizeBy(() =>
  queryRulesOf(
    readRules(
      JSON.stringify({
        queries: [
          { user: 'auditor', allow: ['view'] },
          { group: 'leads', queryOwner: 'alice|x{250}y', allow: ['view'] },
        ],
      }),
    ),
  ),
)

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
    authorize,
    queue: readQueue,
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
  it('lists queries without the linger time of the projection, and prefers memory to the tables', async () => {
    const rows = await sources.queries(alice, ALL)
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

  it('shows tasks with their newest figures', async () => {
    const rows = await sources.tasks(alice, ALL)
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

  it('lists operators, events and nodes', async () => {
    expect((await sources.operators(alice, ALL)).map((row) => [row['task_id'], row['operator_type']])).toContainEqual([
      `${stored}.1.0`,
      'TaskOutputOperator',
    ])
    expect((await sources.events(alice, ALL)).map((row) => [row['sequence'], row['type']])).toEqual([
      [1, 'QueryCreated'],
      [2, 'QueryPlanned'],
      [3, 'TaskCreated'],
      [4, 'TaskFinished'],
      [5, 'TaskFinished'],
      [6, 'ResultPagesPublished'],
      [7, 'QueryFinished'],
    ])
    expect(await sources.nodes(alice, ALL)).toEqual([
      { node_id: 'c1', http_uri: 'http://127.0.0.1:8080', node_version: '0.1.0', coordinator: true, state: 'active' },
    ])
  })

  it('leaves out older queries when the texts of the newest queries take much memory', async () => {
    let read = 0
    const long = createRuntimeSources({
      live: { get: () => undefined, list: () => [] },
      read: async (text, values) => {
        const rows = await bed.query(text, [...values])
        const [first] = rows
        if (!text.includes('from queries') || !first) return rows
        // Acts as a table that always has as many further queries as the statement asks for.
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
      authorize,
      queue: readQueue,
    })
    const rows = await long.queries(alice, ALL)
    expect(rows.length).toBe((24 * 1024 * 1024) / (1 << 17))
    expect(read).toBeLessThanOrEqual(rows.length + 20)
  })

  const over = (read: QueryRows, more: Partial<Parameters<typeof createRuntimeSources>[0]> = {}) =>
    createRuntimeSources({
      live: { get: () => undefined, list: () => [] },
      read,
      projection: { barrier: async () => true },
      membership: { nodes: () => [] },
      clock: systemClock,
      self: { nodeId: parseNodeId('c1'), url: 'http://127.0.0.1:8080', version: '0.1.0' },
      ownWritesWaitMs: 10_000,
      authorize,
      queue: readQueue,
      ...more,
    })

  it('reads no texts and no data for statements that do not use them, such as count(*)', async () => {
    const asked: { readonly text: string; readonly rows: readonly Record<string, unknown>[] }[] = []
    const noting = over(async (text, values) => {
      const rows = await bed.query(text, [...values])
      asked.push({ text, rows })
      return rows
    })
    for (const table of ['queries', 'tasks', 'operators', 'events'] as const)
      expect((await noting[table](alice, [])).length).toBeGreaterThan(0)
    expect(
      asked.flatMap(({ rows }) => rows).filter((row) => row['sql_text'] || row['error_message'] || row['data']),
    ).toEqual([])
    // For tasks, operators and events, one statement reads only the ids of the queries.
    expect(asked.filter(({ text }) => text.startsWith('select query_id from '))).toHaveLength(3)
    expect((await noting.events(alice, [])).map(({ data: _, ...head }) => head)).toEqual(
      (await sources.events(alice, ALL)).map(({ data: _, ...head }) => head).filter(({ stream }) => stream !== open),
    )
  })

  it('limits reads to three at once, two for each user, so that another user need not wait long', async () => {
    const begun: string[] = []
    const releases: (() => void)[] = []
    const held = over(async () => {
      await new Promise<void>((resolve) => releases.push(resolve))
      return []
    })
    const readAs = (user: string): Promise<unknown> => {
      const asker = askerNamed(user)
      const one = held.tasks(asker)
      return one.then(() => begun.push(user))
    }
    const all = [...Array.from({ length: 40 }, () => readAs('bob')), readAs('alice')]
    await vi.waitFor(() => expect(releases).toHaveLength(3))
    while (begun.length < all.length) {
      releases.shift()?.()
      await new Promise((resolve) => setImmediate(resolve))
      expect(releases.length).toBeLessThanOrEqual(3)
    }
    await Promise.all(all)
    expect(begun.indexOf('alice')).toBeLessThan(4)
  })

  it.each([
    ['57014', 'canceling statement due to statement timeout', 'EXCEEDED_TIME_LIMIT'],
    ['53300', 'sorry, too many clients already', 'REMOTE_HOST_GONE'],
    ['08006', 'connection failure', 'REMOTE_HOST_GONE'],
  ])('maps the database error %s %s to an error of Quipu without its text', async (code, message, errorName) => {
    const failing = over(() => Promise.reject(Object.assign(new Error(message), code && { code })))
    const error: unknown = await failing.queries(alice, []).catch((one: unknown) => one)
    expect(error).toMatchObject({ errorName })
    expect(String(error).includes('database does not answer')).toBe(code === '08006')
    expect(String(error)).not.toContain(message)
  })

  it('reports EXCEEDED_TIME_LIMIT when no connection was free in time', async () => {
    const full = over(() => Promise.reject(new NotReadInTime('full')))
    await expect(full.queries(alice, [])).rejects.toMatchObject({ errorName: 'EXCEEDED_TIME_LIMIT' })
  })

  it('reports REMOTE_HOST_GONE when the connection to the database breaks, and passes the cause to onError', async () => {
    const reported: unknown[] = []
    const away = createRuntimeSources({
      live: { get: () => undefined, list: () => [] },
      read: () => Promise.reject(new Error('write EPIPE')),
      projection: { barrier: async () => true },
      membership: { nodes: () => [] },
      clock: systemClock,
      self: { nodeId: parseNodeId('c1'), url: 'http://127.0.0.1:8080', version: '0.1.0' },
      ownWritesWaitMs: 10_000,
      authorize,
      queue: readQueue,
      onError: (error) => reported.push(error),
    })
    await expect(away.queries(alice, ALL)).rejects.toMatchObject({ errorName: 'REMOTE_HOST_GONE' })
    expect(reported).toEqual([new Error('write EPIPE')])
  })

  it('shows users their own rows and the rows that rules grant, also for names with equal beginnings', async () => {
    const names = [`${'x'.repeat(250)}y`, `${'x'.repeat(250)}z`, 'bob']
    const all = names.map((user, index) => [testQueryId(10 + index), user] as const)
    const posted = testQueryId(20)
    const sessions = [...all, [posted, 'etl', 'alice'] as const]
    for (const [id, user, originalUser] of sessions) {
      const life = queryLife(id, { startMillis: Date.now() - 2000 })
      const [created] = life
      if (created?.type !== 'QueryCreated') throw new Error('a query begins otherwise')
      const session = { ...created.data.session, user, ...(originalUser && { originalUser }) }
      await bed.log.append(id, 0, toLogEvents([{ ...created, data: { ...created.data, session } }, ...life.slice(1)]))
    }
    const seen = async (user: string, ...groups: string[]) => {
      const asker = askerNamed(user, ...groups)
      const ids = (await sources.queries(asker, ALL)).map((row) => row['query_id'])
      for (const other of ['tasks', 'operators', 'events'] as const)
        for (const row of await sources[other](asker, ALL)) expect(ids).toContain(row['query_id'] ?? row['stream'])
      return ids.toSorted()
    }
    const [first, second, bobs] = all.map(([id]) => id)
    expect(await seen('alice')).toEqual([stored, open, posted])
    expect(await seen('bob')).toEqual([bobs])
    expect(await seen('etl')).toEqual([posted])
    expect(await seen('nobody')).toEqual([])
    expect(await seen(names[1]!, 'leads')).toEqual([stored, open, first, second])
    expect(await seen('bob', 'leads')).toEqual([stored, open, first, bobs])
    expect(await seen('auditor')).toEqual([stored, open, first, second, bobs, posted])
    // A user who acts as another user keeps the rights of the original user.
    const actsAs = (await sources.queries({ ...askerNamed('zoe'), originalUser: 'alice' }, ALL)).map(
      (row) => row['query_id'],
    )
    expect(actsAs).toEqual([posted])
  })
})
