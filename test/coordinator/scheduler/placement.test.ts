import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leastLoaded, Placement, type Candidate } from '../../../src/coordinator/scheduler/placement.ts'
import type { ActiveWorker } from '../../../src/coordinator/scheduler/workers.ts'
import { parseNodeId } from '../../../src/shared/ids.ts'

const GB = 1024 ** 3
const clock = { monotonicMs: () => performance.now() }
const never = new AbortController().signal

const worker = (nodeId: string, more: Partial<ActiveWorker> = {}): ActiveWorker => ({
  nodeId: parseNodeId(nodeId),
  url: `http://${nodeId}`,
  cores: 4,
  memoryBytes: 16 * GB,
  ...more,
})
const some = (count: number): ActiveWorker[] => Array.from({ length: count }, (_, index) => worker(`w${index}`))
const placementOver = (workers: readonly ActiveWorker[], workerWaitMs = 60_000): Placement =>
  new Placement({ workers: { active: () => workers }, clock, workerWaitMs })

const candidates = fc.uniqueArray(
  fc.record({
    nodeId: fc.stringMatching(/^[\w.:-]{1,20}$/).map(parseNodeId),
    url: fc.constant('http://w'),
    cores: fc.integer({ min: 0, max: 128 }),
    memoryBytes: fc.integer({ min: 0, max: 512 }).map((gigabytes) => gigabytes * GB),
    freeEngines: fc.integer({ min: 0, max: 4 }),
    running: fc.integer({ min: 0, max: 1000 }),
    placed: fc.nat(),
  }),
  { selector: ({ nodeId }) => nodeId, minLength: 1, maxLength: 12 },
)

/** Whether `a` runs fewer tasks than `b` on a machine that is at least as good. */
const isBetter = (a: Candidate, b: Candidate): boolean =>
  a.running < b.running && a.cores! >= b.cores! && a.memoryBytes! >= b.memoryBytes!

describe('`leastLoaded`', () => {
  it('returns a candidate, and no other runs fewer tasks on a machine that is at least as good', () => {
    fc.assert(
      fc.property(candidates, (all) => {
        const chosen = leastLoaded(all)!
        expect(all).toContain(chosen)
        expect(all.filter((one) => isBetter(one, chosen))).toEqual([])
      }),
    )
  })

  it('returns the same worker for any order of the candidates', () => {
    fc.assert(
      fc.property(candidates, (all) => {
        const distinct = all.map((one, index) => ({ ...one, placed: index }))
        expect(leastLoaded(distinct.toReversed())).toEqual(leastLoaded(distinct))
      }),
    )
  })

  it('prefers the worker with a free engine among equal workers', () => {
    const equal = { ...worker('a'), running: 1, placed: 1 }
    expect(
      leastLoaded([
        { ...equal, freeEngines: 0 },
        { ...equal, nodeId: parseNodeId('b'), placed: 9, freeEngines: 1 },
      ])?.nodeId,
    ).toBe('b')
  })

  it('returns undefined without candidates', () => {
    expect(leastLoaded([])).toBeUndefined()
  })
})

describe('`Placement`', () => {
  it('spreads tasks: the numbers of tasks on equal workers differ by at most one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 0, max: 60 }), async (count, tasks) => {
        const workers = some(count)
        const placement = placementOver(workers)
        await Promise.all(Array.from({ length: tasks }, () => placement.assign(never)))
        const running = workers.map(({ nodeId }) => placement.runningOn(nodeId))
        expect(running.reduce((sum, each) => sum + each, 0)).toBe(tasks)
        expect(Math.max(...running) - Math.min(...running)).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('places tasks that run one after the other on the workers in rotation', async () => {
    const placement = placementOver(some(3))
    const nodes: string[] = []
    for (let task = 0; task < 9; task++) {
      const slot = await placement.assign(never)
      nodes.push(slot.node.nodeId)
      slot.leave()
    }
    expect(nodes).toEqual(['w0', 'w1', 'w2', 'w0', 'w1', 'w2', 'w0', 'w1', 'w2'])
  })

  it('counts 0 running tasks after all have left, in any order and with repeated calls of `leave`', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 40 }), async (order) => {
        const workers = some(3)
        const placement = placementOver(workers)
        const slots = await Promise.all(order.map(() => placement.assign(never)))
        const ending = slots.toSorted((a, b) => order[slots.indexOf(a)]! - order[slots.indexOf(b)]!)
        for (const slot of ending) {
          slot.leave()
          slot.leave()
        }
        expect(workers.map(({ nodeId }) => placement.runningOn(nodeId))).toEqual([0, 0, 0])
      }),
    )
  })

  it('places tasks in proportion to the size of the machine of a worker', async () => {
    const small = worker('small', { cores: 2, memoryBytes: 4 * GB })
    const large = worker('large', { cores: 8 })
    const placement = placementOver([small, large])
    await Promise.all(Array.from({ length: 10 }, () => placement.assign(never)))
    expect([placement.runningOn(small.nodeId), placement.runningOn(large.nodeId)]).toEqual([2, 8])
  })

  it('avoids the worker on which the task was lost, unless it is the only one', async () => {
    const two = placementOver(some(2))
    two.take(worker('w1'))
    expect((await two.assign(never, 'w0')).node.nodeId).toBe('w1')
    expect((await placementOver(some(1)).assign(never, 'w0')).node.nodeId).toBe('w0')
  })

  it('waits for a worker up to the time limit or the cancel of the query', async () => {
    const workers: ActiveWorker[] = []
    const placed = placementOver(workers).assign(never)
    workers.push(worker('late'))
    expect((await placed).node.nodeId).toBe('late')
    await expect(placementOver([], 0).assign(never)).rejects.toMatchObject({ errorName: 'NO_NODES_AVAILABLE' })
    const reason = new Error('canceled')
    await expect(placementOver([]).assign(AbortSignal.abort(reason))).rejects.toBe(reason)
  })
})
