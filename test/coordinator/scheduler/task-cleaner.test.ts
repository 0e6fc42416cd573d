import { afterEach, describe, expect, it, vi } from 'vitest'
import { createTaskCleaner, type TaskCleaner } from '../../../src/coordinator/scheduler/task-cleaner.ts'
import { parseNodeId, type NodeId, type TaskId } from '../../../src/shared/ids.ts'
import { WorkerLost, WorkerRefused } from '../../../src/coordinator/scheduler/worker-error.ts'

const task = (number: number, nodeId = 'w1') => ({
  nodeId: parseNodeId(nodeId),
  nodeUrl: `http://old-${nodeId}`,
  taskId: `q.1.${number}` as TaskId,
})

describe('The task cleaner', () => {
  let cleaner: TaskCleaner | undefined
  afterEach(() => {
    cleaner?.stop()
    vi.useRealTimers()
  })

  function start(deleteTasks: (url: string, ids: readonly string[]) => Promise<void>) {
    vi.useFakeTimers()
    let now = 0
    const clock = { now: () => now, monotonicMs: () => now }
    const workers = { byId: (nodeId: NodeId) => (nodeId === 'w2' ? { nodeId, url: 'http://new-w2' } : undefined) }
    cleaner = createTaskCleaner({ deleteTasks }, workers, clock)
    return async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 1000) {
        now += 1000
        await vi.advanceTimersByTimeAsync(1000)
      }
    }
  }

  it('sends one request per worker to its current address, once the tasks are due', async () => {
    const asked: [string, readonly string[]][] = []
    const pass = start(async (url, ids) => void asked.push([url, ids.toSorted()]))
    cleaner!.release([task(1), task(2), task(3, 'w2')], 0)
    cleaner!.release([task(4)], 5000)
    await pass(1000)
    expect(asked.toSorted()).toEqual([
      ['http://new-w2', ['q.1.3']],
      ['http://old-w1', ['q.1.1', 'q.1.2']],
    ])
    await pass(3000)
    expect(asked).toHaveLength(2)
    await pass(2000)
    expect(asked.at(-1)).toEqual(['http://old-w1', ['q.1.4']])
  })

  it('deletes at most 1000 tasks in one request, and continues after a request that failed', async () => {
    const sizes: number[] = []
    const pass = start(async (_url, ids) => {
      sizes.push(ids.length)
      if (sizes.length === 1) throw new Error('away')
    })
    cleaner!.release(
      Array.from({ length: 2500 }, (_, index) => task(index)),
      0,
    )
    await pass(1000)
    expect(sizes).toEqual([1000, 1000, 500])
    cleaner!.release([task(9000)], 0)
    await pass(1000)
    expect(sizes).toEqual([1000, 1000, 500, 1])
  })

  it('repeats the request to a lost worker, and stops once the worker must have dropped the tasks itself', async () => {
    let asked = 0
    const pass = start(async () => {
      asked++
      throw new WorkerLost('away')
    })
    cleaner!.release([task(1)], 0)
    await pass(1000)
    expect(asked).toBe(1)
    await pass(10_000)
    expect(asked).toBeGreaterThan(1)
    await pass(600_000)
    const inAll = asked
    await pass(30_000)
    expect(asked).toBe(inAll)
  })

  it('does not repeat a request that the worker refuses', async () => {
    let asked = 0
    const pass = start(async () => {
      asked++
      throw new WorkerRefused('DELETE tasks', 403, '')
    })
    cleaner!.release([task(1)], 0)
    await pass(30_000)
    expect(asked).toBe(1)
  })
})
