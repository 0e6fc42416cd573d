import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { HeldLimits } from '../../../src/coordinator/query/execution/held-limits.ts'
import { planningBefore } from '../../../src/coordinator/query/execution/planning-before.ts'
import { recordedSubmission } from '../../../src/coordinator/query/secrets/query-secrets.ts'
import {
  boundedProperties,
  queryLimits,
  taskBounds,
  type ServerBounds,
} from '../../../src/coordinator/query/execution/query-limits.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { LiveQuery } from '../../../src/coordinator/query/stream/state.ts'
import type { Failure } from '../../../src/shared/engine-error.ts'
import { event, QUERY_ID, sampleData } from '../../support/query-events.ts'
import { createStatementBed, MemoryLog } from '../../support/statement-bed.ts'

const server: ServerBounds = { runMs: 3_600_000, executionMs: 3_600_000, planningMs: 600_000 }
const limitsOf = (properties: Readonly<Record<string, string>>, bounds: ServerBounds = server) =>
  queryLimits({ properties }, bounds, 4)

describe('The limits of a query', () => {
  it('are those of the server when the session sets none', () => {
    expect(limitsOf({})).toEqual({
      runTime: { amount: 3600e9, shown: '1.00h' },
      executionTime: { amount: 3600e9, shown: '1.00h' },
      planningTime: { amount: 600e9, shown: '10.00m' },
      cpuTime: undefined,
      memory: undefined,
      nodeMemory: undefined,
      scan: undefined,
      attempts: 4,
    })
  })

  it('never exceed the limits of the server, for any text in the session', () => {
    const amount = fc.oneof(
      fc.nat(),
      fc.double({ min: 0, noNaN: true }).map((each) => each.toFixed(3)),
    )
    const unit = fc.constantFrom('ns', 'us', 'ms', 's', 'm', 'h', 'd', 'B', 'kB', 'MB', 'GB', 'PB', 'EB', '', ' ')
    const text = fc.oneof(
      fc.tuple(amount, unit).map((parts) => parts.join('')),
      fc.constantFrom('1e308d', '-1s', '-5GB', 'NaN', 'Infinity', '0s', '0B', `${'9'.repeat(400)}d`),
      fc.string(),
    )
    fc.assert(
      fc.property(text, fc.nat(1e9), (sent, bound) => {
        const bounds = {
          runMs: bound,
          executionMs: bound,
          planningMs: bound,
          cpuMs: bound,
          memoryBytes: bound,
          scanBytes: bound,
        }
        const limits = limitsOf(
          Object.fromEntries(Object.keys(boundedProperties(bounds)).map((name) => [name, sent])),
          bounds,
        )
        for (const time of [limits.runTime, limits.executionTime, limits.planningTime, limits.cpuTime!])
          expect(time.amount >= 0 && time.amount <= bound * 1e6).toBe(true)
        for (const size of [limits.memory!, limits.scan!]) expect(size.amount >= 0 && size.amount <= bound).toBe(true)
      }),
    )
  })

  it.each([
    [{}, 4],
    [{ retry_policy: 'NONE' }, 1],
    [{ retry_policy: 'none', task_retry_attempts_per_task: '9' }, 1],
    [{ retry_policy: 'TASK', task_retry_attempts_per_task: '1' }, 2],
    [{ task_retry_attempts_per_task: '0', query_retry_attempts: '3' }, 1],
    [{ retry_policy: 'QUERY', query_retry_attempts: '2', task_retry_attempts_per_task: '0' }, 3],
    [{ retry_policy: 'QUERY', query_retry_attempts: '2000000000' }, 4],
  ])('follow the session properties %j, and allow at most %i attempts of a task', (properties, attempts) => {
    expect(limitsOf(properties).attempts).toBe(attempts)
  })

  it('shrink for a new task by the CPU time and scanned bytes of earlier tasks', () => {
    const limits = limitsOf({
      query_max_cpu_time: '10s',
      query_max_scan_physical_bytes: '1kB',
      query_max_memory: '2MB',
    })
    expect(taskBounds(limits, { cpuMillis: 4e3, scannedBytes: 1000 })).toMatchObject({
      cpu: { most: 6e9, message: 'Exceeded CPU limit of 10.00s' },
      memory: { most: 2 * 1024 ** 2, errorName: 'EXCEEDED_GLOBAL_MEMORY_LIMIT' },
      scan: { most: 24 },
    })
    expect(taskBounds(limitsOf({}), { cpuMillis: 4e3, scannedBytes: 1000 })).toBeUndefined()
  })
})

describe('`HeldLimits` of a running query', () => {
  let held: HeldLimits | undefined
  afterEach(() => held?.dispose())

  function hold(
    properties: Readonly<Record<string, string>>,
    createdAgoMs = 0,
    taken = { cpuMillis: 0, scannedBytes: 0 },
  ) {
    const failures: Failure[] = []
    const clock = { now: () => Date.now(), monotonicMs: () => performance.now() }
    let reported: () => void = () => {}
    const failed = new Promise<void>((resolve) => (reported = resolve))
    held = new HeldLimits({
      clock,
      settings: { bounds: server, maxAttempts: 4 },
      properties,
      createdMillis: Date.now() - createdAgoMs,
      figures: { usage: () => ({ ...taken, memoryBytes: 5 * 1024 ** 2 }) },
      fail: async (failure) => {
        failures.push(failure)
        reported()
      },
    })
    return { held, failures, failed }
  }

  it('counts the run time from the recorded creation of the query', async () => {
    const { held: limits, failures, failed } = hold({ query_max_run_time: '10m' }, 601_000)
    limits.begin()
    await failed
    expect(failures).toMatchObject([
      { errorName: 'EXCEEDED_TIME_LIMIT', message: 'Query exceeded maximum time limit of 10.00m' },
    ])
  })

  it('counts the execution time from the recorded start of the execution', async () => {
    const { held: limits, failures, failed } = hold({ query_max_execution_time: '10m' })
    const executionStartedAt = new Date(Date.now() - 599_000).toISOString()
    limits.begin({ ...sampleData.QueryPlanned, executionStartedAt, planningNanos: 2e9 })
    await failed
    expect(failures).toMatchObject([{ message: 'Query exceeded the maximum execution time limit of 10.00m' }])
  })

  it('applies session properties from QueryPlanned after a restart', async () => {
    const { held: limits, failed } = hold({}, 2_000)
    limits.begin({ ...sampleData.QueryPlanned, sessionProperties: { query_max_run_time: '1s', retry_policy: 'NONE' } })
    await failed
    expect(limits.attempts).toBe(1)
  })

  it('throws after a planning that blocked the event loop for longer than the planning limit', () => {
    const { held: limits } = hold({ query_max_planning_time: '1us' })
    limits.planning()
    const until = performance.now() + 2
    while (performance.now() < until);
    expect(() => limits.planned()).toThrow('Query exceeded the maximum planning time limit of 1.00us')
    limits.planned()
  })

  it.each([
    ['query_max_planning_time', 'planning'],
    ['query_max_execution_time', 'execution'],
  ])('counts the planning time of earlier coordinators towards %s', async (property, called) => {
    const { held: limits, failures, failed } = hold({ [property]: '5m' })
    limits.planning(299_990)
    await failed
    expect(failures).toMatchObject([{ message: `Query exceeded the maximum ${called} time limit of 5.00m` }])
  })

  it.each([
    [{ query_max_cpu_time: '1s' }, { cpuMillis: 1100, scannedBytes: 0 }, 'EXCEEDED_CPU_LIMIT'],
    [{ query_max_scan_physical_bytes: '1kB' }, { cpuMillis: 0, scannedBytes: 1025 }, 'EXCEEDED_SCAN_LIMIT'],
    [{ query_max_memory: '4MB' }, { cpuMillis: 0, scannedBytes: 0 }, 'EXCEEDED_GLOBAL_MEMORY_LIMIT'],
  ])('fails the query once when the sum over all tasks exceeds the limit: %j', (properties, totals, errorName) => {
    const { held: limits, failures } = hold(properties, 0, totals)
    limits.check()
    limits.check()
    expect(failures).toMatchObject([{ errorName }])
  })
})

describe('The planning limit of a query that another coordinator began', () => {
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString()
  const created = (seconds: number, sql = 'SELECT 1') => ({
    ...event('QueryCreated', 0, {
      sql,
      session: { ...sampleData.QueryCreated.session, properties: { query_max_planning_time: '10m' } },
    }),
    time: ago(seconds),
  })
  const queued = (seconds: number) => ({ ...event('QueryQueued'), time: ago(seconds) })
  const admitted = (seconds: number) => ({ ...event('QueryAdmitted'), time: ago(seconds) })
  const recovered = event('QueryRecovered')

  it.each([
    ['a query that was admitted at once', [created(599.99), recovered]],
    ['a query that waited, from its admission on', [created(900), queued(900), admitted(599.99), recovered]],
    ['a query that was planned before and after its wait', [created(940), queued(540), admitted(199.99), recovered]],
  ])('includes the recorded planning time: %s', async (_, events) => {
    const bed = createStatementBed({ log: new MemoryLog(), analyze: () => new Promise(() => {}) })
    const { aggregate, planKnown } = bed.resume(events)
    await planKnown
    expect(aggregate.state).toMatchObject({
      failure: { message: 'Query exceeded the maximum planning time limit of 10.00m' },
    })
  })

  it.each([
    ['a query that still waits', [created(900), queued(900), recovered]],
    ['a query that was planned for a second', [created(900), queued(900), admitted(1), recovered]],
  ])('is not exceeded: %s', async (_, events) => {
    const bed = createStatementBed({ log: new MemoryLog() })
    const { aggregate, planKnown } = bed.resume(events)
    await planKnown
    expect(aggregate.intended).not.toHaveProperty('failure')
    await vi.waitFor(() => expect(aggregate.state.kind).toMatch(/FINISH/))
  })

  it('ignores the time before the restart for a CREATE TABLE AS, which may have waited for its client', () => {
    const state = foldQuery(QUERY_ID, [created(900, 'CREATE TABLE t AS SELECT 1 AS x'), recovered]) as LiveQuery
    expect(planningBefore(state, recordedSubmission(state.created).type.get(), Date.now())).toBe(0)
  })
})
