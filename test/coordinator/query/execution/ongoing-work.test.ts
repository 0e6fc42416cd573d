import { describe, expect, it } from 'vitest'
import { OngoingWork, type RunningWork } from '../../../../src/coordinator/query/execution/ongoing-work.ts'

/** An engine run, which ends with the coordinator, and a task of stage 2, which does not. */
function workOf() {
  const calls: string[] = []
  const engine: RunningWork = { outlivesCoordinator: false, cancel: () => void calls.push('engine canceled') }
  const task: RunningWork = {
    outlivesCoordinator: true,
    cancel: () => void calls.push('task canceled'),
    batches: { stage: 2, dropPending: () => Promise.resolve(void calls.push('batches dropped')) },
  }
  return { work: new OngoingWork(), engine, task, calls }
}

describe('The ongoing work of a query', () => {
  it('is canceled whole when the query ends', () => {
    const { work, engine, task, calls } = workOf()
    work.add(engine)
    work.add(task)
    work.stop()
    expect(work.signal.aborted).toBe(true)
    expect(calls).toEqual(['engine canceled', 'task canceled'])
  })

  it('continues after the process stops where it outlives the coordinator', () => {
    const { work, engine, task, calls } = workOf()
    work.add(engine)
    work.add(task)
    work.suspend()
    expect(calls).toEqual(['engine canceled'])
  })

  it('is canceled although the part that follows it forgets it at the signal', () => {
    const { work, task, calls } = workOf()
    const forget = work.add(task)
    work.signal.addEventListener('abort', forget)
    work.stop()
    expect(calls).toEqual(['task canceled'])
  })

  it('is not canceled after its own end', () => {
    const { work, engine, calls } = workOf()
    work.add(engine)()
    work.stop()
    expect(calls).toEqual([])
  })

  it('is canceled at once when it begins after the end', () => {
    const { work, task, calls } = workOf()
    work.stop()
    work.add(task)
    expect(calls).toEqual(['task canceled'])
  })

  it('drops the batches of the given stages only', async () => {
    const { work, engine, task, calls } = workOf()
    work.add(engine)
    const forget = work.add(task)
    expect(work.dropPending(new Set([0, 1]))).toBeUndefined()
    await work.dropPending(new Set([1, 2]))
    expect(calls).toEqual(['batches dropped'])
    forget()
    expect(work.dropPending(new Set([2]))).toBeUndefined()
  })
})
