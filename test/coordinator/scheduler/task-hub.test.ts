import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTaskHub, type TaskHub } from '../../../src/coordinator/scheduler/task-hub.ts'
import type { HeardTasks } from '../../../src/coordinator/scheduler/worker-client.ts'
import { WorkerLost, WorkerRefused } from '../../../src/coordinator/scheduler/worker-error.ts'
import type { WorkerNode } from '../../../src/coordinator/scheduler/workers.ts'
import { parseTaskId, parseNodeId } from '../../../src/shared/ids.ts'
import { QUERY_ID } from '../../support/query-events.ts'
import { taskStatus } from '../../support/stage-bed.ts'

const TASK = parseTaskId(`${QUERY_ID}.1.0`)
const OTHER = parseTaskId(`${QUERY_ID}.1.1`)
const URL = 'http://w1'

let nodes: WorkerNode[]
let asked: (string | undefined)[]
/** The answer of the worker; by default it never comes. */
let news: (since: string | undefined) => Promise<HeardTasks>
let hub: TaskHub
let reported: string[]

beforeEach(() => {
  vi.useFakeTimers()
  nodes = [{ nodeId: parseNodeId('w1'), url: URL }]
  asked = []
  reported = []
  news = () => new Promise(() => {})
  hub = createTaskHub(
    {
      taskNews: (_url, since) => {
        asked.push(since)
        return news(since)
      },
    },
    { byUrl: (url) => nodes.find((node) => node.url === url) },
    { lostAfterMs: 10_000, monotonicMs: () => Date.now() },
  )
})
afterEach(() => {
  hub.stop()
  vi.useRealTimers()
})

const listen = (taskId = TASK): void =>
  hub.listen(URL, taskId, {
    onStatus: ({ state, version }) => reported.push(`${state} ${version}`),
    onLost: (error) => reported.push(`${error.kind}: ${error.message}`),
  })
const away = (): Promise<never> => Promise.reject(new WorkerLost('connection refused'))

describe('The task hub', () => {
  it('requests news at once and passes each status to the listener of its task', async () => {
    const answers: HeardTasks[] = [
      { version: '1', tasks: [taskStatus(TASK, { state: 'RUNNING' }), taskStatus(OTHER)] },
      { version: '2', tasks: [taskStatus(TASK, { version: 2 })] },
    ]
    news = () => Promise.resolve(answers.shift()!).then((one) => one ?? new Promise(() => {}))
    listen()
    await vi.advanceTimersByTimeAsync(0)
    expect(asked).toEqual([undefined, '1', '2'])
    expect(reported).toEqual(['RUNNING 1', 'FINISHED 2'])
  })

  it('reports a task as lost when news do not list it, except when its listener came during the request', async () => {
    let answer: (news: HeardTasks | PromiseLike<HeardTasks>) => void = () => {}
    news = () => new Promise((resolve) => (answer = resolve))
    listen()
    await vi.advanceTimersByTimeAsync(0)
    answer({ version: '1', tasks: [] })
    await vi.advanceTimersByTimeAsync(0)
    // The listener came first: its task may be in creation.
    expect(reported).toEqual([])
    answer(away())
    await vi.advanceTimersByTimeAsync(1_000)
    expect(asked).toEqual([undefined, '1', undefined])
    listen(OTHER)
    answer({ version: '1', tasks: [] })
    await vi.advanceTimersByTimeAsync(0)
    expect(reported).toEqual([`lost: worker ${URL} has no task ${TASK}`])
  })

  it('requests all news without a version when the worker is back', async () => {
    let back = false
    news = (since) =>
      since !== undefined
        ? new Promise(() => {})
        : back
          ? Promise.resolve({ version: '7', tasks: [taskStatus(TASK)] })
          : away()
    listen()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(reported).toEqual([])
    back = true
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reported).toEqual(['FINISHED 1'])
  })
})

describe('The task hub with a worker that is gone', () => {
  it('reports tasks as lost after the limit, or soon for an unknown worker, and then sends no requests', async () => {
    news = away
    listen()
    await vi.advanceTimersByTimeAsync(9_000)
    expect(reported).toEqual([])
    await vi.advanceTimersByTimeAsync(2_000)
    expect(reported).toEqual([`lost: no answer from worker ${URL}`])
    const before = asked.length
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(asked).toHaveLength(before)

    nodes = []
    listen()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(reported).toHaveLength(2)
    const after = asked.length
    expect(after).toBeGreaterThan(before)
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(asked).toHaveLength(after)
  })

  it('sends no requests once the last listener is removed', async () => {
    news = away
    listen()
    await vi.advanceTimersByTimeAsync(100)
    hub.forget(URL, TASK)
    await vi.advanceTimersByTimeAsync(1_000)
    const before = asked.length
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(asked).toHaveLength(before)
    expect(reported).toEqual([])
  })

  it('requests all news again for the next listener', async () => {
    news = away
    listen()
    hub.forget(URL, TASK)
    await vi.advanceTimersByTimeAsync(60_000)
    news = (since) =>
      since === undefined ? Promise.resolve({ version: '1', tasks: [taskStatus(OTHER)] }) : new Promise(() => {})
    listen(OTHER)
    await vi.advanceTimersByTimeAsync(0)
    expect(reported).toEqual(['FINISHED 1'])
  })
})

describe('The task hub with a worker that refuses requests for news', () => {
  it('reports the refusal to all listeners at once and sends no other request', async () => {
    news = () => Promise.reject(new WorkerRefused('task news', 401, 'the key is wrong'))
    listen()
    listen(OTHER)
    await vi.advanceTimersByTimeAsync(0)
    expect(reported).toHaveLength(2)
    expect(reported[0]).toContain('refused: task news: the worker refuses it with HTTP 401')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(asked).toHaveLength(1)
  })
})

it('a stopped task hub sends no requests', async () => {
  news = away
  listen()
  await vi.advanceTimersByTimeAsync(100)
  hub.stop()
  const before = asked.length
  await vi.advanceTimersByTimeAsync(60_000)
  expect(asked.length).toBeLessThanOrEqual(before)
})
