import { expect, it } from 'vitest'
import { entrantOf } from '../../../support/group-entrant.ts'
import { createResourceGroups, GLOBAL_GROUP } from '../../../../src/coordinator/dispatch/groups/single-group.ts'
import { Admission } from '../../../../src/coordinator/query/execution/admission.ts'
import type { QueryCommand } from '../../../../src/coordinator/query/stream/decider.ts'

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Admissions to one group; `steps` has the recorded commands in order. */
function admissionsTo(groups = createResourceGroups({ running: 1, queued: 1 })) {
  const steps: QueryCommand[] = []
  let waits = 0
  let monotonicMs = 0
  return {
    groups,
    steps,
    waits: () => waits,
    running: () => groups.figures()[0]!.running,
    pass: (ms: number) => void (monotonicMs += ms),
    of(signal = new AbortController().signal) {
      return new Admission({
        groups,
        clock: { monotonicMs: () => monotonicMs },
        entrant: entrantOf({ signal }),
        record: (recorded) => {
          for (const step of recorded) if (typeof step === 'object') steps.push(step)
          return Promise.resolve()
        },
        onWait: () => void waits++,
      })
    },
  }
}

it('an admission takes a free slot at once and records no event', async () => {
  const bed = admissionsTo()
  const admission = bed.of()
  await admission.enter()
  expect(bed.steps).toEqual([])
  expect(bed.running()).toBe(1)
  admission.leave()
  admission.leave()
  expect(bed.running()).toBe(0)
})

it('an admission records QueueQuery with its reason, then AdmitQuery with the time in the queue', async () => {
  const bed = admissionsTo()
  const first = bed.of()
  await first.enter()
  expect(bed.waits()).toBe(0)
  const second = bed.of()
  const entered = second.enter()
  expect(bed.waits()).toBe(1)
  const reason = 'resource group "global" is full; position 1'
  expect(second.queuedReason).toBe(reason)
  expect(bed.steps).toEqual([{ type: 'QueueQuery', data: { resourceGroup: GLOBAL_GROUP, reason, position: 1 } }])
  await settled()
  bed.pass(1500)
  first.leave()
  await entered
  expect(second.queuedReason).toBeUndefined()
  expect(bed.steps.slice(1)).toEqual([
    { type: 'AdmitQuery', data: { resourceGroup: GLOBAL_GROUP, queuedNanos: 1_500_000_000 } },
  ])
  expect(bed.running()).toBe(1)
})

it('an admission fails with QUERY_QUEUE_FULL and records no event when the queue is full', async () => {
  const bed = admissionsTo()
  await bed.of().enter()
  void bed.of().enter()
  await expect(bed.of().enter()).rejects.toMatchObject({ errorName: 'QUERY_QUEUE_FULL' })
  expect(bed.steps.map(({ type }) => type)).toEqual(['QueueQuery'])
})

it('an admission takes no slot for a query that was canceled while it waited', async () => {
  const bed = admissionsTo()
  const first = bed.of()
  await first.enter()
  const abort = new AbortController()
  const entered = bed.of(abort.signal).enter()
  abort.abort(new Error('canceled'))
  await expect(entered).rejects.toThrow('canceled')
  first.leave()
  expect(bed.running()).toBe(0)
  expect(bed.steps.map(({ type }) => type)).toEqual(['QueueQuery'])
})

it('an admission waits for the count of recovered queries, unless its own query is a recovered one', async () => {
  const bed = admissionsTo(createResourceGroups({ running: 2, queued: 2 }))
  const reservation = bed.groups.reserve()
  const fresh = bed.of()
  const entered = fresh.enter()
  expect(fresh.queuedReason).toBe('queries that waited before the coordinator was restarted come first')
  await bed.of().enter(true)
  expect(bed.running()).toBe(1)
  reservation.end()
  await entered
  expect(fresh.queuedReason).toBeUndefined()
  expect(bed.steps).toEqual([])
  expect(bed.running()).toBe(2)
})

it('an admission of a query that ran before the restart takes a slot beyond the limit', async () => {
  const bed = admissionsTo()
  await bed.of().enter()
  const before = bed.of()
  before.occupy()
  expect(bed.running()).toBe(2)
  before.leave()
  expect(bed.running()).toBe(1)
})
