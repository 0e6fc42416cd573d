import { describe, expect, it } from 'vitest'
import { createQueryAggregate, type QueryStep } from '../../../src/coordinator/query/stream/query-aggregate.ts'
import { TooLarge } from '../../../src/events/event-log.ts'
import { failureOf } from '../../../src/shared/engine-error.ts'
import { QUERY_ID, sampleData } from '../../support/query-events.ts'
import { MemoryLog } from '../../support/statement-bed.ts'

const create: QueryStep = { type: 'CreateQuery', data: sampleData.QueryCreated }
const plan: QueryStep = { type: 'PlanQuery', data: sampleData.QueryPlanned }
const task: QueryStep = { type: 'CreateTask', data: sampleData.TaskCreated }
const fail: QueryStep = (query) =>
  query.kind === 'NONE'
    ? []
    : [{ type: 'FailQuery', failure: failureOf('USER_CANCELED', 'canceled'), figures: sampleData.QueryFailed }]

/** An aggregate over a log that refuses events of these types. */
function aggregateWithout(...types: string[]) {
  const log = new MemoryLog()
  log.refuse = (_stream, events) =>
    events.some(({ type }) => types.includes(type)) ? new TooLarge(9_000_000, 8_000_000) : undefined
  const clock = { now: () => Date.now(), monotonicMs: () => 0 }
  return { log, aggregate: createQueryAggregate(QUERY_ID, log.asEventLog(), clock, () => undefined) }
}

describe('A query aggregate after a refused append', () => {
  it('appends the next events at the sequence of the log', async () => {
    const { log, aggregate } = aggregateWithout('QueryPlanned')
    await aggregate.execute([create])
    await expect(aggregate.execute([plan])).rejects.toThrow(TooLarge)
    expect(aggregate.intended.kind).toBe('QUEUED')
    await aggregate.execute([fail])
    expect(log.typesOf(QUERY_ID)).toEqual(['QueryCreated', 'QueryFailed'])
    expect(aggregate.state.kind).toBe('FAILED')
    expect(aggregate.sequence).toBe(2)
  })

  it('decides the commands behind the refused append again', async () => {
    const { log, aggregate } = aggregateWithout('QueryPlanned')
    await aggregate.execute([create])
    const planned = aggregate.execute([plan])
    const created = aggregate.execute([task])
    const failed = aggregate.execute([fail])
    await expect(planned).rejects.toThrow(TooLarge)
    // A query without a plan gets no task.
    expect(await created).toBe(0)
    expect(await failed).toBe(1)
    expect(log.typesOf(QUERY_ID)).toEqual(['QueryCreated', 'QueryFailed'])
  })

  it('records QueryCreated and QueryFailed when a plan in the same append as the creation is refused', async () => {
    const { log, aggregate } = aggregateWithout('QueryPlanned')
    const all = aggregate.execute([create, plan, task])
    const failed = aggregate.execute([fail])
    await expect(all).rejects.toThrow(TooLarge)
    expect(await failed).toBe(1)
    expect(log.typesOf(QUERY_ID)).toEqual(['QueryCreated', 'QueryFailed'])
  })

  it('keeps the events of an earlier append that is still on its way', async () => {
    const { log, aggregate } = aggregateWithout('TaskCreated')
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    log.settle = () => gate
    const created = aggregate.execute([create, plan])
    await expect(aggregate.execute([task])).rejects.toThrow(TooLarge)
    expect(aggregate.intended.kind).toBe('STARTING')
    const failed = aggregate.execute([fail])
    release()
    await Promise.all([created, failed])
    expect(log.typesOf(QUERY_ID)).toEqual(['QueryCreated', 'QueryPlanned', 'QueryFailed'])
  })
})
