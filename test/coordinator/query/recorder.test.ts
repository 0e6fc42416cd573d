import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createQueryAggregate } from '../../../src/coordinator/query/stream/query-aggregate.ts'
import { createRecorder } from '../../../src/coordinator/query/stream/recorder.ts'
import { QUERY_ID, sampleData } from '../../support/query-events.ts'
import { MemoryLog } from '../../support/statement-bed.ts'

const clock = { now: () => Date.now(), monotonicMs: () => performance.now() }

it('holds the first steps for longer if further steps come soon', async () => {
  const log = new MemoryLog()
  const aggregate = createQueryAggregate(QUERY_ID, log.asEventLog(), clock, () => undefined)
  const create = { type: 'CreateQuery', data: sampleData.QueryCreated } as const
  const recorder = createRecorder(aggregate, create, { holdMs: 1, clock })
  recorder.holdOn(60_000)
  await sleep(20)
  expect(log.appends).toEqual([])
  await recorder.record([{ type: 'PlanQuery', data: sampleData.QueryPlanned }])
  expect(log.appends.map(({ types }) => types)).toEqual([['QueryCreated', 'QueryPlanned']])
  recorder.dispose()
})
