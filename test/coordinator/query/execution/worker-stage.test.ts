import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { runWorkerStage } from '../../../../src/coordinator/query/execution/worker-stage.ts'
import { Ended } from '../../../../src/coordinator/query/execution/ongoing-work.ts'
import { Suspended } from '../../../../src/coordinator/query/execution/suspended.ts'
import { StaleEpoch, WorkerLost, WorkerRefused } from '../../../../src/coordinator/scheduler/worker-error.ts'
import type { ClosedPage, TaskFailure, TaskStatus } from '../../../../src/execution/api/task.ts'
import { EngineError, failureOf } from '../../../../src/shared/engine-error.ts'
import { parseTaskId, parseNodeId } from '../../../../src/shared/ids.ts'
import { createStageBed, taskStatus } from '../../../support/stage-bed.ts'
import { QUERY_ID } from '../../../support/query-events.ts'

const TASK = parseTaskId(`${QUERY_ID}.1.0`)
const wireFailure = ({ location: _, ...rest }: ReturnType<typeof failureOf>): TaskFailure => rest
const lostEngine = { ...wireFailure(failureOf('REMOTE_TASK_ERROR', 'its engine')), retriable: true }

/** A page that is too large to be fetched before it is published. */
function pageOf(token: number, changed: Partial<ClosedPage> = {}): ClosedPage {
  return { token, batch: 0, rows: 10, bytes: 100_000, sha256: 'ab', lastOfBatch: false, ...changed }
}

/** A status with the pages of `tokens` only. Its count of pages includes the missing ones before the last token. */
function statusWith(tokens: readonly number[], changed: Partial<TaskStatus>): TaskStatus {
  const bufferedPages = Math.max(...tokens) + 1
  return taskStatus(TASK, { pages: tokens.map((token) => pageOf(token)), bufferedPages, ...changed })
}

const RUNNING: Partial<TaskStatus> = { state: 'RUNNING', batchesDone: [] }

describe('The pages of a task with answers out of order', () => {
  it('are published in token order when the answer to POST arrives after news of later pages', async () => {
    const bed = await createStageBed()
    bed.client.createTask = async (_url, taskId) => {
      const { onStatus } = bed.listeners.get(taskId)!
      onStatus(statusWith([2, 3], { ...RUNNING, version: 7 }))
      onStatus(statusWith([4], { version: 9 }))
      await sleep(5)
      return statusWith([0, 1, 2], { ...RUNNING, version: 5 })
    }
    await runWorkerStage(
      bed.deps,
      bed.run,
      { ...bed.stage, fragment: { ...bed.stage.fragment!, streams: true } },
      undefined,
    )
    expect(bed.publishedTokens()).toEqual([0, 1, 2, 3, 4])
    expect(bed.asked).toEqual(['POST 1.0 at http://w1'])
  })

  it('are requested by GET when no answer listed them, before the task counts as ended', async () => {
    const bed = await createStageBed()
    bed.client.createTask = async (_url, taskId) => {
      setImmediate(() => bed.listeners.get(taskId)!.onStatus(statusWith([3], { version: 9 })))
      return statusWith([0], { ...RUNNING, version: 5 })
    }
    let answers = 0
    bed.client.getTask = async () => {
      if (answers++ === 0) throw new WorkerLost('no answer')
      return statusWith([0, 1, 2, 3], { version: 9 })
    }
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.publishedTokens()).toEqual([0, 1, 2, 3])
    expect(bed.asked).toEqual(['POST 1.0 at http://w1', 'GET 1.0 at http://w1', 'GET 1.0 at http://w1'])
  })

  it('are requested again by a coordinator that takes the task over', async () => {
    const bed = await createStageBed()
    await bed.run.record([
      {
        type: 'CreateTask',
        data: { taskId: TASK, stage: 1, nodeId: parseNodeId('w1'), nodeUrl: 'http://w1', splits: 0, attempt: 0 },
      },
    ])
    const answers = [statusWith([0], { ...RUNNING, version: 5 }), statusWith([0, 1], { version: 9 })]
    bed.client.getTask = async () => answers.shift()
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.publishedTokens()).toEqual([0, 1])
  })
})

describe('A stage on a worker', () => {
  it('ends with its task, and then the relay task ends', async () => {
    const bed = await createStageBed()
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.asked).toEqual(['POST 1.0 at http://w1'])
    expect(bed.events()).toEqual(['TaskCreated', 'TaskFinished', 'ResultPagesPublished', 'TaskFinished'])
    expect(bed.listeners.size).toBe(0)
  })

  it('is appended together with its query when it ends soon, and its events keep their own times', async () => {
    const bed = await createStageBed({ holdMs: 60_000 })
    let answered = 0
    bed.client.createTask = async (_url, taskId) => {
      await sleep(20)
      answered = Date.now()
      return taskStatus(taskId)
    }
    await runWorkerStage(bed.deps, bed.run, bed.stage, () => [bed.plan])
    const endEvents = ['TaskFinished', 'ResultPagesPublished', 'TaskFinished']
    const types = ['QueryCreated', 'QueryPlanned', 'TaskCreated', ...endEvents]
    expect(bed.log.appends).toEqual([{ stream: QUERY_ID, types }])
    const events = bed.log.streams.get(QUERY_ID)!
    const [planned, task, ended] = events.slice(1).map(({ time }) => Date.parse(time))
    expect(Math.max(planned!, task!)).toBeLessThan(answered)
    expect(ended).toBeGreaterThanOrEqual(answered)
  })

  it('is appended before its task ends when its estimate is not small', async () => {
    const bed = await createStageBed({ holdMs: 60_000 })
    let before: readonly string[] = []
    bed.client.createTask = async (_url, taskId) => {
      await sleep(1)
      before = bed.log.typesOf(QUERY_ID)
      return taskStatus(taskId)
    }
    const stage = { ...bed.stage, fragment: { ...bed.stage.fragment!, estimate: { small: false } } }
    await runWorkerStage(bed.deps, bed.run, stage, () => [bed.plan])
    expect(before).toEqual(['QueryCreated', 'QueryPlanned', 'TaskCreated'])
  })

  it('makes four attempts while its worker is lost, then fails with REMOTE_HOST_GONE', async () => {
    const bed = await createStageBed()
    bed.client.createTask = () => Promise.reject(new WorkerLost('no answer'))
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'REMOTE_HOST_GONE', message: 'no answer' })
    // It is unknown whether a task began, so each task is deleted.
    expect(bed.asked).toEqual([0, 1, 2, 3].flatMap((n) => [`POST 1.${n} at http://w1`, `DELETE 1.${n} at http://w1`]))
  })

  it('ends normally when the second attempt succeeds', async () => {
    const bed = await createStageBed()
    bed.client.createTask = async (_url, taskId) =>
      taskId === TASK ? taskStatus(taskId, { state: 'FAILED', failure: lostEngine }) : taskStatus(taskId)
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.events()).toEqual([
      'TaskCreated',
      'TaskFailed',
      'TaskRetried',
      'TaskCreated',
      'TaskFinished',
      'ResultPagesPublished',
      'TaskFinished',
    ])
  })

  it('fails at once when its worker refuses the task', async () => {
    const bed = await createStageBed()
    bed.client.createTask = () => Promise.reject(new WorkerRefused('POST task', 400, 'no such scan'))
    await expect(runWorkerStage(bed.deps, bed.run, bed.stage, undefined)).rejects.toMatchObject({
      errorName: 'REMOTE_TASK_ERROR',
      message: 'POST task: the worker refuses it with HTTP 400: no such scan',
    })
    expect(bed.asked).toEqual(['POST 1.0 at http://w1'])
    expect(bed.events()).toEqual(['TaskCreated', 'TaskFailed'])
  })

  it('fails at once when its worker refuses to send news of the task', async () => {
    const bed = await createStageBed()
    bed.client.createTask = (_url, taskId) => {
      setImmediate(() => bed.listeners.get(taskId)!.onLost(new WorkerRefused('task news', 401, '')))
      return new Promise(() => {})
    }
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'REMOTE_TASK_ERROR' })
    expect(bed.asked).toEqual(['POST 1.0 at http://w1'])
  })

  it('fails with the failure of its task, without another attempt, when the failure is not retriable', async () => {
    const bed = await createStageBed()
    const failure = wireFailure(failureOf('DIVISION_BY_ZERO', 'Division by zero'))
    bed.client.createTask = async (_url, taskId) => taskStatus(taskId, { state: 'FAILED', failure })
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'DIVISION_BY_ZERO' })
    expect(bed.asked).toHaveLength(1)
  })

  it('makes no other attempt for a REMOTE_TASK_ERROR that is marked as not retriable', async () => {
    const bed = await createStageBed()
    const failure = { ...lostEngine, retriable: false }
    bed.client.createTask = async (_url, taskId) => taskStatus(taskId, { state: 'FAILED', failure })
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'REMOTE_TASK_ERROR' })
    expect(bed.asked).toHaveLength(1)
  })

  it.each([
    ['a programming error with "timeout" in its text', new TypeError('timeout: connection terminated')],
    ['an error of the statement', new EngineError('EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY', 'too large')],
    ['a higher epoch', new StaleEpoch('seen')],
  ])('fails after one attempt with %s', async (_what, error) => {
    const bed = await createStageBed()
    bed.client.createTask = () => Promise.reject(error)
    await expect(runWorkerStage(bed.deps, bed.run, bed.stage, undefined)).rejects.toBe(error)
    expect(bed.asked).toEqual(['POST 1.0 at http://w1'])
  })

  it('keeps its task when the coordinator drains, and deletes it when the query is canceled', async () => {
    for (const [end, reason, deleted] of [
      ['suspend', Suspended, 0],
      ['stop', Ended, 1],
    ] as const) {
      const bed = await createStageBed()
      bed.client.createTask = () => {
        setImmediate(() => bed.work[end]())
        return new Promise(() => {})
      }
      await expect(runWorkerStage(bed.deps, bed.run, bed.stage, undefined)).rejects.toBeInstanceOf(reason)
      expect(bed.asked.filter((one) => one.startsWith('DELETE'))).toHaveLength(deleted)
    }
  })

  it('makes another attempt when a listed page is gone before any page is published', async () => {
    const bed = await createStageBed()
    const page = { token: 0, batch: 0, rows: 1, bytes: 3, sha256: 'ab', lastOfBatch: true }
    bed.client.createTask = async (_url, taskId) =>
      taskId === TASK ? taskStatus(taskId, { pages: [page] }) : taskStatus(taskId)
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.asked).toEqual(['POST 1.0 at http://w1', 'GET 1.0/0 at http://w1', 'POST 1.1 at http://w1'])
  })
})

describe('A task that another coordinator created', () => {
  async function adopted() {
    const bed = await createStageBed()
    const data = { taskId: TASK, stage: 1, nodeId: parseNodeId('w1'), nodeUrl: 'http://w1', splits: 0, attempt: 0 }
    await bed.aggregate.execute([{ type: 'CreateTask', data }])
    return bed
  }

  it('is followed to its end', async () => {
    const bed = await adopted()
    bed.client.getTask = async (_url, taskId) => taskStatus(taskId)
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.events()).toEqual(['TaskCreated', 'TaskFinished', 'ResultPagesPublished', 'TaskFinished'])
  })

  it('fails when its worker refuses to show it', async () => {
    const bed = await adopted()
    bed.client.getTask = () => Promise.reject(new WorkerRefused('GET task', 403, ''))
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'REMOTE_TASK_ERROR' })
    expect(bed.asked).toEqual(['GET 1.0 at http://w1'])
  })

  it('is requested again while its worker may still be starting', async () => {
    const bed = await adopted()
    let asked = 0
    bed.client.getTask = async (_url, taskId) => {
      if (asked++ < 2) throw new WorkerLost('connection refused')
      return taskStatus(taskId)
    }
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.asked).toEqual(Array(3).fill('GET 1.0 at http://w1'))
  })
})
