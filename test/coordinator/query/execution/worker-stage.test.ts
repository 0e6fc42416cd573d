import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { runWorkerStage } from '../../../../src/coordinator/query/execution/worker-stage.ts'
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

/** What is listed up to the last of `tokens`, of which this status has those alone. */
function statusWith(tokens: readonly number[], changed: Partial<TaskStatus>): TaskStatus {
  const bufferedPages = Math.max(...tokens) + 1
  return taskStatus(TASK, { pages: tokens.map((token) => pageOf(token)), bufferedPages, ...changed })
}

const RUNNING: Partial<TaskStatus> = { state: 'RUNNING', batchesDone: [] }

describe('pages of a task whose answers overtake each other', () => {
  it('are published from the first on, when the answer of the POST comes behind news of later pages', async () => {
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

  it('are asked for where no answer had them, and only then the task has ended', async () => {
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

  it('are asked for again by a coordinator that takes the task over: it listened too late for some news', async () => {
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

describe('a stage on a worker', () => {
  it('ends with its task, and the relay with it', async () => {
    const bed = await createStageBed()
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.asked).toEqual(['POST 1.0 at http://w1'])
    expect(bed.events()).toEqual(['TaskCreated', 'TaskFinished', 'ResultPagesPublished', 'TaskFinished'])
    expect(bed.listeners.size).toBe(0)
  })

  it('is one append with its query when it ends soon, its events at the times they had', async () => {
    const bed = await createStageBed({ holdMs: 60_000 })
    let answered = 0
    bed.client.createTask = async (_url, taskId) => {
      await sleep(20)
      answered = Date.now()
      return taskStatus(taskId)
    }
    await runWorkerStage(bed.deps, bed.run, bed.stage, bed.plan)
    const ends = ['TaskFinished', 'ResultPagesPublished', 'TaskFinished']
    const types = ['QueryCreated', 'QueryPlanned', 'TaskCreated', ...ends]
    expect(bed.log.appends).toEqual([{ stream: QUERY_ID, types }])
    const events = bed.log.streams.get(QUERY_ID)!
    const [planned, task, ended] = events.slice(1).map(({ time }) => Date.parse(time))
    expect(Math.max(planned!, task!)).toBeLessThan(answered)
    expect(ended).toBeGreaterThanOrEqual(answered)
  })

  it('is in the log before it ends when it is not estimated small', async () => {
    const bed = await createStageBed({ holdMs: 60_000 })
    let before: readonly string[] = []
    bed.client.createTask = async (_url, taskId) => {
      await sleep(1)
      before = bed.log.typesOf(QUERY_ID)
      return taskStatus(taskId)
    }
    const stage = { ...bed.stage, fragment: { ...bed.stage.fragment!, estimate: { small: false } } }
    await runWorkerStage(bed.deps, bed.run, stage, bed.plan)
    expect(before).toEqual(['QueryCreated', 'QueryPlanned', 'TaskCreated'])
  })

  it('is tried again while its worker is lost, so often and no more', async () => {
    const bed = await createStageBed()
    bed.client.createTask = () => Promise.reject(new WorkerLost('no answer'))
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'REMOTE_HOST_GONE', message: 'no answer' })
    // Whether a task began is not known: each is deleted.
    expect(bed.asked).toEqual([0, 1, 2, 3].flatMap((n) => [`POST 1.${n} at http://w1`, `DELETE 1.${n} at http://w1`]))
  })

  it('goes on where the next attempt succeeds', async () => {
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

  it('fails at once when its worker refuses to tell of it', async () => {
    const bed = await createStageBed()
    bed.client.createTask = (_url, taskId) => {
      setImmediate(() => bed.listeners.get(taskId)!.onLost(new WorkerRefused('task news', 401, '')))
      return new Promise(() => {})
    }
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'REMOTE_TASK_ERROR' })
    expect(bed.asked).toEqual(['POST 1.0 at http://w1'])
  })

  it('fails as its task says, unless that says that it may be begun again', async () => {
    const bed = await createStageBed()
    const failure = wireFailure(failureOf('DIVISION_BY_ZERO', 'Division by zero'))
    bed.client.createTask = async (_url, taskId) => taskStatus(taskId, { state: 'FAILED', failure })
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'DIVISION_BY_ZERO' })
    expect(bed.asked).toHaveLength(1)
  })

  it('goes by what the failure says, not by its name', async () => {
    const bed = await createStageBed()
    const failure = { ...lostEngine, retriable: false }
    bed.client.createTask = async (_url, taskId) => taskStatus(taskId, { state: 'FAILED', failure })
    const ended = runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    await expect(ended).rejects.toMatchObject({ errorName: 'REMOTE_TASK_ERROR' })
    expect(bed.asked).toHaveLength(1)
  })

  it.each([
    ['a bug, whatever its text says', new TypeError('timeout: connection terminated')],
    ['an error of the statement', new EngineError('EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY', 'too large')],
    ['a higher epoch', new StaleEpoch('seen')],
  ])('ends with %s, once', async (_what, error) => {
    const bed = await createStageBed()
    bed.client.createTask = () => Promise.reject(error)
    await expect(runWorkerStage(bed.deps, bed.run, bed.stage, undefined)).rejects.toBe(error)
    expect(bed.asked).toEqual(['POST 1.0 at http://w1'])
  })

  it('leaves its task to the next coordinator when this one drains, and to nobody when the query ends', async () => {
    for (const [reason, deleted] of [
      [new Suspended(), 0],
      [new Error('canceled'), 1],
    ] as const) {
      const bed = await createStageBed()
      bed.client.createTask = () => {
        setImmediate(() => bed.abort.abort(reason))
        return new Promise(() => {})
      }
      await expect(runWorkerStage(bed.deps, bed.run, bed.stage, undefined)).rejects.toBe(reason)
      expect(bed.asked.filter((one) => one.startsWith('DELETE'))).toHaveLength(deleted)
    }
  })

  it('tries again when a page that was listed is gone, and not once one is published', async () => {
    const bed = await createStageBed()
    const page = { token: 0, batch: 0, rows: 1, bytes: 3, sha256: 'ab', lastOfBatch: true }
    bed.client.createTask = async (_url, taskId) =>
      taskId === TASK ? taskStatus(taskId, { pages: [page] }) : taskStatus(taskId)
    await runWorkerStage(bed.deps, bed.run, bed.stage, undefined)
    expect(bed.asked).toEqual(['POST 1.0 at http://w1', 'GET 1.0/0 at http://w1', 'POST 1.1 at http://w1'])
  })
})

describe('a task that another coordinator created', () => {
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

  it('is asked for again while its worker may be starting', async () => {
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
