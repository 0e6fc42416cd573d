import { afterEach, describe, expect, it, vi } from 'vitest'
import { releaseLeftTasks } from '../../../src/coordinator/recovery/left-tasks.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import { queryEventVersions, type QueryEvent } from '../../../src/coordinator/query/stream/events.ts'
import type { QueryState } from '../../../src/coordinator/query/stream/state.ts'
import type { UnneededTask } from '../../../src/coordinator/scheduler/task-cleaner.ts'
import type { WorkerNode } from '../../../src/coordinator/scheduler/workers.ts'
import type { Recorded } from '../../../src/events/event-log.ts'
import type { TaskStatus } from '../../../src/execution/api/task.ts'
import { parseTaskId, type QueryId, type TaskId, parseNodeId } from '../../../src/shared/ids.ts'
import { queryLife, taskStats, testQueryId } from '../../support/query-life.ts'

const KEPT_MS = 300_000
const status = (taskId: string, more: Partial<TaskStatus> = {}): TaskStatus => ({
  taskId: taskId as TaskId,
  version: 1,
  state: 'FINISHED',
  instanceId: 'i',
  attempt: 0,
  lastHeartbeat: '2026-03-01T10:00:00.000Z',
  bufferState: 'FLUSHING',
  noMoreSplits: [],
  batchesDone: [],
  batchesTotal: 1,
  pagesSent: 0,
  bufferedPages: 1,
  pages: [],
  stats: taskStats(),
  ...more,
})

describe('Tasks that an earlier coordinator left on workers', () => {
  afterEach(() => void vi.useRealTimers())

  /** @param stored the events of each query in the log @param held the queries that this coordinator holds */
  async function release(
    tasks: readonly TaskStatus[],
    stored: ReadonlyMap<string, readonly QueryEvent[]>,
    held: ReadonlyMap<string, QueryState> = new Map(),
  ): Promise<Record<string, number>> {
    vi.useFakeTimers()
    const released: Record<string, number> = {}
    const workers: WorkerNode[] = []
    const listeners: (() => void)[] = []
    const stop = releaseLeftTasks({
      client: { taskNews: async () => ({ version: '1', tasks }) },
      workers: { active: () => workers, onChange: (listener) => void listeners.push(listener) },
      log: {
        async *readStream(stream) {
          for (const event of stored.get(stream) ?? [])
            yield { ...event, v: queryEventVersions[event.type], stream } as unknown as Recorded
        },
      },
      cleaner: {
        release(some: readonly UnneededTask[], afterMs) {
          for (const { taskId } of some) released[taskId] = afterMs
        },
        stop: () => {},
      },
      held: (queryId) => held.get(queryId),
      answersKeptMs: KEPT_MS,
    })
    workers.push({ nodeId: parseNodeId('worker-1'), url: 'http://127.0.0.1:18081' })
    for (const listener of listeners) listener()
    await vi.advanceTimersByTimeAsync(10_000)
    stop()
    return released
  }

  const [ended, failed, unknown, open] = [1, 2, 3, 4].map(testQueryId) as [QueryId, QueryId, QueryId, QueryId]
  const published = (queryId: string): QueryEvent[] =>
    queryLife(queryId).map((event) =>
      event.type === 'ResultPagesPublished'
        ? {
            ...event,
            data: {
              ...event.data,
              taskId: parseTaskId(`${queryId}.1.0`),
              pages: event.data.pages.map((page) => ({ ...page, kept: 'worker' as const })),
            },
          }
        : event,
    )

  it('are deleted at once after a failure or for an unknown query, and with the answers after a finish', async () => {
    const stored = new Map([
      [ended, published(ended)],
      [failed, queryLife(failed, { end: 'failed' })],
    ])
    const tasks = [status(`${ended}.1.0`), status(`${ended}.1.1`), status(`${failed}.1.0`), status(`${unknown}.1.0`)]
    expect(await release(tasks, stored)).toEqual({
      [`${ended}.1.0`]: KEPT_MS,
      [`${ended}.1.1`]: 0,
      [`${failed}.1.0`]: 0,
      [`${unknown}.1.0`]: 0,
    })
  })

  it('stay while their query is open, except tasks of an earlier coordinator that its stream does not know', async () => {
    const life: QueryEvent[] = [
      ...queryLife(open, { end: 'open' }),
      { type: 'QueryRecovered', time: '2026-03-01T11:00:00.000Z', data: { count: 1, phase: 'RUNNING', epoch: 2 } },
    ]
    const held = new Map([[open, foldQuery(open, life)]])
    const running = (taskId: string): TaskStatus => status(taskId, { state: 'RUNNING', bufferState: 'OPEN' })
    const tasks = [`${open}.1.0`, `${open}.1.1`, `${open}.1.1000`].map(running)
    expect(await release(tasks, new Map(), held)).toEqual({ [`${open}.1.1`]: 0 })
  })

  it('are ignored when they are already deleted', async () => {
    const deleted = status(`${unknown}.1.0`, { state: 'ABORTED', bufferState: 'FINISHED', deleted: true })
    expect(await release([deleted], new Map())).toEqual({})
  })

  it('are deleted at once when they ended without a page', async () => {
    const stored = new Map([[ended, published(ended)]])
    const wrote = status(`${ended}.2.0`, { bufferState: 'FINISHED', bufferedPages: 0 })
    expect(await release([wrote], stored)).toEqual({ [`${ended}.2.0`]: 0 })
  })
})
