import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { FrontEndThreads } from '../../../src/coordinator/front-end-threads/front-end-threads.ts'
import {
  createThreadedFrontEnd,
  LONG_TEXT,
  LONGEST_HOLD_MS,
} from '../../../src/coordinator/front-end-threads/threaded-front-end.ts'
import { EngineError } from '../../../src/shared/engine-error.ts'
import type { ObjectRights } from '../../../src/shared/object-rights.ts'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import type { PlannedStatement } from '../../../src/planner/planned-statement.ts'
import type { StatementPlanner } from '../../../src/planner/statement-planner.ts'
import type { MetadataPort } from '../../../src/sql/front-end.ts'
import { session, shopMetadata } from '../../support/front-end.ts'
import { planText, planThreaded } from '../../support/plan-text.ts'

const threads = new FrontEndThreads()
afterAll(() => threads.stop())

const owner = { user: 'ada', address: '10.0.0.1' }
const here = createStatementPlanner()
const apart = createThreadedFrontEnd(threads)

/** Pads a text to the length of a long one. Its meaning stays the same. */
const long = (sql: string): string => sql + ' '.repeat(LONG_TEXT)

const list = (count: number, item: (i: number) => string, separator = ', '): string =>
  Array.from({ length: count }, (_, i) => item(i)).join(separator)

function withoutTimes(statement: PlannedStatement): unknown {
  return JSON.parse(
    JSON.stringify(statement, (key, value: unknown) => (/^(render|resolve)Ms$/.test(key) ? undefined : value)),
  ) as unknown
}

describe('A long statement', () => {
  it.each([
    'SELECT id FROM orders WHERE id IN (1, 2, 3)',
    'SELECT count(*), max(id) FROM orders GROUP BY id ORDER BY 1',
    "VALUES (1, 'a'), (2, 'b')",
    'EXPLAIN SELECT id FROM orders',
    'SHOW TABLES',
    'DESCRIBE orders',
    'SET SESSION query_priority = 3',
    'SELECT nowhere FROM orders',
    'SELECT id FROM nowhere.nowhere.nowhere',
    'SELECT id FROM missing',
    'SELECT 1 +',
    'CREATE TABLE orders (id bigint)',
  ])('gives the same analysis in a thread as in this process: %s', async (sql) => {
    const known = (run: Promise<PlannedStatement>): Promise<unknown> =>
      run.then(withoutTimes, (error: unknown) => (error as EngineError).toFailure())
    const inThread = await known(planThreaded(apart, long(sql), session, shopMetadata(), { owner }))
    expect(inThread).toEqual(await known(planText(here, long(sql), session, shopMetadata())))
  })

  it('is never analyzed on the event loop', async () => {
    const never: StatementPlanner = {
      parse: () => {
        throw new Error('read here')
      },
      plan: () => Promise.reject(new Error('read here')),
    }
    const front = createThreadedFrontEnd(threads, never)
    const sql = `SELECT id FROM orders WHERE id IN (${list(20_000, String)})`
    const analyzed = await planThreaded(front, sql, session, shopMetadata(), { owner })
    expect(analyzed.kind).toBe('query')
    const prepared = { ...session, preparedStatements: { p: long('SELECT 1') } }
    expect((await planThreaded(front, 'EXECUTE p', prepared, shopMetadata(), { owner })).kind).toBe('query')
    await expect(planThreaded(front, 'SELECT 1', session, shopMetadata(), { owner })).rejects.toThrow('read here')
  })

  it('has a fingerprint, for a caller that asks for it', async () => {
    const made: (string | undefined)[] = []
    const onFingerprint = (one: { readonly query: string } | undefined) => void made.push(one?.query)
    await planThreaded(apart, long('SELECT 1'), session, shopMetadata(), { owner, onFingerprint })
    expect(made).toEqual(['SELECT ?'])
  })

  it('keeps the table handle that the connector returned', async () => {
    const metadata = shopMetadata()
    const handles = new Set<unknown>()
    const noting: MetadataPort = {
      ...metadata,
      async table(...name) {
        const table = await metadata.table(...name)
        handles.add(table?.handle)
        return table
      },
    }
    const analyzed = await planThreaded(apart, long('SELECT id FROM orders'), session, noting, { owner })
    if (analyzed.kind !== 'query') throw new Error('no query')
    expect(analyzed.query.scans.map(({ handle }) => handles.has(handle))).toEqual([true])
  })

  it('shares one signature object among the columns of a type, which the event loop then copies once', async () => {
    const sql = long('SELECT a.*, b.* FROM orders a, orders b')
    const planned = await planThreaded(apart, sql, session, shopMetadata(), { owner })
    if (planned.kind !== 'query') throw new Error('no query')
    const types = planned.columns.map(({ type }) => type)
    expect(types).toHaveLength(8)
    expect(new Set(planned.columns.map(({ typeSignature }) => typeSignature)).size).toBe(new Set(types).size)
  })

  it('fails with PERMISSION_DENIED when the rights of the session deny the table', async () => {
    const asked: string[] = []
    const rights = {
      catalog: () => 'all',
      table(_catalog: string, _schema: string, table: string) {
        asked.push(table)
        return { privileges: new Set(), restricted: new Set(), masks: new Map() }
      },
    } as unknown as ObjectRights
    const ruled = { ...session, rightsOf: () => rights }
    await expect(
      planThreaded(apart, long('SELECT id FROM orders'), ruled, shopMetadata(), { owner }),
    ).rejects.toMatchObject({ errorName: 'PERMISSION_DENIED' })
    expect(asked).toContain('orders')
  })

  it('fails with the same error object that the catalog threw', async () => {
    const away = new EngineError('HIVE_BAD_DATA', 'The catalog is away', { retry: 'later' })
    const metadata: MetadataPort = { ...shopMetadata(), table: () => Promise.reject(away) }
    await expect(planThreaded(apart, long('SELECT id FROM orders'), session, metadata, { owner })).rejects.toBe(away)
  })

  it('reports how long its steps took', async () => {
    const reported: unknown[] = []
    const onTimes = (times: unknown): void => void reported.push(times)
    await planThreaded(apart, long('SELECT id FROM orders'), session, shopMetadata(), { owner, onTimes })
    expect(reported.length).toBeGreaterThan(0)
  })
})

describe('A short statement with a long analysis', () => {
  it('moves to a thread once it has held the event loop for too long', async () => {
    let begun = 0
    const holding = createStatementPlanner({ holdMs: LONGEST_HOLD_MS })
    const counted: StatementPlanner = {
      ...holding,
      plan(...given) {
        begun++
        return holding.plan(...given)
      },
    }
    const sql = `SELECT ${'transform(ARRAY[1], x -> '.repeat(60)}1${')'.repeat(60)}`
    const limited = { ...session, properties: { query_max_planning_time: '300ms' } }
    const slow = planThreaded(createThreadedFrontEnd(threads, counted), sql, limited, shopMetadata(), { owner })
    await expect(slow).rejects.toMatchObject({ errorName: 'EXCEEDED_TIME_LIMIT' })
    expect(begun).toBe(1)
  })
})

describe('The threads of the front end', () => {
  const endless = `SELECT ${list(60_000, (i) => `id+${i}`)} FROM orders`

  it('stop the analysis of a canceled query and continue with the next statement', async () => {
    const own = new FrontEndThreads({ most: 1 })
    const front = createThreadedFrontEnd(own)
    const canceled = new AbortController()
    const waiting = new AbortController()
    const sql = `SELECT 1 FROM orders ORDER BY ${list(60_000, (i) => `id+${i}`)}`
    const first = planThreaded(front, sql, session, shopMetadata(), { owner, signal: canceled.signal })
    const second = planThreaded(front, sql, session, shopMetadata(), { owner, signal: waiting.signal })
    const third = planThreaded(front, long('SELECT 1'), session, shopMetadata(), { owner })
    await sleep(50)
    waiting.abort(new Error('given up in the queue'))
    await expect(second).rejects.toThrow('given up in the queue')
    canceled.abort(new Error('canceled'))
    await expect(first).rejects.toThrow('canceled')
    expect((await third).kind).toBe('query')
    await own.stop()
  })

  it('fail a statement that needs more memory than the thread has, and continue with the next statement', async () => {
    const own = new FrontEndThreads({ most: 1, megabytes: 24 })
    const front = createThreadedFrontEnd(own)
    await expect(planThreaded(front, endless, session, shopMetadata(), { owner })).rejects.toMatchObject({
      errorName: 'EXCEEDED_LOCAL_MEMORY_LIMIT',
    })
    expect((await planThreaded(front, long('SELECT 1'), session, shopMetadata(), { owner })).kind).toBe('query')
    await own.stop()
  })

  it.runIf(process.platform === 'linux')('fail a statement that takes more CPU time than its limit', async () => {
    const own = new FrontEndThreads({ most: 1, cpuMs: 100 })
    const front = createThreadedFrontEnd(own)
    const sql = `SELECT 1 FROM orders ORDER BY ${list(60_000, (i) => `id+${i}`)}`
    await expect(planThreaded(front, sql, session, shopMetadata(), { owner })).rejects.toMatchObject({
      errorName: 'EXCEEDED_TIME_LIMIT',
    })
    await own.stop()
  })

  it('analyze again after an idle thread has ended', async () => {
    const own = new FrontEndThreads({ most: 1, idleMs: 1 })
    const front = createThreadedFrontEnd(own)
    for (let round = 0; round < 2; round++) {
      expect((await planThreaded(front, long('SELECT 1'), session, shopMetadata(), { owner })).kind).toBe('query')
      await sleep(20)
    }
    await own.stop()
  })

  it('alternate between users when one user has six statements and another has one', async () => {
    const own = new FrontEndThreads({ most: 1 })
    const front = createThreadedFrontEnd(own)
    const order: string[] = []
    const run = async (user: string): Promise<void> => {
      await planThreaded(front, long('SELECT 1'), session, shopMetadata(), { owner: { user, address: user } })
      order.push(user)
    }
    await Promise.all([...Array.from({ length: 6 }, () => run('many')), run('few')])
    expect(order.indexOf('few')).toBeLessThan(3)
    await own.stop()
  })
})
